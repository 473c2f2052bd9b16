//! The ways to split GPUs over the loops.

use headway_shared::config::GateKind;

use crate::scenario::{Layout, Scenario};
use crate::world::settings::{ClientKind, StepTime};

/// How many GPUs each loop has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Split {
    /// Whether serving and training have GPUs of their own.
    pub layout: Layout,
    /// GPUs of the trainer.
    pub trainer_gpus: u32,
    /// Serving replicas.
    pub serving_replicas: u32,
    /// GPUs of one serving replica.
    pub serving_gpus_each: u32,
    /// Judge replicas; those of an endpoint elsewhere take no GPUs.
    pub judge_replicas: u32,
    /// GPUs of one judge replica.
    pub judge_gpus_each: u32,
}

/// Where a GPU can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A serving replica.
    Serving,
    /// A judge replica.
    Judge,
    /// GPUs of the trainer.
    Trainer,
    /// GPUs that serve and train.
    Shared,
}

impl Place {
    /// What tables call it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Judge => "judge",
            Self::Trainer => "trainer",
            Self::Shared => "shared",
        }
    }
}

impl Split {
    /// GPUs of all serving replicas.
    #[must_use]
    pub const fn serving_gpus(&self) -> u32 {
        self.serving_replicas * self.serving_gpus_each
    }

    /// GPUs of all judge replicas.
    #[must_use]
    pub const fn judge_gpus(&self) -> u32 {
        self.judge_replicas * self.judge_gpus_each
    }

    /// GPUs that the loops take together.
    #[must_use]
    pub fn used(&self) -> u32 {
        let both = match self.layout {
            Layout::Disaggregated => self.serving_gpus() + self.trainer_gpus,
            Layout::Colocated | Layout::TimeShared => self.serving_gpus().max(self.trainer_gpus),
        };
        both + self.judge_gpus()
    }

    /// `40 serving + 2 judge + 24 trainer GPUs`
    #[must_use]
    pub fn words(&self) -> String {
        let judge = match self.judge_gpus() {
            0 => String::new(),
            gpus => format!(" + {gpus} judge"),
        };
        let (serving, trainer) = (self.serving_gpus(), self.trainer_gpus);
        match self.layout {
            Layout::Disaggregated => format!("{serving} serving{judge} + {trainer} trainer GPUs"),
            Layout::Colocated => format!("{} colocated{judge} GPUs", serving.max(trainer)),
            Layout::TimeShared => format!("{} time-shared{judge} GPUs", serving.max(trainer)),
        }
    }

    /// What a picture calls it: GPUs of serving, judge (where it has any) and trainer.
    #[must_use]
    pub fn label(&self) -> String {
        let judge = match self.judge_gpus() {
            0 => String::new(),
            gpus => format!("+{gpus}"),
        };
        let (serving, trainer) = (self.serving_gpus(), self.trainer_gpus);
        match self.layout {
            Layout::Disaggregated => format!("{serving}{judge}+{trainer}"),
            Layout::Colocated => format!("{}{judge} colocated", serving.max(trainer)),
            Layout::TimeShared => format!("{}{judge} time-shared", serving.max(trainer)),
        }
    }

    /// The split with one unit more in a place, and the GPUs that takes. `None`: the layout has no
    /// such place.
    #[must_use]
    pub fn with_more(&self, place: Place, scenario: &Scenario) -> Option<(Self, u32)> {
        let multiple = scenario.plan.gpus_multiple;
        let mut more = *self;
        match (place, self.layout) {
            (Place::Serving, Layout::Disaggregated) => more.serving_replicas += 1,
            (Place::Trainer, Layout::Disaggregated) => more.trainer_gpus += multiple,
            (Place::Judge, _) if self.judge_gpus_each > 0 => more.judge_replicas += 1,
            (Place::Shared, Layout::Colocated | Layout::TimeShared) => {
                let unit = common_multiple(multiple, self.serving_gpus_each);
                let shared = self.serving_gpus().max(self.trainer_gpus) + unit;
                more.serving_replicas = shared / self.serving_gpus_each;
                more.trainer_gpus = shared / multiple * multiple;
            }
            _ => return None,
        }
        let added = more.used() - self.used();
        Some((more, added))
    }

    /// What it sets in a scenario, each as `key=value`.
    #[must_use]
    pub fn set(&self, scenario: &Scenario) -> Vec<String> {
        let mut set = vec![
            format!("world.serving.replicas={}", self.serving_replicas),
            format!("world.trainer.gpus={}", self.trainer_gpus),
        ];
        if scenario.plan.rollouts_per_replica > 0 {
            let most = scenario.plan.rollouts_per_replica.saturating_mul(self.serving_replicas);
            set.push(format!("policy_serving.max_concurrent_rollouts={most}"));
            let group = scenario.config.policy_training.group_size.max(1);
            if let ClientKind::Slots(slots) = &scenario.world.clients.kind
                && slots.whole_groups
            {
                set.push(format!("world.clients.slots={}", (most / group).max(1)));
            }
        }
        if self.judge_gpus_each > 0 {
            let quota = scenario.world.judge.quota / scenario.resources.judge_replicas.max(1);
            let votes = quota.saturating_mul(self.judge_replicas);
            set.push(format!("world.judge.replicas={}", self.judge_replicas));
            // As many votes at once as the replicas serve, or more replicas would change nothing.
            set.push(format!("reward_judging.judge_concurrency={votes}"));
        }
        match self.layout {
            Layout::Disaggregated => set.push("world.serving.speed_during_step=1".into()),
            Layout::Colocated => {
                let speed = scenario.plan.colocated_speed.unwrap_or(1.0);
                set.push(format!("world.serving.speed_during_step={speed:?}"));
                set.extend(step_times(scenario, 1.0 / speed, 1.0 / speed, 0.0));
            }
            Layout::TimeShared => set.extend(synchronous(scenario)),
        }
        set
    }
}

/// Everything serves, then everything trains. A step takes what one publication would have taken.
fn synchronous(scenario: &Scenario) -> Vec<String> {
    let training = &scenario.config.policy_training;
    let steps = training.publish_interval.max(1);
    let mut set = vec![
        "world.serving.speed_during_step=0".into(),
        "policy_training.gate=sync".into(),
        // Nothing runs then, and the gate opens on all replicas at once; else the first one that
        // has loaded would take the whole batch.
        "policy_serving.sync_mode=pause_drain".into(),
        "policy_training.max_head_off_policyness=0".into(),
    ];
    let slower = 1.0 / scenario.plan.time_shared_speed;
    let switches = 2.0 * scenario.plan.switch_sec;
    set.extend(step_times(scenario, f64::from(steps) * slower, slower, switches));
    if steps > 1 && training.gate != GateKind::Sync {
        let updates = training.updates_per_step.saturating_mul(steps);
        set.push("policy_training.publish_interval=1".into());
        set.push(format!(
            "policy_training.batch_size={}",
            training.batch_size.saturating_mul(steps)
        ));
        set.push(format!("policy_training.updates_per_step={updates}"));
        if let Some(all) = scenario.steps {
            let warmup = scenario.warmup.steps.div_ceil(steps);
            set.push(format!("scenario.steps={}", all.div_ceil(steps).max(warmup + 1)));
            set.push(format!("scenario.warmup_steps={warmup}"));
        }
    }
    set
}

/// The law of a step with its parts so many times as long, and so much longer altogether.
fn step_times(scenario: &Scenario, base: f64, token: f64, more: f64) -> Vec<String> {
    match scenario.world.trainer.step {
        StepTime::Tokens { base_sec, sec_per_token, .. } => vec![
            format!("world.trainer.base_sec={:?}", base_sec * base + more),
            format!("world.trainer.sec_per_token={:?}", sec_per_token * token),
        ],
        StepTime::Time(_) => Vec::new(),
    }
}

/// Every split of `gpus`, by layout, trainer and judge. A split whose unused GPUs would do for more
/// training is left out.
#[must_use]
pub fn splits(scenario: &Scenario, gpus: u32) -> Vec<Split> {
    scenario.plan.layouts.iter().flat_map(|&layout| of_layout(scenario, gpus, layout)).collect()
}

/// The fewest GPUs of which there is a split, and that split.
#[must_use]
pub fn smallest(scenario: &Scenario) -> Option<Split> {
    let least = |layout: &Layout| {
        let (trainer, serving) =
            (scenario.plan.least_trainer_gpus(), scenario.resources.serving_gpus);
        let both = match layout {
            Layout::Disaggregated => trainer + serving,
            Layout::Colocated | Layout::TimeShared => trainer.max(serving),
        };
        of_layout(scenario, both + scenario.resources.judge_gpus, *layout).into_iter().next()
    };
    scenario.plan.layouts.iter().filter_map(least).min_by_key(Split::used)
}

fn of_layout(scenario: &Scenario, gpus: u32, layout: Layout) -> Vec<Split> {
    let (resources, plan) = (&scenario.resources, &scenario.plan);
    let judges = match resources.judge_gpus {
        0 => resources.judge_replicas..=resources.judge_replicas,
        each => 1..=gpus / each,
    };
    let mut splits = Vec::new();
    for judge_replicas in judges {
        let left = gpus.saturating_sub(judge_replicas.saturating_mul(resources.judge_gpus));
        let split = |serving: u32, trainer_gpus: u32| Split {
            layout,
            trainer_gpus,
            serving_replicas: serving / resources.serving_gpus,
            serving_gpus_each: resources.serving_gpus,
            judge_replicas,
            judge_gpus_each: resources.judge_gpus,
        };
        let most = left / plan.gpus_multiple * plan.gpus_multiple;
        let trainers = match layout {
            Layout::Disaggregated => plan.least_trainer_gpus()..=most,
            Layout::Colocated | Layout::TimeShared => plan.least_trainer_gpus().max(most)..=most,
        };
        for trainer in trainers.step_by(plan.gpus_multiple as usize) {
            let serving = match layout {
                Layout::Disaggregated => left - trainer,
                Layout::Colocated | Layout::TimeShared => left,
            };
            let found = split(serving, trainer);
            let idle = serving - found.serving_gpus();
            let wasteful = layout == Layout::Disaggregated && idle >= plan.gpus_multiple;
            if found.serving_replicas > 0 && !wasteful {
                splits.push(found);
            }
        }
    }
    splits
}

fn common_multiple(a: u32, b: u32) -> u32 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

//! Who takes part: every gate of the core, each with its knob and with what it assumes.
//!
//! All share one world. What a gate's own system sets beside its rule (the size of a buffer, what
//! happens when it is full, the KV cache of a swap) goes with the gate; nothing else does.

use headway_shared::config::SyncMode;

use crate::scenario::Scenario;
use crate::world::settings::ClientKind;

/// One way to bound staleness: a gate, and what is set beside it.
#[derive(Clone, Copy)]
pub struct Entrant {
    /// What tables and plots call it.
    pub name: &'static str,
    /// What is set beside the gate's own knob, in words; empty: nothing.
    pub companions: &'static str,
    /// Its trainer goes on while weights are published, as its own system's does; else it waits.
    pub trains_on: bool,
    values: fn(&Sizes) -> Vec<Knob>,
}

impl std::fmt::Debug for Entrant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A value of an entrant's knob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// `max_head_off_policyness=4`; empty where the gate has no knob.
    pub label: String,
    /// Everything that it sets, each as `key=value`.
    pub set: Vec<String>,
}

/// The numbers of a workload that companions depend on.
struct Sizes {
    /// Places per train step.
    batch: u32,
    /// Samples per place.
    group: u32,
    /// Main turns that may run; never 0.
    at_once: u32,
    /// The workload parks turns that wait for their user.
    parks: bool,
}

impl Sizes {
    fn of(scenario: &Scenario) -> Self {
        let training = &scenario.config.policy_training;
        let at_once = match (
            scenario.config.policy_serving.max_concurrent_rollouts,
            &scenario.world.clients.kind,
        ) {
            (0, ClientKind::Slots(slots)) => slots.tasks(training.group_size),
            (0, ClientKind::Sessions(_)) => 4 * training.batch_size * training.group_size,
            (limit, _) => limit,
        };
        Self {
            batch: training.batch_size,
            group: training.group_size,
            at_once: at_once.max(1),
            parks: training.park_after > headway_shared::time::Span::ZERO,
        }
    }

    /// Samples of a train step.
    const fn samples(&self) -> u32 {
        self.batch.saturating_mul(self.group)
    }
}

const ETA: &str = "policy_training.max_head_off_policyness";
const PARK: &str = "policy_training.park_after_sec";
const OUTPUT: &str = "queue.output";
const INTERVAL: &str = "policy_training.publish_interval";

/// Every entrant, in the order of tables and plots.
pub static ENTRANTS: [Entrant; 15] = [
    Entrant {
        name: "headway",
        companions: "its queue in the order of arrival, and in that of admission",
        trains_on: true,
        values: |sizes| {
            let mut all = etas("headway", &[0], &[]);
            all.extend(in_both_orders(etas("headway", &[1, 2, 4, 8], &[])));
            ours(sizes, all)
        },
    },
    Entrant {
        name: "headway_strict",
        companions: "`bound = \"strict\"`, `late = \"discard\"`; both orders",
        trains_on: true,
        values: |sizes| {
            let strict = etas("headway", &[1, 2, 4, 8], &["policy_training.bound=strict"]);
            ours(sizes, in_both_orders(strict))
        },
    },
    Entrant {
        name: "headway_wait",
        companions: "`bound = \"strict\"`, `late = \"wait\"` (60 s); both orders",
        trains_on: true,
        values: |sizes| {
            let wait = ["policy_training.bound=strict", "policy_training.late=wait"];
            ours(sizes, in_both_orders(etas("headway", &[1, 2, 4, 8], &wait)))
        },
    },
    Entrant {
        name: "areal",
        companions: "a batch takes the oldest submission first; its limit of rollouts",
        trains_on: true,
        values: |sizes| {
            let limit = format!("policy_serving.max_concurrent_rollouts={}", sizes.at_once);
            let order = format!("{OUTPUT}.queue_type=admission_order");
            others(sizes, etas("areal", &[0, 1, 2, 4, 8], &[&order, &limit]))
        },
    },
    Entrant {
        name: "verl",
        companions: "a queue of one period's budget that drops its oldest; published after every \
                     step, and after every fourth as in its recipe",
        trains_on: false,
        values: verl,
    },
    Entrant {
        name: "roll",
        companions: "",
        trains_on: false,
        values: |sizes| {
            let key = "policy_training.async_generation_ratio";
            others(sizes, knobs("roll", key, &["0", "0.5", "1", "2", "4"], &[]))
        },
    },
    Entrant {
        name: "prime_rl",
        companions: "",
        trains_on: true,
        values: |sizes| others(sizes, etas("prime_rl", &[1, 2, 4, 8], &[])),
    },
    Entrant {
        name: "skyrl",
        companions: "",
        trains_on: false,
        values: |sizes| others(sizes, etas("skyrl", &[0, 1, 2, 4, 8], &[])),
    },
    Entrant {
        name: "nemo_rl_window",
        companions: "a buffer of as many batches as its window has steps, with room reserved at \
                     admission",
        trains_on: false,
        values: |sizes| {
            let of = |eta: u32| {
                let size = format!("{OUTPUT}.max_size={}", eta * sizes.samples());
                etas("nemo_rl_window", &[eta], &[&size, &format!("{OUTPUT}.drop_policy=reject")])
            };
            others(sizes, [1, 2, 4, 8].into_iter().flat_map(of).collect())
        },
    },
    Entrant {
        name: "pipeline_rl",
        companions: "the KV cache is kept when weights are swapped",
        trains_on: false,
        values: |sizes| {
            let lags = [0, 1, 2, 4].map(|batches| (batches * sizes.samples()).to_string());
            let lags: Vec<&str> = lags.iter().map(String::as_str).collect();
            let keep = ["policy_serving.kv_on_sync=keep"];
            others(sizes, knobs("pipeline_rl", "policy_training.max_lag_samples", &lags, &keep))
        },
    },
    Entrant {
        name: "one_step_off",
        companions: "",
        trains_on: false,
        values: |sizes| others(sizes, vec![alone("one_step_off")]),
    },
    Entrant {
        name: "slime_train_async",
        companions: "",
        trains_on: false,
        values: |sizes| others(sizes, knobs("slime_train_async", INTERVAL, &["1", "2", "4"], &[])),
    },
    Entrant {
        name: "openclaw",
        companions: "",
        trains_on: false,
        values: |sizes| others(sizes, vec![alone("openclaw")]),
    },
    Entrant {
        name: "sync",
        companions: "",
        trains_on: false,
        values: |sizes| others(sizes, vec![alone("sync")]),
    },
    Entrant {
        name: "none",
        companions: "the output queue is its only bound: so many samples, the oldest dropped; and \
                     the workload's own queue",
        trains_on: true,
        values: none,
    },
];

impl Entrant {
    /// The values of its knob in a workload.
    #[must_use]
    pub fn knobs(&self, scenario: &Scenario) -> Vec<Knob> {
        (self.values)(&Sizes::of(scenario))
    }
}

/// What a sync mode sets. An aborted turn goes on from its tokens in every mode, so that modes
/// differ in how they stop turns and not in what is lost.
#[must_use]
pub fn mode_set(mode: SyncMode) -> Vec<String> {
    use headway_shared::config::Choice as _;
    vec![
        format!("policy_serving.sync_mode={}", mode.word()),
        "policy_serving.aborted=resume".to_owned(),
    ]
}

fn gate_set(gate: &str, more: &[&str]) -> Vec<String> {
    let gate = format!("policy_training.gate={gate}");
    std::iter::once(gate).chain(more.iter().map(|set| (*set).to_owned())).collect()
}

/// A gate without a knob.
fn alone(gate: &str) -> Knob {
    Knob { label: String::new(), set: gate_set(gate, &[]) }
}

/// A gate at each value of its knob.
fn knobs(gate: &str, key: &str, values: &[&str], more: &[&str]) -> Vec<Knob> {
    let name = key.rsplit('.').next().unwrap_or(key);
    let knob = |value: &&str| {
        let mut set = gate_set(gate, more);
        set.push(format!("{key}={value}"));
        Knob { label: format!("{name}={value}"), set }
    };
    values.iter().map(knob).collect()
}

fn etas(gate: &str, etas: &[u32], more: &[&str]) -> Vec<Knob> {
    let values: Vec<String> = etas.iter().map(u32::to_string).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    knobs(gate, ETA, &values, more)
}

/// Knobs with one more thing set (or nothing), which their labels say.
fn with(knobs: Vec<Knob>, label: &str, set: &str) -> Vec<Knob> {
    let add = |knob: Knob| Knob {
        label: [knob.label, label.to_owned()].join(" ").trim_start().to_owned(),
        set: knob.set.into_iter().chain((!set.is_empty()).then(|| set.to_owned())).collect(),
    };
    knobs.into_iter().map(add).collect()
}

/// Each with the queue in the order of arrival, which is the default, and in that of admission.
fn in_both_orders(knobs: Vec<Knob>) -> Vec<Knob> {
    let by_admission = format!("{OUTPUT}.queue_type=admission_order");
    let others = with(knobs.clone(), "queue_type=admission_order", &by_admission);
    knobs.into_iter().chain(others).collect()
}

/// Parking is Headway's own: no other system gives back the place of a turn that waits for its
/// user. Where the workload parks, the gates of others play without it, and once more with it, so
/// that what parking does is not taken for what a gate does; ours the other way round.
fn others(sizes: &Sizes, knobs: Vec<Knob>) -> Vec<Knob> {
    if !sizes.parks {
        return knobs;
    }
    let native = knobs.clone().into_iter().map(never_parks);
    native.chain(with(knobs, "parking", "")).collect()
}

fn ours(sizes: &Sizes, knobs: Vec<Knob>) -> Vec<Knob> {
    if !sizes.parks {
        return knobs;
    }
    let bare = knobs.clone().into_iter().map(never_parks).collect();
    knobs.into_iter().chain(with(bare, "no parking", "")).collect()
}

fn never_parks(mut knob: Knob) -> Knob {
    knob.set.push(format!("{PARK}=0"));
    knob
}

/// The queue holds what a period's budget comes to: `floor(B * (1 + s) * publish interval)` places.
fn verl(sizes: &Sizes) -> Vec<Knob> {
    let of = |(interval, hundredths): (u32, u32)| {
        let budget = sizes.batch.saturating_mul(interval) * (100 + hundredths) / 100;
        let more = [
            format!("{OUTPUT}.max_size={}", budget.saturating_mul(sizes.group)),
            format!("{OUTPUT}.drop_policy=drop_oldest"),
        ];
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let value = crate::report::number::text(f64::from(hundredths) / 100.0);
        let key = "policy_training.staleness_threshold";
        let knobs = knobs("verl", key, &[&value], &more);
        match interval {
            1 => knobs,
            _ => with(
                knobs,
                &format!("publish_interval={interval}"),
                &format!("{INTERVAL}={interval}"),
            ),
        }
    };
    let periods =
        [(1, 0), (1, 50), (1, 100), (1, 200), (1, 400), (4, 0), (4, 10), (4, 50), (4, 100)];
    others(sizes, periods.into_iter().flat_map(of).collect())
}

fn none(sizes: &Sizes) -> Vec<Knob> {
    let of = |batches: u32| {
        let size = (batches * sizes.samples()).to_string();
        let drop = format!("{OUTPUT}.drop_policy=drop_oldest");
        knobs("none", "queue.output.max_size", &[&size], &[&drop])
    };
    let mut all: Vec<Knob> = [1, 2, 4].into_iter().flat_map(of).collect();
    all.push(alone("none"));
    others(sizes, all)
}

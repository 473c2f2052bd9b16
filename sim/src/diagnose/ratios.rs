//! What train steps reported of their ratios, put together.

use std::collections::BTreeMap;

use headway_shared::source::Reported;

use super::STEPS_OF_A_TREND;
use super::pool::{Means, Pool};

/// Steps whose tokens are looked at together: a blow-up shorter than the run still shows.
const WINDOW: usize = 16;

/// The ratio of a run: learner/rollout, by the staleness of the tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ratios {
    /// What they were fitted to, where a simulation has predicted them; `None`: they were measured.
    pub predicted: Option<String>,
    /// By staleness in versions.
    pub by_staleness: BTreeMap<u32, Pool>,
    /// All tokens.
    pub all: Pool,
    /// The largest mean square over 16 steps in a row, in nats²; of a simulation that of all.
    pub widest: f64,
    /// Tokens scored by the very version that generated them: of staleness 0, and of the lag probe.
    pub same_version: Pool,
    /// Of the lag probe's, those generated behind tokens of another version, and the others.
    pub continued: Pool,
    /// See [`continued`](Self::continued).
    pub begun: Pool,
    /// Deploy/rollout of tokens at most one version old.
    pub deploy_rollout: Pool,
}

/// `train_rollout_logprob_abs_diff` over the steps, in nats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Course {
    /// Steps that it is about.
    pub steps: usize,
    /// Mean over the older half of them.
    pub older: f64,
    /// Mean over the newer half.
    pub newer: f64,
}

/// What one step reported of one ratio, by staleness; `None`: of all its tokens.
type Rows = BTreeMap<Option<u32>, Means>;

#[derive(Debug, Default)]
struct Step {
    learner: Rows,
    deploy: Rows,
    probe: Rows,
    continued: Rows,
    difference: Option<f64>,
}

impl Ratios {
    /// What the steps of a live run reported, with the course of their log-prob difference. `None`
    /// where they reported no ratios.
    pub(super) fn of(reported: &[Reported]) -> (Option<Self>, Option<Course>) {
        let mut steps: BTreeMap<u64, Step> = BTreeMap::new();
        for number in reported {
            steps.entry(number.step.0).or_default().note(number);
        }
        let steps: Vec<Step> = steps.into_values().collect();
        let mut ratios = Self::default();
        for window in windows(&steps) {
            let mut together = Pool::default();
            for step in window {
                step.pools().for_each(|(_, means)| together.add(means));
                ratios.add(step);
            }
            ratios.widest = ratios.widest.max(together.square().unwrap_or(0.0));
        }
        (Some(ratios).filter(|ratios| ratios.all.tokens > 0.0), course(&steps))
    }

    fn add(&mut self, step: &Step) {
        for (staleness, means) in step.pools() {
            self.all.add(means);
            if let Some(staleness) = staleness {
                self.by_staleness.entry(staleness).or_default().add(means);
            }
        }
        let none = Some(0);
        for rows in [&step.learner, &step.probe] {
            rows.get(&none).into_iter().for_each(|means| self.same_version.add(means));
        }
        let (mut probe, mut continued) = (Pool::default(), Pool::default());
        step.probe.get(&none).into_iter().for_each(|means| probe.add(means));
        step.continued.get(&none).into_iter().for_each(|means| continued.add(means));
        self.continued = self.continued.with(&continued);
        self.begun = self.begun.with(&probe.without(&continued));
        let young = step.deploy.range(none..=Some(1));
        young.for_each(|(_, means)| self.deploy_rollout.add(means));
    }
}

impl Step {
    fn note(&mut self, number: &Reported) {
        if number.name == "train_rollout_logprob_abs_diff" && number.staleness.is_none() {
            self.difference = Some(number.value);
        }
        // The longest prefix first.
        let ratios = [
            ("probe_continued_", &mut self.continued),
            ("probe_", &mut self.probe),
            ("learner_rollout_", &mut self.learner),
            ("deploy_rollout_", &mut self.deploy),
        ];
        for (prefix, rows) in ratios {
            if let Some(name) = number.name.strip_prefix(prefix) {
                let means = rows.entry(number.staleness).or_default();
                match name {
                    "tokens" => means.tokens = number.value,
                    "kl_k1" => means.kl_k1 = number.value,
                    "kl_k3" => means.kl_k3 = number.value,
                    "log_square" => means.log_square = number.value,
                    "ess_token" => means.ess_token = number.value,
                    "max" => means.max = Some(number.value),
                    _ => {}
                }
                return;
            }
        }
    }

    /// Its tokens, each once: by staleness, or all together where nothing is said by staleness.
    fn pools(&self) -> impl Iterator<Item = (Option<u32>, &Means)> {
        let split = self.learner.keys().any(Option::is_some);
        let rows = self.learner.iter().map(|(staleness, means)| (*staleness, means));
        rows.filter(move |(staleness, _)| staleness.is_some() == split)
    }

    /// Some of its tokens are older than the policy that was trained.
    fn has_age(&self) -> bool {
        let old = |(staleness, means): (Option<u32>, &Means)| {
            staleness.is_none_or(|staleness| staleness > 0) && means.tokens > 0.0
        };
        self.pools().any(old)
    }
}

/// 16 steps each; a rest of fewer than 8 belongs to the window before it.
fn windows(steps: &[Step]) -> Vec<&[Step]> {
    let mut windows: Vec<&[Step]> = steps.chunks(WINDOW).collect();
    if let [.., before, last] = windows[..]
        && last.len() < WINDOW / 2
    {
        let joined = &steps[steps.len() - before.len() - last.len()..];
        windows.truncate(windows.len() - 2);
        windows.push(joined);
    }
    windows
}

/// The log-prob difference, from the first step on that trained anything older than itself: before
/// that it is small for want of age.
fn course(steps: &[Step]) -> Option<Course> {
    let begin = steps.iter().position(Step::has_age).unwrap_or(0);
    let differences: Vec<f64> = steps[begin..].iter().filter_map(|step| step.difference).collect();
    if differences.len() < STEPS_OF_A_TREND {
        return None;
    }
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (older, newer) = differences.split_at(differences.len() / 2);
    Some(Course { steps: differences.len(), older: mean(older), newer: mean(newer) })
}

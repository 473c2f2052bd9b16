//! The metrics that are compared.

use headway_shared::metrics::{METRICS, Metric};

use super::laws;
use super::tolerance::Tolerance::{self, Absolute, Any, Interval, Relative};
use crate::drift;

/// What a metric is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// How much comes out.
    Throughput,
    /// How old it is, and where its age comes from.
    Staleness,
    /// What clients were refused.
    Refusals,
    /// How long a trained sample took, part by part.
    Waits,
    /// What stood idle.
    Idle,
    /// When nothing was served.
    Windows,
    /// What train steps reported of importance ratios.
    Ratios,
    /// What shows the world itself.
    World,
}

impl Group {
    /// Its name in tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Staleness => "staleness",
            Self::Refusals => "refusals",
            Self::Waits => "waits",
            Self::Idle => "idle",
            Self::Windows => "windows",
            Self::Ratios => "ratios",
            Self::World => "world",
        }
    }
}

/// A metric that is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub group: Group,
    /// How far a prediction may be off where nobody says how far.
    pub tolerance: Tolerance,
}

const fn figure(group: Group, name: &'static str, tolerance: Tolerance) -> Figure {
    Figure { name, group, tolerance }
}

/// What is compared, in the order of tables.
pub const FIGURES: &[Figure] = &[
    figure(Group::Throughput, "trained_samples_per_hour", Relative(0.1)),
    figure(Group::Throughput, "generated_tokens_per_second", Relative(0.1)),
    figure(Group::Throughput, "steps_per_hour", Relative(0.1)),
    figure(Group::Staleness, "staleness_head_mean", Absolute(0.25)),
    figure(Group::Staleness, "staleness_head_p95", Any),
    figure(Group::Staleness, "staleness_head_max", Any),
    figure(Group::Staleness, "staleness_part_publish_lag", Absolute(0.3)),
    figure(Group::Staleness, "staleness_part_generating", Absolute(0.3)),
    figure(Group::Staleness, "staleness_part_next_state", Absolute(0.3)),
    figure(Group::Staleness, "staleness_part_judge_queue", Absolute(0.3)),
    figure(Group::Staleness, "staleness_part_judging", Absolute(0.3)),
    figure(Group::Staleness, "staleness_part_group_mates", Absolute(0.3)),
    figure(Group::Staleness, "staleness_part_output_queue", Absolute(0.3)),
    figure(Group::Staleness, "publish_lag_mean", Any),
    figure(Group::Refusals, "refused_stale_share", Absolute(0.05)),
    figure(Group::Refusals, "refused_queue_full_share", Absolute(0.05)),
    figure(Group::Refusals, "refused_other_429_share", Absolute(0.05)),
    figure(Group::Refusals, "refused_503_share", Absolute(0.05)),
    figure(Group::Refusals, "discarded_share", Any),
    figure(Group::Waits, "part_seconds_first_token", Any),
    figure(Group::Waits, "part_seconds_generating", Any),
    figure(Group::Waits, "part_seconds_next_state", Any),
    figure(Group::Waits, "part_seconds_judge_queue", Any),
    figure(Group::Waits, "part_seconds_judging", Any),
    figure(Group::Waits, "part_seconds_group_mates", Any),
    figure(Group::Waits, "part_seconds_output_queue", Any),
    figure(Group::Idle, "trainer_idle_share", Any),
    figure(Group::Idle, "serving_idle_share", Any),
    figure(Group::Idle, "judge_idle_share", Any),
    figure(Group::Windows, "closed_share", Any),
    figure(Group::Windows, "closed_windows_per_hour", Any),
    figure(Group::Windows, "closed_seconds_mean", Any),
    figure(Group::Windows, "closed_seconds_max", Any),
    figure(Group::Ratios, "learner_rollout_step_p99", Interval),
    figure(Group::Ratios, "train_rollout_logprob_abs_diff", Interval),
    figure(Group::Ratios, "clipped_fraction", Any),
    figure(Group::Ratios, "learner_rollout_log_square", Any),
    figure(Group::World, "vote_seconds_mean", Any),
    figure(Group::World, "step_seconds_mean", Any),
    figure(Group::World, "turn_tokens_mean", Any),
    figure(Group::World, "token_seconds_mean", Any),
    figure(Group::World, "save_seconds_mean", Any),
    figure(Group::World, "transfer_seconds_mean", Any),
    figure(Group::World, "load_seconds_mean", Any),
];

impl Figure {
    /// The metric; every figure is one.
    #[must_use]
    pub fn metric(&self) -> Option<&'static Metric> {
        let mut all = METRICS.iter().chain(drift::METRICS).chain(laws::METRICS);
        all.find(|metric| metric.name == self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_metric_and_every_figure_of_the_world_is_compared() {
        assert!(FIGURES.iter().all(|figure| figure.metric().is_some()));
        let world = FIGURES.iter().filter(|figure| figure.group == Group::World);
        assert!(world.map(|figure| figure.name).eq(laws::METRICS.iter().map(|metric| metric.name)));
    }

    #[test]
    fn every_part_of_staleness_is_compared() {
        for part in headway_shared::core::STALENESS_PARTS {
            let name = format!("staleness_part_{part}");
            assert!(FIGURES.iter().any(|figure| figure.name == name), "{name}");
        }
    }
}

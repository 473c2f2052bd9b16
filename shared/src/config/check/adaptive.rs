//! Rules about the adaptive bound.

use super::gates::reads_eta;
use crate::config::choices::{Bound, Choice, Correction, GateKind, Signal};
use crate::config::diagnostic::Severity;
use crate::config::sections::{Config, MILLION};

const SIGNAL: &str = "policy_training.adaptive.signal";
const TARGET: &str = "policy_training.adaptive.target";
const MIN: &str = "policy_training.adaptive.min";
const MAX: &str = "policy_training.adaptive.max";
const DECREASE: &str = "policy_training.adaptive.decrease";
const ETA: &str = "policy_training.max_head_off_policyness";
const INTERVAL: &str = "policy_training.publish_interval";
const CORRECTION: &str = "policy_training.correction";

/// A rule about the adaptive bound that a configuration breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdaptiveProblem {
    /// The signal has no target.
    NoTarget,
    /// A share is to stay at 1 or above, where it never is.
    TargetBeyondShare,
    /// `min` is above `max`.
    MinAboveMax,
    /// η does not begin between them.
    BeginsOutside,
    /// The smallest η (or the filter with it) ends before the first publication is due, so that it
    /// never comes.
    NeverPublishes,
    /// What η is multiplied by is no factor between 0 and 1.
    NoDecrease,
    /// The gate does not read η: it would move, and nothing with it.
    UnreadByGate,
    /// Nothing is clipped without a correction: η would only rise.
    NothingIsClipped,
    /// A correction that clips nothing with one update per step.
    ClipsBetweenUpdates,
}

/// Every rule that is broken; none where η does not move.
pub(super) fn check(config: &Config) -> Vec<AdaptiveProblem> {
    use AdaptiveProblem as P;
    let (adaptive, training) = (&config.adaptive, &config.policy_training);
    if !adaptive.is_on() {
        return Vec::new();
    }
    let eta = training.max_head_off_policyness;
    let lag = training.publish_interval.saturating_sub(1);
    let filter = config.stale_filter_at(adaptive.min).unwrap_or(u32::MAX);
    let is_share = adaptive.signal != Signal::LogprobAbsDiff;
    let clipped = adaptive.signal == Signal::ClippedFraction;
    let between = training.correction == Correction::Decoupled && training.updates_per_step == 1;
    let rules = [
        (P::NoTarget, adaptive.target == 0),
        (P::TargetBeyondShare, is_share && adaptive.target >= MILLION),
        (P::MinAboveMax, adaptive.min > adaptive.max),
        (
            P::BeginsOutside,
            adaptive.min <= adaptive.max && !(adaptive.min..=adaptive.max).contains(&eta),
        ),
        (P::NeverPublishes, adaptive.min.min(filter) < lag),
        (P::NoDecrease, adaptive.decrease == 0 || adaptive.decrease >= MILLION),
        (P::UnreadByGate, !binds(config)),
        (P::NothingIsClipped, clipped && training.correction == Correction::None),
        (P::ClipsBetweenUpdates, clipped && between),
    ];
    rules.into_iter().filter(|(_, broken)| *broken).map(|(problem, _)| problem).collect()
}

/// What the gate does depends on η.
fn binds(config: &Config) -> bool {
    let training = &config.policy_training;
    match training.gate {
        GateKind::Sync => false,
        // They admit everything, and only a strict bound discards.
        GateKind::None | GateKind::Openclaw => training.bound == Bound::Strict,
        gate => reads_eta(gate),
    }
}

impl AdaptiveProblem {
    pub(super) const fn severity(self) -> Severity {
        match self {
            Self::ClipsBetweenUpdates => Severity::Warning,
            _ => Severity::Error,
        }
    }

    pub(super) fn keys(self) -> Vec<&'static str> {
        match self {
            Self::NoTarget => vec![SIGNAL],
            Self::TargetBeyondShare => vec![TARGET, SIGNAL],
            Self::MinAboveMax => vec![MIN, MAX, SIGNAL],
            Self::BeginsOutside => vec![ETA, MIN, MAX, SIGNAL],
            Self::NeverPublishes => vec![MIN, INTERVAL, SIGNAL],
            Self::NoDecrease => vec![DECREASE, SIGNAL],
            Self::UnreadByGate => vec![SIGNAL, "policy_training.gate"],
            Self::NothingIsClipped | Self::ClipsBetweenUpdates => vec![SIGNAL, CORRECTION],
        }
    }

    pub(in crate::config) fn message(self, config: &Config) -> String {
        let (adaptive, training) = (&config.adaptive, &config.policy_training);
        let eta = training.max_head_off_policyness;
        match self {
            Self::NoTarget => format!(
                "η follows `{}`, and no `target` says where that is to stay",
                adaptive.signal.word()
            ),
            Self::TargetBeyondShare => format!(
                "`target` is {}, but `{}` is a share, never above 1",
                decimal(adaptive.target),
                adaptive.signal.word()
            ),
            Self::MinAboveMax => {
                format!("`min` is {}, above a `max` of {}", adaptive.min, adaptive.max)
            }
            Self::BeginsOutside => format!(
                "η begins at `max_head_off_policyness` = {eta}, outside of {} to {}",
                adaptive.min, adaptive.max
            ),
            Self::NeverPublishes => format!(
                "η may fall to {}, but weights are published after {} train steps: the run would \
                 wait for ever",
                adaptive.min, training.publish_interval
            ),
            Self::NoDecrease => format!(
                "`decrease` is {}: multiplied by it, η does not fall step by step",
                decimal(adaptive.decrease)
            ),
            Self::UnreadByGate => format!(
                "η would move and nothing with it: the `{}` gate does not bind by it",
                training.gate.word()
            ),
            Self::NothingIsClipped => "nothing is clipped without a correction: the signal would \
                 be 0 for ever, and η would rise to `max`"
                .to_owned(),
            Self::ClipsBetweenUpdates => "`correction = \"decoupled\"` clips the learner by the \
                 policy at the start of the step, which are the same with one update: the signal \
                 is 0 whatever η is"
                .to_owned(),
        }
    }

    pub(in crate::config) fn remedy(self, config: &Config) -> String {
        let (adaptive, training) = (&config.adaptive, &config.policy_training);
        match self {
            Self::NoTarget => {
                format!("write `target = {}` under it, or `signal = \"off\"`", example(config))
            }
            Self::TargetBeyondShare => format!("write `target = {}`", example(config)),
            Self::MinAboveMax => format!("write `max = {}` or more", adaptive.min),
            Self::BeginsOutside => format!(
                "write `max_head_off_policyness` from {} to {}, or other limits",
                adaptive.min, adaptive.max
            ),
            Self::NeverPublishes => {
                let lag = training.publish_interval.saturating_sub(1);
                let filter = config.stale_filter_at(adaptive.min).unwrap_or(u32::MAX);
                let short = lag.saturating_sub(filter.min(adaptive.min));
                format!(
                    "write `min = {}` or more, or a smaller `publish_interval`",
                    adaptive.min.saturating_add(short)
                )
            }
            Self::NoDecrease => "write `decrease = 0.5`, or another between 0 and 1".to_owned(),
            Self::UnreadByGate if matches!(training.gate, GateKind::None | GateKind::Openclaw) => {
                "write `signal = \"off\"`, or `bound = \"strict\"`, or `gate = \"headway\"`"
                    .to_owned()
            }
            Self::UnreadByGate => "write `signal = \"off\"`, or `gate = \"headway\"`".to_owned(),
            Self::NothingIsClipped => "write `correction = \"ppo_clip\"` or another, or `signal = \
                 \"logprob_abs_diff\"`"
                .to_owned(),
            Self::ClipsBetweenUpdates => {
                "write `signal = \"logprob_abs_diff\"` or `\"ess\"`".to_owned()
            }
        }
    }
}

/// A target that such a signal could have.
fn example(config: &Config) -> &'static str {
    match config.adaptive.signal {
        Signal::Ess => "0.9",
        Signal::ClippedFraction => "0.02",
        _ => "0.05",
    }
}

fn decimal(millionths: u32) -> f64 {
    f64::from(millionths) / f64::from(MILLION)
}

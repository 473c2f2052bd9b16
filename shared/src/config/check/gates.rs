//! Rules about the gates of other systems, and about keys that a gate does not read.

use super::Problem;
use crate::config::choices::{DropPolicy, GateKind};
use crate::config::sections::{Config, PolicyTraining};

pub(super) const RATIO: &str = "policy_training.async_generation_ratio";
const ETA: &str = "policy_training.max_head_off_policyness";
const THRESHOLD: &str = "policy_training.staleness_threshold";
const LAG: &str = "policy_training.max_lag_samples";

pub(super) fn check(config: &Config) -> Vec<Problem> {
    let mut problems = match config.policy_training.gate {
        GateKind::Roll => roll(config),
        GateKind::OneStepOff if config.policy_training.publish_interval > 1 => {
            vec![Problem::OneStepPublishes]
        }
        GateKind::Verl => verl(config),
        _ => Vec::new(),
    };
    problems.extend(unread(&config.policy_training));
    problems
}

/// What the gate admits fills its batches only if nothing within its bound is discarded.
pub(super) fn needs_all_it_binds(config: &Config) -> bool {
    let own = [GateKind::None, GateKind::Openclaw, GateKind::Verl, GateKind::PipelineRl];
    !own.contains(&config.policy_training.gate)
}

/// Right before a publication is due, (a + 1 - lag) * B places are left, of which a batch needs B.
fn roll(config: &Config) -> Vec<Problem> {
    let training = &config.policy_training;
    let lag = u64::from(training.publish_interval - 1);
    let needed = lag.saturating_mul(u64::from(training.batch_size));
    // A ratio whose bound is below the lag is refused as such.
    let bound_reaches = u64::from(config.bound_versions()) >= lag;
    let short = bound_reaches && config.roll_ahead() < needed;
    short.then_some(Problem::RollNeverPublishes).into_iter().collect()
}

/// While one step trains, everything else of a period can arrive, and what does not fit is dropped
/// and stays counted: what is left must fill the period's other batches.
fn verl(config: &Config) -> Vec<Problem> {
    let training = &config.policy_training;
    let output = &config.queue.output;
    let size = u64::from(output.max_size);
    let others =
        u64::from(training.publish_interval - 1).saturating_mul(config.samples_per_batch());
    let holds_all = size >= config.verl_budget().saturating_mul(u64::from(training.group_size));
    let drops = matches!(output.drop_policy, DropPolicy::DropOldest | DropPolicy::DropNewest);
    let rules = [
        (Problem::VerlLosesPlaces, drops && !holds_all && size < others),
        (Problem::VerlDropsOldest, !holds_all && output.drop_policy != DropPolicy::DropOldest),
    ];
    rules.into_iter().filter(|(_, broken)| *broken).map(|(problem, _)| problem).collect()
}

/// What the gate binds is η, or measured against it.
pub(in crate::config) fn reads_eta(gate: GateKind) -> bool {
    !matches!(
        gate,
        GateKind::Verl
            | GateKind::Roll
            | GateKind::PipelineRl
            | GateKind::OneStepOff
            | GateKind::SlimeTrainAsync
    )
}

/// Keys that are set, and mean nothing to the gate.
fn unread(training: &PolicyTraining) -> Vec<Problem> {
    let default = PolicyTraining::default();
    let gate = training.gate;
    let keys = [
        (
            ETA,
            reads_eta(gate) || training.max_head_off_policyness == default.max_head_off_policyness,
        ),
        (
            THRESHOLD,
            gate == GateKind::Verl || training.staleness_threshold == default.staleness_threshold,
        ),
        (
            RATIO,
            gate == GateKind::Roll
                || training.async_generation_ratio == default.async_generation_ratio,
        ),
        (LAG, gate == GateKind::PipelineRl || training.max_lag_samples == default.max_lag_samples),
    ];
    keys.iter().filter(|(_, fine)| !fine).map(|(key, _)| Problem::UnreadByGate(key)).collect()
}

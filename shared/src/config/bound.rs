//! What a configuration binds: the numbers behind the gates' own keys.

use super::choices::{Bound, GateKind};
use super::sections::Config;

const MILLION: u64 = 1_000_000;

impl Config {
    /// The bound binds every trained sample: `bound = "strict"`, the `headway` gate at η = 0, which
    /// is synchronous, or a gate that is strict by its own rule.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.is_strict_at(self.policy_training.max_head_off_policyness)
    }

    /// The same with this η in force.
    #[must_use]
    pub fn is_strict_at(&self, eta: u32) -> bool {
        let training = &self.policy_training;
        match training.gate {
            GateKind::Roll | GateKind::PrimeRl | GateKind::NemoRlWindow => true,
            GateKind::Headway if eta == 0 => true,
            _ => training.bound == Bound::Strict,
        }
    }

    /// How many learner versions a sample may be behind at the start of its step by the gate's own
    /// rule, if samples are ready in the order of admission: η, for gates that have one. For
    /// `none` and `openclaw`, which bound nothing, η is what they are measured against.
    #[must_use]
    pub fn bound_versions(&self) -> u32 {
        self.bound_versions_at(self.policy_training.max_head_off_policyness)
    }

    /// The same with this η in force.
    #[must_use]
    pub fn bound_versions_at(&self, eta: u32) -> u32 {
        let training = &self.policy_training;
        let versions = match training.gate {
            GateKind::Sync => 0,
            GateKind::OneStepOff => 1,
            GateKind::SlimeTrainAsync => u64::from(training.publish_interval),
            GateKind::Roll => u64::from(training.async_generation_ratio).div_ceil(MILLION),
            GateKind::Verl => self.batches_before(self.verl_budget()),
            GateKind::PipelineRl => self.batches_before(self.pipeline_rl_budget()),
            _ => u64::from(eta),
        };
        u32::try_from(versions).unwrap_or(u32::MAX)
    }

    /// `stale_filter_steps` with this η in force: it keeps its distance from η.
    #[must_use]
    pub fn stale_filter_at(&self, eta: u32) -> Option<u32> {
        let set = self.policy_training.max_head_off_policyness;
        let filter = self.policy_training.stale_filter_steps?;
        Some(match eta.checked_sub(set) {
            Some(more) => filter.saturating_add(more),
            None => filter.saturating_sub(set - eta),
        })
    }

    /// Full batches that are trained before the last of so many places.
    fn batches_before(&self, places: u64) -> u64 {
        places.saturating_sub(1) / self.batch()
    }

    fn batch(&self) -> u64 {
        u64::from(self.policy_training.batch_size.max(1))
    }

    /// Places that the `verl` gate gives per sync period: floor(B * (1 + s) * publish interval).
    #[must_use]
    pub fn verl_budget(&self) -> u64 {
        let training = &self.policy_training;
        let share = MILLION + u64::from(training.staleness_threshold);
        let period = u128::from(self.batch()) * u128::from(training.publish_interval);
        u64::try_from(period * u128::from(share) / u128::from(MILLION)).unwrap_or(u64::MAX)
    }

    /// Places that the `roll` gate gives beside one batch per step: ceil(a * B).
    #[must_use]
    pub fn roll_ahead(&self) -> u64 {
        let ratio = u64::from(self.policy_training.async_generation_ratio);
        self.batch().saturating_mul(ratio).div_ceil(MILLION)
    }

    /// Places that the `pipeline_rl` gate gives before the first new version:
    /// ceil(max_lag / group size) and the groups of one update, B * publish interval.
    #[must_use]
    pub fn pipeline_rl_budget(&self) -> u64 {
        let training = &self.policy_training;
        let ahead = training.max_lag_samples.div_ceil(training.group_size.max(1));
        let update = self.batch().saturating_mul(u64::from(training.publish_interval));
        update.saturating_add(u64::from(ahead))
    }
}

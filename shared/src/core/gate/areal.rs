//! AReaL's staleness manager.

use serde::{Deserialize, Serialize};

use super::GateView;

/// min(max(1, max concurrent) - running, (η + v + 1) * max(1, B) - (accepted + running)), where v
/// is the engine's version, `accepted` is cumulative, and a rejected rollout frees its slot and is
/// not counted.
///
/// The bound is aggregate: a straggler may exceed η. Where rejected results fill batches
/// (`batch_counts = "results"`), each step adds B to the allowance and less than B to `accepted`,
/// and the bound loosens for ever.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Areal {
    accepted: u64,
}

impl Areal {
    /// As after a restart at version `learner`: accepted := v * B.
    pub(super) fn at(learner: u32, batch_size: u32) -> Self {
        Self { accepted: u64::from(learner) * u64::from(batch_size) }
    }

    pub(super) fn accepted(&mut self) {
        self.accepted += 1;
    }

    pub(super) fn counted(&self) -> i64 {
        self.accepted as i64
    }

    pub(super) fn capacity(&self, view: &GateView) -> i64 {
        let running = view.unresolved;
        let by_concurrency = view.max_concurrent.max(1) - running;
        let allowance = (view.eta + view.deploy + 1).saturating_mul(view.batch.max(1));
        by_concurrency.min(allowance - (self.accepted as i64 + running))
    }
}

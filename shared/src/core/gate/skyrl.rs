//! SkyRL's staleness manager.

use serde::{Deserialize, Serialize};

use super::{GateView, Standing};

/// (S + global_step) * B - (accepted + running), where S is η and the global step is the one being
/// worked on, counted from 1. It advances once the new weights are synced, so that it is the
/// replica's version + 1.
///
/// The bound is aggregate: a straggler may exceed S. A group that is filtered after it was accepted
/// gives its place back, or the producer would starve: that is what AReaL's rule lacks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Skyrl {
    accepted: i64,
}

impl Skyrl {
    pub(super) fn new(batch: i64, standing: Standing) -> Self {
        Self { accepted: standing.completed(batch) }
    }

    pub(super) fn counted(&self) -> i64 {
        self.accepted
    }

    pub(super) fn capacity(&self, view: &GateView) -> i64 {
        let global_step = view.deploy + 1;
        let allowance = (view.eta + global_step).saturating_mul(view.batch);
        allowance - (self.accepted + view.unresolved)
    }

    pub(super) fn accepted(&mut self, places: i64) {
        self.accepted += places;
    }
}

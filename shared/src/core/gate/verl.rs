//! verl's fully asynchronous rollouter.

use serde::{Deserialize, Serialize};

use super::{GateView, Standing};

/// Stops producing when the queue holds `required` places, or `counted` reaches it, where
///
/// ```text
/// required = floor(B * (1 + s) * publish interval)
/// ```
///
/// and `counted` is what was admitted since the last weight sync and what was under way or queued
/// then. B is verl's `require_batches * ppo_mini_batch_size`, the publish interval its
/// `trigger_parameter_sync_step`. The trainer waits while the weights are synced.
///
/// s is a fraction of a sync period, not a number of versions. What a full queue drops stays
/// counted until the next sync, so that a short queue wastes the period's budget; anything else
/// that is discarded (verl itself discards nothing else) gives its place back, or a period could
/// end with nothing left to train.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Verl {
    required: i64,
    counted: i64,
    /// The newest weights it has counted from.
    synced: u32,
}

impl Verl {
    pub(super) fn new(required: u64, standing: Standing) -> Self {
        let required = i64::try_from(required).unwrap_or(i64::MAX);
        Self { required, counted: standing.waiting(), synced: standing.deploy }
    }

    /// `counted` and `required`.
    pub(super) fn counts(&self) -> (i64, i64) {
        (self.counted, self.required)
    }

    pub(super) fn capacity(&self, view: &GateView) -> i64 {
        let queued = view.outstanding - view.training - view.unresolved;
        self.required - self.counted.max(queued)
    }

    pub(super) fn took_place(&mut self) {
        self.counted += 1;
    }

    pub(super) fn gave_back(&mut self) {
        self.counted -= 1;
    }

    /// Rejected results that fill a batch are counted like others.
    pub(super) fn rejected(&mut self, places: i64) {
        self.counted += places;
    }

    /// New weights are served: what is under way and queued is counted anew.
    pub(super) fn weights_served(&mut self, standing: Standing) {
        if standing.deploy > self.synced {
            self.synced = standing.deploy;
            self.counted = standing.waiting();
        }
    }
}

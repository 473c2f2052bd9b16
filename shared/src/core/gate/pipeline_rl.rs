//! PipelineRL's actor loop.

use serde::{Deserialize, Serialize};

use super::{GateView, Standing};

/// ceil(max_lag / attempts) groups and those of one update at first, and those of one update more
/// per new version of the weights, less those submitted.
///
/// An update holds the groups of one publication, and a version is a step, so that a replica of
/// version v has B * v more. A sample that is too old at the trainer is trained all the same, and
/// only counted. PipelineRL discards nothing; what is discarded here was not submitted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct PipelineRl {
    /// ceil(max_lag / attempts) and the groups of one update.
    first: i64,
    submitted: i64,
}

impl PipelineRl {
    pub(super) fn new(first: u64, batch: i64, standing: Standing) -> Self {
        let first = i64::try_from(first).unwrap_or(i64::MAX);
        Self { first, submitted: standing.submitted(batch) }
    }

    /// What was submitted, and what may be before the first new version.
    pub(super) fn counts(&self) -> (i64, i64) {
        (self.submitted, self.first)
    }

    pub(super) fn capacity(&self, view: &GateView) -> i64 {
        let updates = view.batch.saturating_mul(view.deploy);
        self.first.saturating_add(updates) - self.submitted
    }

    pub(super) fn submitted(&mut self, places: i64) {
        self.submitted += places;
    }
}

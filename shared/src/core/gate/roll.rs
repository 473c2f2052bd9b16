//! ROLL's replay buffer.

use serde::{Deserialize, Serialize};

use super::{GateView, Standing};

/// ceil(a * B) + B prompts at first, and B more per step, less those that run and those completed;
/// what is aborted gives its place back.
///
/// The buffer's step advances when the new weights are there, so that a replica's version is its
/// step. A batch takes samples with a start step >= current - ceil(a), and at the end of a step
/// running ones with a start step <= current - ceil(a) are aborted: strict per sample at ceil(a)
/// versions, which is the core's sweep at each new version. Where ROLL's batch waits for prompts of
/// the oldest step that are still running, `late = "wait"` does.
///
/// What was aborted is asked for anew: long samples are aborted more often, so that trained
/// lengths fall short of those generated.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Roll {
    /// ceil(a * B).
    ahead: i64,
    completed: i64,
}

impl Roll {
    pub(super) fn new(ahead: u64, batch: i64, standing: Standing) -> Self {
        let ahead = i64::try_from(ahead).unwrap_or(i64::MAX);
        Self { ahead, completed: standing.completed(batch) }
    }

    /// What is completed, and ceil(a * B).
    pub(super) fn counts(&self) -> (i64, i64) {
        (self.completed, self.ahead)
    }

    pub(super) fn capacity(&self, view: &GateView) -> i64 {
        let steps = view.batch.saturating_mul(view.deploy + 1);
        self.ahead.saturating_add(steps) - (self.completed + view.unresolved)
    }

    pub(super) fn completed(&mut self, places: i64) {
        self.completed += places;
    }
}

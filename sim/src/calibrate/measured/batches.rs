//! What train steps trained.

use headway_shared::core::{Fate, Resolved, Sample, Scheduler, Stage};

use crate::drift::Batch;

/// The batches of all train steps that made a version, in order.
#[derive(Clone, Debug, Default)]
pub struct Batches {
    /// See there.
    pub batches: Vec<Batch>,
}

impl Batches {
    pub(super) fn observe(&mut self, core: &Scheduler) {
        let trained = |resolved: &&Resolved| resolved.fate == Fate::Trained;
        let samples: Vec<&Sample> =
            core.resolved().iter().filter(trained).map(|resolved| &resolved.sample).collect();
        if let Some(first) = samples.first() {
            let version = first.learner(Stage::TrainStarted).number();
            self.batches.push(Batch::new(version, &samples));
        }
    }
}

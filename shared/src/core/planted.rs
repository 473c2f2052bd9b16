//! What planted bugs need beside their places. Nothing calls it where none is planted.

use super::Scheduler;
use crate::id::RequestId;
use crate::input::Segment;

impl Scheduler {
    /// Places of all batches that were not full.
    pub(super) fn never_filled(&self) -> i64 {
        let training = &self.config.policy_training;
        let batches = self.ledger.steps * u64::from(training.batch_size);
        batches.saturating_sub(self.ledger.trained / u64::from(training.group_size.max(1))) as i64
    }

    /// What a completion that comes twice holds is part of its sample twice.
    pub(super) fn train_again(&mut self, request: RequestId, segments: &[Segment]) {
        let again = self.samples.iter().find(|(_, entry)| entry.sample.request == request);
        if let Some(slot) = again.map(|(slot, _)| slot) {
            let sample = &mut self.samples[slot].sample;
            sample.add_turn(sample.prompt_tokens, segments, sample.deploy);
        }
    }
}

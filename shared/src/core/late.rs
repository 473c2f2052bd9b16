//! Samples that are, or would become, too old.

use super::queue::SampleQueue;
use super::slab::{NONE, Slot};
use super::{SampleState, Scheduler};
use crate::config::Late;

impl Scheduler {
    /// The newest version that one more step makes too old; `None` if none can be.
    pub(super) fn expiring_version(&self) -> Option<u32> {
        self.learner.number().checked_sub(self.bound_steps())
    }

    /// Samples that a step would make too old, and that are not in the output queue.
    pub(super) fn pending_late(&self) -> bool {
        let Some(expiring) = self.expiring_version() else { return false };
        // Where nothing is discarded in flight, what is too old already is there and hopeless.
        let oldest = if self.gate.evicts_in_buffer() { expiring } else { 0 };
        let buckets = self.ages.buckets().iter().take_while(|bucket| bucket.version <= expiring);
        let buckets = buckets.skip_while(|bucket| bucket.version < oldest);
        buckets.map(super::ages::Bucket::pending).sum::<u32>() > 0
    }

    /// A batch waits for late samples.
    pub(super) fn awaits_late(&self) -> bool {
        self.trainer.late_since.is_some() && !self.trainer.late_over
    }

    /// A batch waits for this sample (or for one of its group).
    pub(super) fn is_awaited(&self, slot: Slot) -> bool {
        if !self.awaits_late() {
            return false;
        }
        let Some(expiring) = self.expiring_version() else { return false };
        let expires = |slot: Slot| self.samples[slot].sample.head.number() <= expiring;
        expires(slot) || self.members(slot).into_iter().any(expires)
    }

    /// The oldest awaited sample in a state.
    pub(super) fn awaited_in(&self, state: SampleState) -> Option<Slot> {
        let expiring = self.expiring_version()?;
        self.ages.between(0, expiring).find(|&slot| self.samples[slot].state == state)
    }

    /// The first awaited entry that waits for room in a queue.
    pub(super) fn awaited_of(&self, queue: &SampleQueue) -> Option<Slot> {
        queue.blocked_slots().find(|&slot| self.is_awaited(slot))
    }

    pub(super) fn must_wait_for_late(&mut self) -> bool {
        let training = &self.config.policy_training;
        // What would be late is dropped as surplus.
        let waits = self.is_strict() && training.late == Late::Wait && !self.drops_surplus();
        if !waits || self.trainer.late_over || !self.pending_late() {
            return false;
        }
        self.trainer.late_since.get_or_insert(self.now);
        true
    }

    /// No sample outside a short batch would be trained above η because of it: with full batches
    /// afterwards, oldest first, each of them is trained in time.
    pub(super) fn short_step_is_safe(&self) -> bool {
        if !self.gate.guards_short_steps() {
            return true;
        }
        let bound = u64::from(self.bound_steps());
        let per_step = self.config.samples_per_batch().max(1);
        let learner = u64::from(self.learner.number()) + 1;
        let mut ahead = 0;
        self.ages.buckets().iter().filter(|bucket| bucket.pending() > 0).all(|bucket| {
            ahead += u64::from(bucket.pending());
            let trained_at = learner + (ahead - 1) / per_step;
            trained_at - u64::from(bucket.version) <= bound
        })
    }

    /// Discards what is older than its bound or filter allows. Before a batch is chosen, or the
    /// dead would hold places for ever.
    pub(super) fn sweep(&mut self) {
        let learner = self.learner.number();
        let Some(newest) = learner.checked_sub(self.lowest_limit.saturating_add(1)) else { return };
        if self.ages.oldest().is_none_or(|oldest| oldest > newest) {
            return;
        }
        let mut old = std::mem::take(&mut self.scratch);
        old.extend(self.ages.between(0, newest));
        for slot in old.drain(..) {
            // One of a group can have taken this one with it.
            let Some(entry) = self.samples.get(slot) else { continue };
            let (age, limits) = (learner - entry.sample.head.number(), entry.limits);
            let scored =
                matches!(entry.state, SampleState::OutputQueue | SampleState::OutputBlocked);
            let out_of_reach = self.gate.evicts_in_buffer() && !scored && age <= limits.filter;
            if age > limits.lowest() && !out_of_reach {
                self.discard_too_old(slot);
            }
        }
        self.scratch = old;
    }

    /// A sample of the entry is older than its bound or filter allows.
    pub(super) fn entry_is_too_old(&self, leader: Slot) -> bool {
        self.members(leader).into_iter().any(|member| {
            let entry = &self.samples[member];
            let age = self.learner.number().saturating_sub(entry.sample.head.number());
            age > entry.limits.lowest()
        })
    }

    /// Discards a sample that is too old, and its group with it where the gate says so.
    pub(super) fn discard_too_old(&mut self, slot: Slot) {
        let entry = &self.samples[slot];
        let (group, reason) = (entry.group, entry.limits.reason());
        if group != NONE && self.gate.discards_whole_groups() {
            self.kill_group_as(group, reason, reason);
        } else {
            self.kill(slot, reason);
        }
    }
}

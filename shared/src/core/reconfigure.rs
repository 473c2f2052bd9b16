//! A new configuration in the middle of a run.

use super::gate::Gate;
use super::queue::SampleQueue;
use super::slab::Slot;
use super::{SampleState, Scheduler};
use crate::action::OperatorReply;
use crate::config::{Config, QueueOrder, Severity, check};

impl Scheduler {
    /// Replaces the whole configuration, if it is valid. What is admitted keeps its place and its
    /// bound; what is decided from now on is decided by the new one.
    pub(super) fn reconfigure(&mut self, config: &Config) -> OperatorReply {
        if check(config).iter().any(|problem| problem.severity() == Severity::Error) {
            return OperatorReply::Rejected;
        }
        // It takes effect after a restart: what is half a sample now would be none.
        if config.policy_training.sample_unit != self.config.policy_training.sample_unit {
            return OperatorReply::Rejected;
        }
        // What a gate has counted, it has counted in batches.
        let gate_changes = Gate::changes(&self.config, config);
        let old = std::mem::replace(&mut self.config, config.clone());
        self.rebind(&old);
        if gate_changes {
            self.gate = Gate::new(&self.config, self.standing());
        }
        self.reorder_rollout(self.config.queue.rollout.queue_type);
        self.reorder_output(self.config.queue.output.queue_type);
        self.lowest_limit = self.lowest_limit.min(self.limits().lowest());
        self.rewatch_stragglers();
        self.admission_due = true;
        OperatorReply::Done
    }

    fn reorder_rollout(&mut self, order: QueueOrder) {
        if self.rollout.order() == order {
            return;
        }
        let slots = self.by_entry(&self.rollout);
        for &slot in &slots {
            self.rollout.remove(slot, self.samples[slot].rank, 1);
        }
        self.rollout.set_order(order);
        for slot in slots {
            let entry = &mut self.samples[slot];
            entry.rank = self.rollout.rank(entry.sample.head.number(), entry.sample.id.0);
            self.rollout.push(slot, entry.rank, 1);
        }
    }

    fn reorder_output(&mut self, order: QueueOrder) {
        if self.output.order() == order {
            return;
        }
        let leaders = self.by_entry(&self.output);
        for &leader in &leaders {
            self.output.remove(leader, self.samples[leader].rank, self.weight(leader));
        }
        self.output.set_order(order);
        for leader in leaders {
            self.rank_output(leader);
            debug_assert_eq!(self.samples[leader].state, SampleState::OutputQueue);
            self.output.push(leader, self.samples[leader].rank, self.weight(leader));
        }
    }

    /// The entries of a queue in the order in which they entered.
    fn by_entry(&self, queue: &SampleQueue) -> Vec<Slot> {
        let mut slots = queue.slots();
        slots.sort_by_key(|&slot| self.samples[slot].entered);
        slots
    }
}

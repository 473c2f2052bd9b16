//! The output queue: scored samples, and groups as one entry that its first live member stands for.

use super::slab::{NONE, Slot};
use super::{SampleState, Scheduler, Stage, Violation};
use crate::action::Discard;
use crate::config::DropPolicy;
use crate::planted::Planted;

impl Scheduler {
    pub(super) fn sample_ready(&mut self, slot: Slot) {
        self.samples[slot].stamp(Stage::Ready, self.now, self.learner);
        self.entry_ready(slot, 1);
    }

    /// An entry has its result. Its first live member stands for it.
    pub(super) fn entry_ready(&mut self, leader: Slot, weight: u32) {
        self.admission_due = true;
        if self.gate.evicts_in_buffer() && self.entry_is_too_old(leader) {
            return self.discard_too_old(leader);
        }
        let policy = self.config.queue.output.drop_policy;
        if policy == DropPolicy::DropNewest && !self.output_has_room(leader, weight) {
            self.gate.dropped_on_arrival();
            return self.discard_entry(leader, Discard::OutputQueueFull);
        }
        self.gate.accepted();
        self.places_ready += 1;
        if let Some(group) = self.groups.get_mut(self.samples[leader].group) {
            group.ready = true;
        }
        while policy == DropPolicy::DropOldest
            && !self.output_has_room(leader, weight)
            && let Some(oldest) =
                self.output.fronts().min_by_key(|&front| self.samples[front].entered)
        {
            self.discard_entry(oldest, Discard::OutputQueueFull);
        }
        if self.output_has_room(leader, weight) {
            return self.push_output(leader);
        }
        for member in self.members(leader) {
            self.in_state(member, SampleState::OutputBlocked);
        }
        self.output.block(leader);
    }

    /// The samples of an entry, in the order of admission.
    pub(super) fn members(&self, leader: Slot) -> smallvec::SmallVec<[Slot; 16]> {
        match self.samples[leader].group {
            NONE => smallvec::smallvec![leader],
            group => self.groups[group].members.iter(&self.member_links).collect(),
        }
    }

    pub(super) fn weight(&self, leader: Slot) -> u32 {
        match self.samples[leader].group {
            NONE => 1,
            group => self.groups[group].members.len(),
        }
    }

    pub(super) fn discard_entry(&mut self, leader: Slot, reason: Discard) {
        match self.samples[leader].group {
            NONE => self.discard(leader, reason),
            group => self.kill_group(group, reason),
        }
    }

    pub(super) fn output_has_room(&self, leader: Slot, weight: u32) -> bool {
        let promised = if self.samples[leader].reserved_output { 0 } else { self.output.reserved };
        let needed = self.output.samples + promised + weight;
        needed <= self.output_size() || self.is_awaited(leader)
    }

    fn output_size(&self) -> u32 {
        let more = u32::from(self.plant.is(Planted::QueueOverCapacity));
        self.config.queue.output.max_size + more
    }

    pub(super) fn push_output(&mut self, leader: Slot) {
        self.samples[leader].entered = self.entry_ordinal();
        self.rank_output(leader);
        self.output.push(leader, self.samples[leader].rank, self.weight(leader));
        let fits = self.output.samples <= self.output_size() || self.is_awaited(leader);
        self.ensure(fits, Violation::QueueSize);
    }

    /// Puts an entry's samples into the state of the output queue, and gives it its rank.
    pub(super) fn rank_output(&mut self, leader: Slot) {
        let mut head = u32::MAX;
        for member in self.members(leader) {
            self.release_output_room(member);
            self.in_state(member, SampleState::OutputQueue);
            self.set_exempt(member, true);
            head = head.min(self.samples[member].sample.head.number());
        }
        let admission = self.samples[leader].sample.id.0;
        self.samples[leader].rank = self.output.rank(head, admission);
    }

    /// Takes one sample out of its entry, which is in the output queue or waits for it.
    pub(super) fn leave_output(&mut self, slot: Slot) {
        let entry = &self.samples[slot];
        let (rank, entered, group) = (entry.rank, entry.entered, entry.group);
        let queued = entry.state == SampleState::OutputQueue;
        let members = match group {
            NONE => None,
            group => Some(self.groups[group].members),
        };
        let leads = members.is_none_or(|members| members.front() == Some(slot));
        let heir = members.and_then(|members| members.after(&self.member_links, slot));
        self.admission_due = true;
        match (leads, heir) {
            (false, _) => self.output.samples -= u32::from(queued),
            (true, None) if queued => self.output.remove(slot, rank, 1),
            (true, None) => self.output.unblock(slot),
            (true, Some(heir)) => {
                (self.samples[heir].rank, self.samples[heir].entered) = (rank, entered);
                if queued {
                    self.output.replace(slot, heir, rank);
                    self.output.samples -= 1;
                } else {
                    self.output.replace_blocked(slot, heir);
                }
            }
        }
    }

    /// Lets entries that wait for room into the output queue.
    pub(super) fn unblock_output(&mut self) -> bool {
        let mut moved = false;
        while let Some(leader) = self.output.blocked.front() {
            if !self.output_has_room(leader, self.weight(leader)) {
                break;
            }
            self.output.unblock(leader);
            self.push_output(leader);
            moved = true;
        }
        if self.awaits_late() {
            while let Some(leader) = self.awaited_of(&self.output) {
                self.output.unblock(leader);
                self.push_output(leader);
                moved = true;
            }
        }
        moved
    }
}

//! How a sample leaves the ledger: trained or discarded, alone or with its group.

use super::scheduler::{Fate, Resolved};
use super::slab::{NONE, Slot};
use super::state::Entry;
use super::{SampleState, Scheduler};
use crate::action::{Action, Discard};
use crate::config::BatchCounts;

impl Discard {
    /// The sample was judged and rejected: AReaL's `dynamic_bs` counts it as a result.
    fn is_rejection(self) -> bool {
        matches!(self, Self::JudgeFailed | Self::Tie | Self::ZeroScore)
    }
}

fn is_ready(state: SampleState) -> bool {
    matches!(state, SampleState::OutputBlocked | SampleState::OutputQueue | SampleState::Training)
}

impl Scheduler {
    /// Discards a sample, and stops whatever is being done for it, its generation included.
    pub(super) fn kill(&mut self, slot: Slot, reason: Discard) {
        let turn = std::mem::replace(&mut self.samples[slot].turn, NONE);
        self.discard(slot, reason);
        self.detach_turn(turn);
    }

    /// Discards a sample whose turn is over.
    pub(super) fn discard(&mut self, slot: Slot, reason: Discard) {
        match self.samples[slot].state {
            SampleState::Generating | SampleState::GroupWait | SampleState::Training => {}
            SampleState::Parked if self.samples[slot].returning => {
                self.returning.remove(slot, self.samples[slot].sample.head.number(), false);
            }
            SampleState::AwaitingState | SampleState::AwaitingSessionEnd | SampleState::Parked => {
                self.stop_waiting(slot);
            }
            SampleState::RolloutBlocked => self.rollout.unblock(slot),
            SampleState::RolloutQueue => {
                self.rollout.remove(slot, self.samples[slot].rank, 1);
                self.admission_due = true;
            }
            SampleState::Judging => self.close_ballot(slot),
            SampleState::OutputBlocked | SampleState::OutputQueue => self.leave_output(slot),
        }
        self.ledger.discarded[reason.index()] += 1;
        self.act(Action::Discard { sample: self.samples[slot].sample.id, reason });
        let Some(entry) = self.release(slot) else { return };
        let (group, state) = (entry.group, entry.state);
        self.resolved.push(Resolved { sample: entry.sample, fate: Fate::Discarded(reason) });
        if group != NONE {
            self.groups[group].scored -= u32::from(state == SampleState::GroupWait);
            return self.check_group(group, reason);
        }
        if state != SampleState::Parked {
            self.places -= 1;
            self.places_ready -= u64::from(is_ready(state));
            self.count_rejection(reason);
        }
    }

    /// A sample was trained: it leaves with its score, its group with its last member.
    pub(super) fn trained(&mut self, slot: Slot) {
        let Some(entry) = self.release(slot) else { return };
        self.ledger.trained += 1;
        let above = entry.sample.staleness_head() > entry.limits.eta;
        self.ledger.trained_above_bound += u64::from(above);
        let group = entry.group;
        self.resolved.push(Resolved { sample: entry.sample, fate: Fate::Trained });
        if group == NONE || self.groups[group].members.is_empty() {
            self.places -= 1;
            self.places_ready -= 1;
        }
        self.forget_group_if_over(group);
    }

    /// Takes a sample out of everything that holds for every state.
    fn release(&mut self, slot: Slot) -> Option<Entry> {
        self.release_slot(slot);
        self.release_room(slot);
        self.admission_due = true;
        let entry = self.samples.remove(slot)?;
        self.sample_of.remove(entry.sample.id.0);
        self.ages.remove(slot, entry.sample.head.number(), entry.exempt);
        self.ledger.in_state[entry.state as usize] -= 1;
        if entry.group != NONE {
            self.groups[entry.group].members.remove(&mut self.member_links, slot);
        }
        self.leave_session(entry.session);
        Some(entry)
    }

    /// A sample needs its session no longer.
    pub(super) fn leave_session(&mut self, session: Slot) {
        if session != NONE {
            self.sessions[session].samples -= 1;
            self.forget_session_if_over(session);
        }
    }

    fn count_rejection(&mut self, reason: Discard) {
        let counts = self.config.policy_training.batch_counts == BatchCounts::Results;
        if counts && reason.is_rejection() {
            self.trainer.rejected.push_back(self.next_entry);
            self.next_entry += 1;
        }
    }

    pub(super) fn set_exempt(&mut self, slot: Slot, exempt: bool) {
        let entry = &mut self.samples[slot];
        if entry.exempt != exempt {
            entry.exempt = exempt;
            self.ages.set_exempt(entry.sample.head.number(), exempt);
        }
    }

    /// Gives back the room that a sample has reserved in the queues it has not entered.
    pub(super) fn release_room(&mut self, slot: Slot) {
        self.release_rollout_room(slot);
        self.release_output_room(slot);
    }

    pub(super) fn release_rollout_room(&mut self, slot: Slot) {
        let held = std::mem::take(&mut self.samples[slot].reserved_rollout);
        self.rollout.reserved -= u32::from(held);
    }

    pub(super) fn release_output_room(&mut self, slot: Slot) {
        let held = std::mem::take(&mut self.samples[slot].reserved_output);
        self.output.reserved -= u32::from(held);
    }
}

/// Groups.
impl Scheduler {
    /// A member has left, or has its score: the group may be ready, or lost.
    pub(super) fn check_group(&mut self, slot: Slot, reason: Discard) {
        let Some(group) = self.groups.get(slot) else { return };
        let alive = group.members.len();
        let possible = alive + group.size.saturating_sub(group.consumed);
        if group.dead {
            return self.forget_group_if_over(slot);
        }
        if possible < self.config.policy_training.min_group_size.clamp(1, group.size) {
            self.kill_group(slot, reason);
        } else if !group.ready && group.consumed >= group.size && group.scored == alive {
            self.group_ready(slot);
        }
    }

    /// The whole group is discarded; members yet to come are refused.
    pub(super) fn kill_group(&mut self, slot: Slot, reason: Discard) {
        self.release_unclaimed_room(slot);
        let group = &mut self.groups[slot];
        group.dead = true;
        let (placed, ready) = (group.placed, group.ready);
        let of_queue = matches!(reason, Discard::OutputQueueFull | Discard::Surplus);
        let of_members = match of_queue || reason == Discard::StepFailed {
            true => reason,
            false => Discard::GroupTooSmall,
        };
        while let Some(member) = self.groups.get(slot).and_then(|group| group.members.front()) {
            self.kill(member, of_members);
        }
        if placed {
            self.places -= 1;
            self.places_ready -= u64::from(ready);
            self.count_rejection(reason);
        }
        self.admission_due = true;
        self.forget_group_if_over(slot);
    }

    /// Gives back the room that was reserved for members yet to come.
    fn release_unclaimed_room(&mut self, slot: Slot) {
        let group = &mut self.groups[slot];
        self.rollout.reserved -= std::mem::take(&mut group.reserved_rollout);
        self.output.reserved -= std::mem::take(&mut group.reserved_output);
    }

    /// No member of the group will come any more, or none ever came.
    pub(super) fn forget_group_if_over(&mut self, slot: Slot) {
        let Some(group) = self.groups.get(slot) else { return };
        let over = match group.placed {
            true => group.members.is_empty() && group.consumed >= group.size,
            false => group.requested == 0 || group.consumed >= group.size,
        };
        if over && (group.dead || group.ready || !group.placed) {
            let id = group.id;
            self.groups.remove(slot);
            self.group_of.remove(id.0);
        }
    }

    /// The source is exhausted and no request is under way: groups that lack members get none.
    pub(super) fn close_groups(&mut self) {
        let open: Vec<Slot> = self.groups.iter().map(|(slot, _)| slot).collect();
        for slot in open {
            let group = self.groups.get(slot).filter(|group| !group.ready && group.consumed > 0);
            if let Some(group) = group {
                self.groups[slot].size = group.consumed;
                self.release_unclaimed_room(slot);
                self.check_group(slot, Discard::GroupTooSmall);
            }
        }
    }
}

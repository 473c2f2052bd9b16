//! How a sample leaves the ledger: trained or discarded, alone or with its group.

use super::scheduler::{Fate, Resolved};
use super::slab::{NONE, Slot};
use super::state::Entry;
use super::{SampleState, Scheduler};
use crate::action::{Action, Discard};
use crate::config::BatchCounts;
use crate::planted::Planted;

impl Discard {
    /// The sample was judged and rejected: AReaL's `dynamic_bs` counts it as a result.
    fn is_rejection(self) -> bool {
        matches!(self, Self::JudgeFailed | Self::Tie | Self::ZeroScore | Self::ZeroVariance)
    }

    /// A queue was full.
    fn is_eviction(self) -> bool {
        matches!(self, Self::RolloutQueueFull | Self::OutputQueueFull)
    }

    /// It is said of a whole group, and so of each of its members.
    pub(super) fn is_of_groups(self) -> bool {
        matches!(
            self,
            Self::OutputQueueFull | Self::Surplus | Self::StepFailed | Self::ZeroVariance
        )
    }
}

fn is_ready(state: SampleState) -> bool {
    matches!(state, SampleState::OutputBlocked | SampleState::OutputQueue | SampleState::Training)
}

impl Scheduler {
    /// Discards a sample, and stops whatever is being done for it, its generation included.
    pub(super) fn kill(&mut self, slot: Slot, reason: Discard) {
        let mut turns = self.take_turns(slot);
        self.discard(slot, reason);
        while let Some(turn) = turns.pop_front(&mut self.sample_links) {
            self.detach_turn(turn);
        }
    }

    /// Discards a sample none of whose turns is under way.
    pub(super) fn discard(&mut self, slot: Slot, reason: Discard) {
        debug_assert!(self.samples[slot].turns.is_empty(), "its turns would be left behind");
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
        let silent = reason.is_eviction() && self.plant.is(Planted::SilentEviction);
        if !silent {
            self.act(Action::Discard { sample: self.samples[slot].sample.id, reason });
        }
        let Some(entry) = self.release(slot) else { return };
        let (group, state, session) = (entry.group, entry.state, entry.session);
        if !silent {
            self.resolved.push(Resolved { sample: entry.sample, fate: Fate::Discarded(reason) });
        }
        if group != NONE {
            self.groups[group].scored -= u32::from(state == SampleState::GroupWait);
            self.check_group(group, reason);
        } else if state != SampleState::Parked {
            self.places -= 1;
            self.places_ready -= u64::from(is_ready(state));
            self.gate.discarded(is_ready(state), reason);
            self.count_rejection(reason);
        }
        self.end_hosted_session(session);
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
            self.bury_group(group);
        }
    }

    /// Takes a sample out of everything that holds for every state.
    fn release(&mut self, slot: Slot) -> Option<Entry> {
        self.release_slot(slot);
        self.release_room(slot);
        self.admission_due |= !self.plant.is(Planted::LostWakeUp);
        let entry = self.samples.remove(slot)?;
        self.sample_of.remove(entry.sample.id.0);
        self.ages.remove(slot, entry.sample.head.number(), entry.exempt);
        self.ledger.in_state[entry.state as usize] -= 1;
        if entry.group != NONE {
            self.groups[entry.group].members.remove(&mut self.member_links, slot);
        }
        self.lose_trajectory(entry.session, slot);
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

    pub(super) fn count_rejection(&mut self, reason: Discard) {
        let counts = self.config.policy_training.batch_counts == BatchCounts::Results;
        if counts && reason.is_rejection() {
            let ordinal = self.entry_ordinal();
            self.trainer.rejected.push_back(ordinal);
            self.gate.rejected(1);
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

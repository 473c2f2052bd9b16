//! Requests that wait: held for a place, or in line for a replica.

use super::Scheduler;
use super::slab::{NONE, Slot};
use super::state::{Purpose, Turn, TurnState};
use crate::action::{Action, Discard, Refusal};

impl Scheduler {
    pub(super) fn hold(&mut self, slot: Slot) {
        let needs_place = self.needs_place(slot);
        let turn = &self.turns[slot];
        let request = turn.request;
        if turn.purpose == Purpose::Train {
            self.ledger.held += 1;
        }
        self.hold_timers.push_back(&mut self.turn_timer_links, slot);
        self.act(Action::Hold { request });
        if !needs_place {
            self.turns[slot].state = TurnState::InLine;
            return self.line.push_back(&mut self.turn_links, slot);
        }
        match self.group_slot(slot) {
            Some(group) if self.groups[group].representative != NONE => {
                self.turns[slot].state = TurnState::HeldWithGroup;
                self.groups[group].held.push_back(&mut self.turn_links, slot);
            }
            group => {
                if let Some(group) = group {
                    self.groups[group].representative = slot;
                }
                self.held.push_back(&mut self.turn_links, slot);
            }
        }
    }

    /// Turns of a session that wait for a place, behind others or with their group, need none any more.
    #[cold]
    pub(super) fn line_up_turns_of(&mut self, session: Slot) {
        let waits = |turn: &Turn| {
            turn.session == session
                && turn.sample == NONE
                && matches!(turn.state, TurnState::Held | TurnState::HeldWithGroup)
        };
        let mut waiting: Vec<Slot> =
            self.turns.iter().filter(|(_, turn)| waits(turn)).map(|(slot, _)| slot).collect();
        waiting.sort_unstable_by_key(|&slot| self.turns[slot].request);
        for slot in waiting {
            self.leave_held(slot);
            self.line_up(slot);
        }
    }

    /// A turn that waited for a place needs none any more.
    pub(super) fn line_up(&mut self, slot: Slot) {
        self.turns[slot].state = TurnState::InLine;
        self.line.push_back(&mut self.turn_links, slot);
        self.admission_due = true;
    }

    /// Takes a turn that waits for a place from those that do.
    fn leave_held(&mut self, slot: Slot) {
        if self.turns[slot].state == TurnState::HeldWithGroup {
            if let Some(group) = self.group_slot(slot) {
                self.groups[group].held.remove(&mut self.turn_links, slot);
            }
        } else {
            self.held.remove(&mut self.turn_links, slot);
            self.promote_group_mate(slot);
        }
    }

    /// Takes a waiting turn out of its line, whichever it is in.
    pub(super) fn leave_line(&mut self, slot: Slot) {
        if self.turns[slot].state == TurnState::InLine {
            self.line.remove(&mut self.turn_links, slot);
        } else {
            self.leave_held(slot);
        }
        let turn = &self.turns[slot];
        if turn.attempt == 0 {
            self.hold_timers.remove(&mut self.turn_timer_links, slot);
            self.ledger.held -= u64::from(turn.purpose == Purpose::Train);
        }
    }

    /// A turn that was held for its whole group leaves: its next mate is held instead.
    pub(super) fn promote_group_mate(&mut self, slot: Slot) {
        let Some(group) = self.group_slot(slot) else { return };
        self.groups[group].representative = NONE;
        if let Some(mate) = self.groups[group].held.pop_front(&mut self.turn_links) {
            self.groups[group].representative = mate;
            self.turns[mate].state = TurnState::Held;
            self.held.push_front(&mut self.turn_links, mate);
            self.admission_due = true;
        }
    }

    /// Starts what can be started of the turns that wait.
    pub(super) fn start_waiting_turns(&mut self) {
        while std::mem::take(&mut self.admission_due) {
            if self.ended.is_some() {
                self.refuse_waiting_turns();
            }
            self.start_line();
            while let Some(slot) = self.held.front() {
                let Ok(replica) = self.find_replica(slot) else { break };
                self.start_held(slot, replica);
            }
        }
    }

    /// Turns that need no place may overtake one another: each waits for something of its own.
    pub(super) fn start_line(&mut self) {
        let mut next = self.line.front();
        while let Some(slot) = next {
            next = self.line.after(&self.turn_links, slot);
            let fresh = self.turns[slot].attempt == 0;
            if let Some(reason) = self.hopeless(slot).filter(|_| fresh) {
                self.leave_line(slot);
                self.refuse(slot, reason);
                continue;
            }
            match self.find_replica(slot) {
                Ok(replica) => {
                    self.leave_line(slot);
                    self.start_turn(slot, replica);
                }
                Err(_) if self.replicas.totals().open == 0 => break,
                Err(_) => {}
            }
        }
    }

    pub(super) fn start_held(&mut self, slot: Slot, replica: usize) {
        self.held.remove(&mut self.turn_links, slot);
        self.hold_timers.remove(&mut self.turn_timer_links, slot);
        self.ledger.held -= 1;
        self.start_turn(slot, replica);
    }

    #[cold]
    pub(super) fn refuse_waiting_turns(&mut self) {
        while let Some(slot) = self.line.front().or_else(|| self.held.front()) {
            self.leave_line(slot);
            if self.turns[slot].attempt == 0 {
                self.refuse(slot, Refusal::Ended);
            } else {
                self.drop_turn(slot, Discard::Aborted);
            }
        }
    }

    pub(super) fn hold_expired(&mut self) {
        if let Some(slot) = self.hold_timers.front() {
            self.leave_line(slot);
            self.refuse(slot, Refusal::HoldExpired);
        }
    }
}

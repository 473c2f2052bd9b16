//! Groups of rollouts of one prompt: one place, ready when every member is resolved.

use super::Scheduler;
use super::Stage;
use super::admission::reserves;
use super::slab::{List, NONE, Slot};
use super::state::{Group, Purpose};
use crate::action::Discard;
use crate::config::GroupFilter;
use crate::id::GroupId;
use crate::version::DeployVersion;

impl Scheduler {
    /// The group that the turn names takes no member any more.
    pub(super) fn in_closed_group(&self, slot: Slot) -> bool {
        let group = self.turns[slot].group.and_then(|id| self.group_of.get(id.0));
        group.is_some_and(|group| self.groups[group].dead || self.groups[group].closed)
    }

    /// The group whose seat the turn has.
    pub(super) fn group_slot(&self, slot: Slot) -> Option<Slot> {
        let turn = &self.turns[slot];
        self.group_of.get(turn.group.filter(|_| turn.seated)?.0)
    }

    /// Counts the turn among its group's members to come.
    pub(super) fn take_seat(&mut self, slot: Slot) {
        let turn = &self.turns[slot];
        let size = self.config.policy_training.group_size;
        if turn.purpose != Purpose::Train || size == 1 || turn.seated || self.goes_on(slot) {
            return;
        }
        let Some(id) = turn.group else { return };
        self.turns[slot].seated = true;
        if !self.take_session_seat(slot) {
            return;
        }
        let group = match self.group_of.get(id.0) {
            Some(group) => group,
            None => self.open_group(id, size),
        };
        self.groups[group].requested += 1;
    }

    /// Makes the turn a member of its group; the first member takes the group's place.
    pub(super) fn join_group(&mut self, slot: Slot, deploy: DeployVersion) -> Slot {
        let Some(group) = self.group_slot(slot) else { return NONE };
        let entry = &mut self.groups[group];
        entry.consumed += 1;
        if entry.placed {
            return group;
        }
        entry.placed = true;
        entry.admission = self.next_sample;
        entry.floor = deploy;
        let representative = std::mem::replace(&mut entry.representative, NONE);
        let coming = entry.size - (entry.consumed - 1);
        entry.reserved_rollout = coming * u32::from(reserves(&self.config.queue.rollout));
        entry.reserved_output = coming * u32::from(reserves(&self.config.queue.output));
        self.rollout.reserved += entry.reserved_rollout;
        self.output.reserved += entry.reserved_output;
        self.places += 1;
        self.gate.took_place();
        self.start_group_timer(group);
        // One that had no need of the place came before the one that waits for it.
        if representative != NONE && representative != slot {
            self.held.remove(&mut self.turn_links, representative);
            self.line_up(representative);
        }
        while let Some(mate) = self.groups[group].held.pop_front(&mut self.turn_links) {
            self.line_up(mate);
        }
        group
    }

    pub(super) fn open_group(&mut self, id: GroupId, size: u32) -> Slot {
        let group = self.groups.insert(Group {
            id,
            size,
            requested: 0,
            consumed: 0,
            scored: 0,
            members: List::default(),
            floor: DeployVersion::default(),
            representative: NONE,
            held: List::default(),
            placed: false,
            ready: false,
            closed: false,
            dead: false,
            admission: 0,
            since: self.now,
            timed: false,
            enough_since: None,
            reserved_rollout: 0,
            reserved_output: 0,
        });
        self.group_of.insert(id.0, group);
        group
    }

    /// The turn will be no member of its group.
    pub(super) fn leave_seat(&mut self, slot: Slot) {
        let group = self.group_slot(slot);
        let seated = std::mem::replace(&mut self.turns[slot].seated, false);
        if !seated || !self.leave_session_seat(slot) {
            return;
        }
        let Some(group) = group else { return };
        self.groups[group].requested -= 1;
        self.forget_group_if_over(group);
    }

    /// A member is served and will not come again: its group has one fewer to wait for.
    pub(super) fn member_served_only(&mut self, group: Slot) {
        let entry = &mut self.groups[group];
        entry.consumed += 1;
        let (rollout, output) = (entry.reserved_rollout.min(1), entry.reserved_output.min(1));
        entry.reserved_rollout -= rollout;
        entry.reserved_output -= output;
        self.rollout.reserved -= rollout;
        self.output.reserved -= output;
        match self.groups[group].placed {
            true => self.check_group(group, Discard::GroupTooSmall),
            false => self.forget_group_if_over(group),
        }
    }

    /// A member came to a group that takes none any more, and was refused: it will not come again.
    pub(super) fn count_late_member(&mut self, slot: Slot) {
        let seated = self.turns[slot].seated;
        if self.goes_on(slot) || (seated && !self.leave_session_seat(slot)) {
            return;
        }
        let id = self.turns[slot].group;
        let Some(group) = id.and_then(|id| self.group_of.get(id.0)) else { return };
        let entry = &mut self.groups[group];
        if entry.dead || entry.closed {
            entry.requested += u32::from(!seated);
            entry.consumed += 1;
            self.forget_group_if_over(group);
        }
    }

    /// A member has left, or has its score: the group may be ready, or lost.
    pub(super) fn check_group(&mut self, slot: Slot, reason: Discard) {
        let Some(group) = self.groups.get(slot) else { return };
        let alive = group.members.len();
        let coming = if group.closed { 0 } else { group.size.saturating_sub(group.consumed) };
        if group.dead {
            return self.forget_group_if_over(slot);
        }
        if alive + coming < self.least_members(group) {
            self.kill_group(slot, reason);
        } else if !group.ready && coming == 0 && group.scored == alive {
            self.group_ready(slot);
        } else {
            self.watch_stragglers(slot);
        }
    }

    /// Scored members without which the group is not trained.
    pub(super) fn least_members(&self, group: &Group) -> u32 {
        self.config.policy_training.min_group_size.clamp(1, group.size.max(1))
    }

    /// The whole group is discarded; members yet to come are refused.
    pub(super) fn kill_group(&mut self, slot: Slot, reason: Discard) {
        let of_members = if reason.is_of_groups() { reason } else { Discard::GroupTooSmall };
        self.kill_group_as(slot, reason, of_members);
    }

    /// The whole group is discarded for one reason, and its members for another.
    pub(super) fn kill_group_as(&mut self, slot: Slot, reason: Discard, of_members: Discard) {
        self.release_unclaimed_room(slot);
        let group = &mut self.groups[slot];
        group.dead = true;
        let (placed, ready) = (group.placed, group.ready);
        while let Some(member) = self.groups.get(slot).and_then(|group| group.members.front()) {
            self.kill(member, of_members);
        }
        if placed {
            self.places -= 1;
            self.places_ready -= u64::from(ready);
            self.gate.discarded(ready, reason);
            self.count_rejection(reason);
        }
        self.admission_due = true;
        self.bury_group(slot);
    }

    /// Gives back the room that was reserved for members yet to come.
    pub(super) fn release_unclaimed_room(&mut self, slot: Slot) {
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
        let known = group.dead || group.ready || !group.placed;
        if over && known && !self.is_remembered(group) {
            self.forget_group(slot);
        }
    }

    pub(super) fn forget_group(&mut self, slot: Slot) {
        self.stop_group_timers(slot);
        if let Some(group) = self.groups.remove(slot) {
            self.group_of.remove(group.id.0);
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

    pub(super) fn group_ready(&mut self, slot: Slot) {
        self.stop_group_timers(slot);
        self.ledger.groups_complete += 1;
        if self.is_filtered(slot) {
            self.ledger.groups_filtered += 1;
            self.ledger.filtered_in_a_row += 1;
            return self.kill_group(slot, Discard::ZeroVariance);
        }
        self.ledger.filtered_in_a_row = 0;
        let members = self.groups[slot].members;
        for member in members.iter(&self.member_links) {
            self.samples[member].stamp(Stage::Ready, self.now, self.learner);
        }
        if let Some(leader) = members.front() {
            self.entry_ready(leader, members.len());
        }
    }
    /// The group has nothing to learn from: the scores that would make its gradient are all equal.
    /// So are those of a single one, and of none.
    fn is_filtered(&self, slot: Slot) -> bool {
        if self.config.policy_training.filter != GroupFilter::ZeroVariance {
            return false;
        }
        let members = self.groups[slot].members.iter(&self.member_links);
        let mut scores = members
            .map(|member| &self.samples[member].sample)
            .filter(|sample| !sample.masked)
            .map(|sample| sample.score);
        let first = scores.next();
        scores.all(|score| Some(score) == first)
    }
}

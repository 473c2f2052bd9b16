//! Groups that wait no longer: for their stragglers, or for anything.

use super::slab::Slot;
use super::state::Group;
use super::{SampleState, Scheduler};
use crate::action::Discard;
use crate::time::Span;

impl Scheduler {
    /// The group has got its place, or is over and only remembered: its time begins.
    pub(super) fn start_group_timer(&mut self, slot: Slot) {
        self.stop_group_timers(slot);
        let group = &mut self.groups[slot];
        (group.since, group.timed) = (self.now, true);
        self.group_timers.push_back(&mut self.group_links, slot);
    }

    pub(super) fn stop_group_timers(&mut self, slot: Slot) {
        let group = &mut self.groups[slot];
        if std::mem::take(&mut group.timed) {
            self.group_timers.remove(&mut self.group_links, slot);
        }
        if group.enough_since.take().is_some() {
            self.straggler_timers.remove(&mut self.straggler_links, slot);
        }
    }

    /// The number of scored members has changed, or how many are enough.
    pub(super) fn watch_stragglers(&mut self, slot: Slot) {
        let group = &self.groups[slot];
        let live = group.placed && !group.ready && !group.dead;
        let enough = live && group.scored >= self.least_members(group);
        if enough == group.enough_since.is_some() {
            return;
        }
        self.groups[slot].enough_since = enough.then_some(self.now);
        if enough {
            self.straggler_timers.push_back(&mut self.straggler_links, slot);
        } else {
            self.straggler_timers.remove(&mut self.straggler_links, slot);
        }
    }

    /// Under a new configuration, other numbers may be enough.
    pub(super) fn rewatch_stragglers(&mut self) {
        let groups: Vec<Slot> = self.groups.iter().map(|(slot, _)| slot).collect();
        for slot in groups {
            self.watch_stragglers(slot);
        }
    }

    #[cold]
    pub(super) fn stop_waiting_for_stragglers(&mut self) {
        if let Some(slot) = self.straggler_timers.front() {
            self.close_group(slot);
        }
    }

    /// A group has taken too long; a dead one has been remembered for long enough.
    #[cold]
    pub(super) fn group_timed_out(&mut self) {
        let Some(slot) = self.group_timers.front() else { return };
        let group = &self.groups[slot];
        if !group.dead && group.scored >= self.least_members(group) {
            self.close_group(slot);
        } else if !group.dead {
            self.kill_group(slot, Discard::GroupTooSmall);
        } else if group.requested > group.consumed {
            // A member waits in line, and is refused when its turn comes.
            self.start_group_timer(slot);
        } else {
            self.forget_group(slot);
        }
    }

    /// The group goes on with its scored members, which are enough.
    fn close_group(&mut self, slot: Slot) {
        self.stop_group_timers(slot);
        self.groups[slot].closed = true;
        self.release_unclaimed_room(slot);
        // Its members to come are refused where they wait.
        self.admission_due = true;
        let members = self.groups[slot].members.iter(&self.member_links);
        let unscored = |&member: &Slot| self.samples[member].state != SampleState::GroupWait;
        let stragglers: smallvec::SmallVec<[Slot; 16]> = members.filter(unscored).collect();
        for straggler in stragglers {
            // One can have taken others of its session with it.
            if self.samples.get(straggler).is_some_and(|entry| entry.group == slot) {
                self.kill(straggler, Discard::Straggler);
            }
        }
        self.check_group(slot, Discard::GroupTooSmall);
    }

    /// No member of the group is left. Members that never came are refused when they come, or they
    /// would begin it anew and wait for mates that are gone; so are those that ask once more, unless
    /// all of them had their result.
    pub(super) fn bury_group(&mut self, slot: Slot) {
        let Some(group) = self.groups.get_mut(slot) else { return };
        group.dead = true;
        self.forget_group_if_over(slot);
        if self.groups.get(slot).is_some() {
            self.start_group_timer(slot);
        }
    }

    /// A dead group is remembered for as long as a group may take, also when all of its members
    /// have come; without a limit of time, until they have.
    pub(super) fn is_remembered(&self, group: &Group) -> bool {
        let limited = self.config.policy_training.group_timeout > Span::ZERO;
        group.dead && !group.ready && limited
    }
}

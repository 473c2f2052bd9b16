//! Over-sampling: a reserve of places beyond what the gate gives, and what becomes of those that
//! are not needed.

use super::slab::{NONE, Slot};
use super::{SampleState, Scheduler};
use crate::action::Discard;
use crate::config::{MILLION, Surplus};

/// A place outside the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// When it was admitted, as the ordinal of its first sample.
    admission: u64,
    /// Learner versions since its oldest weights.
    age: u32,
    /// Its sample, or its group where it is one.
    sample: Slot,
    group: Slot,
}

impl Scheduler {
    /// Places that over-sampling adds: ceil((f - 1) * B).
    fn reserve(&self) -> i64 {
        let training = &self.config.policy_training;
        let beyond = u64::from(training.over_sampling.saturating_sub(MILLION));
        (beyond * u64::from(training.batch_size)).div_ceil(u64::from(MILLION)) as i64
    }

    /// How many of them may be of this age: none where the step under way leaves no time for them.
    pub(super) fn reserve_at(&self, age: i64) -> i64 {
        let at_next_step = age + i64::from(self.trainer.is_training());
        if at_next_step <= i64::from(self.bound_steps()) { self.reserve() } else { 0 }
    }

    /// What over-sampling brought beyond a batch is not kept.
    pub(super) fn drops_surplus(&self) -> bool {
        self.config.policy_training.surplus == Surplus::Drop && self.reserve() > 0
    }

    /// A step has begun with this many results. Of the places outside it, those that the gate would
    /// not give now to weights of their age are discarded: the k-th, with the batch first and then
    /// in the order of admission, is kept at age a if k <= (η + 1 - a) * B, or within the reserve.
    ///
    /// Were the newest discarded whatever their age, older ones would stay that are too old when
    /// their step comes. O(n log n) in the samples outstanding.
    pub(super) fn drop_surplus(&mut self, taken: u64) {
        if !self.drops_surplus() {
            return;
        }
        let mut places = std::mem::take(&mut self.scratch_places);
        self.collect_places(&mut places);
        places.sort_unstable();
        let batch = i64::from(self.config.policy_training.batch_size);
        let eta = i64::from(self.bound_steps());
        let mut kept = (taken + self.trainer.rejected.len() as u64) as i64;
        places.retain(|place| {
            let age = i64::from(place.age);
            let most = (eta + 1 - age).max(0).saturating_mul(batch);
            let fits = kept < most.saturating_add(self.reserve_at(age));
            kept += i64::from(fits);
            !fits
        });
        for place in places.drain(..).rev() {
            self.drop_place(place);
        }
        self.scratch_places = places;
    }

    fn collect_places(&self, places: &mut Vec<Place>) {
        let learner = self.learner.number();
        for (sample, entry) in self.samples.iter().filter(|(_, entry)| entry.group == NONE) {
            if !matches!(entry.state, SampleState::Training | SampleState::Parked) {
                let admission = entry.sample.id.0;
                let age = learner.saturating_sub(entry.sample.head.number());
                places.push(Place { admission, age, sample, group: NONE });
            }
        }
        for (slot, group) in self.groups.iter().filter(|(_, group)| group.placed && !group.dead) {
            let members = || group.members.iter(&self.member_links).map(|s| &self.samples[s]);
            if members().any(|entry| entry.state == SampleState::Training) {
                continue;
            }
            let oldest = members().map(|entry| entry.sample.head.number()).min();
            let age = learner.saturating_sub(oldest.unwrap_or(group.floor.number()));
            places.push(Place { admission: group.admission, age, sample: NONE, group: slot });
        }
    }

    fn drop_place(&mut self, Place { admission, sample, group, .. }: Place) {
        // One that was dropped before can have taken this one with it.
        let is = |id| id == admission;
        if self.samples.get(sample).is_some_and(|entry| is(entry.sample.id.0)) {
            self.kill(sample, Discard::Surplus);
        } else if self.groups.get(group).is_some_and(|g| is(g.admission) && !g.dead) {
            self.kill_group(group, Discard::Surplus);
        }
    }
}

//! The recount: every O(1) counter beside what it counts. For tests; O(everything).

use super::slab::{NONE, Slot};
use super::state::{Environment, Purpose};
use super::{Ledger, SampleState, Scheduler, Violation};

impl Scheduler {
    /// Recounts every counter, and checks every list against the states of what stands in it.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn audit(&self) -> Result<(), Violation> {
        self.ledger.check()?;
        let recounted = self.states_recounted() == self.ledger.in_state
            && self.places_recounted() == (self.places, self.places_ready)
            && self.occupied_recounted() == self.occupied
            && self.environments_recounted() == self.environments
            && self.held_recounted() == self.ledger.held
            && self.sessions_recounted()
            && self.groups_recounted()
            && self.turns_recounted()
            && self.ages_recounted()
            && self.room_recounted() == (self.rollout.reserved, self.output.reserved);
        if !recounted {
            return Err(Violation::Recount);
        }
        self.audit_queues()?;
        self.audit_versions()
    }

    fn states_recounted(&self) -> [u64; SampleState::COUNT] {
        let mut counts = Ledger::default().in_state;
        for (_, entry) in self.samples.iter() {
            counts[entry.state as usize] += 1;
        }
        counts
    }

    fn places_recounted(&self) -> (u64, u64) {
        let ready = |state| {
            matches!(
                state,
                SampleState::OutputBlocked | SampleState::OutputQueue | SampleState::Training
            )
        };
        let alone = self.samples.iter().map(|(_, entry)| entry);
        let alone = alone.filter(|e| e.group == NONE && e.state != SampleState::Parked);
        let groups = self.groups.iter().map(|(_, group)| group).filter(|g| g.placed && !g.dead);
        let (mut places, mut places_ready) = (0, 0);
        for is_ready in alone.map(|e| ready(e.state)).chain(groups.map(|g| g.ready)) {
            places += 1;
            places_ready += u64::from(is_ready);
        }
        (places, places_ready)
    }

    fn groups_recounted(&self) -> bool {
        let (mut timed, mut waiting) = (0, 0);
        let right = self.groups.iter().all(|(_, group)| {
            let live = group.placed && !group.ready && !group.dead;
            let enough = live && group.scored >= self.least_members(group);
            timed += u32::from(group.timed);
            waiting += u32::from(group.enough_since.is_some());
            group.timed == (live || group.dead) && group.enough_since.is_some() == enough
        });
        right && timed == self.group_timers.len() && waiting == self.straggler_timers.len()
    }

    fn occupied_recounted(&self) -> u32 {
        let running = self.turns.iter().map(|(_, turn)| turn);
        let running = running.filter(|t| t.on_replica() && t.purpose == Purpose::Train).count();
        let running = if self.trajectories() { 0 } else { running };
        let keeping = self.samples.iter().filter(|(_, entry)| entry.keeps_slot).count();
        (running + keeping) as u32
    }

    fn environments_recounted(&self) -> u32 {
        let hosted = |environment| {
            matches!(
                environment,
                Environment::Resetting | Environment::Idle | Environment::Stepping
            )
        };
        self.sessions.iter().filter(|(_, session)| hosted(session.environment)).count() as u32
    }

    fn held_recounted(&self) -> u64 {
        let waiting = self.turns.iter().map(|(_, turn)| turn);
        waiting.filter(|t| t.attempt == 0 && t.purpose == Purpose::Train).count() as u64
    }

    /// Each turn that is part of a sample stands in its list, and a session's trajectory is alive,
    /// keeps its slot, and waits exactly while none of its turns is under way.
    fn turns_recounted(&self) -> bool {
        let listed: usize = self.samples.iter().map(|(_, e)| e.turns.len() as usize).sum();
        let joined = self.turns.iter().filter(|(_, turn)| turn.sample != NONE).count();
        let in_list = |(slot, entry): (Slot, &super::state::Entry)| {
            entry.turns.iter(&self.sample_links).all(|turn| self.turns[turn].sample == slot)
        };
        let of_session = |(slot, session): (Slot, &super::state::Session)| {
            let Some(entry) = self.samples.get(session.trajectory) else {
                return session.trajectory == NONE;
            };
            let waits = entry.state == SampleState::AwaitingSessionEnd;
            entry.session == slot && entry.keeps_slot && waits == entry.turns.is_empty()
        };
        listed == joined && self.samples.iter().all(in_list) && self.sessions.iter().all(of_session)
    }

    fn sessions_recounted(&self) -> bool {
        let mut counts = std::collections::BTreeMap::<Slot, (u32, u32)>::new();
        for (_, turn) in self.turns.iter() {
            counts.entry(turn.session).or_default().0 += 1;
        }
        for (_, entry) in self.samples.iter().filter(|(_, entry)| entry.session != NONE) {
            counts.entry(entry.session).or_default().1 += 1;
        }
        counts.keys().all(|&slot| self.sessions.get(slot).is_some())
            && self.sessions.iter().all(|(slot, session)| {
                let counted = counts.get(&slot).copied().unwrap_or_default();
                let over = session.ended && counted == (0, 0);
                (session.turns, session.samples) == counted && !over
            })
    }

    fn ages_recounted(&self) -> bool {
        let indexed: u32 = self.ages.buckets().iter().map(super::ages::Bucket::len).sum();
        let pending: u32 = self.ages.buckets().iter().map(super::ages::Bucket::pending).sum();
        let counted = self.samples.iter().filter(|(_, entry)| !entry.exempt).count();
        indexed as usize == self.samples.len() && pending as usize == counted
    }

    fn room_recounted(&self) -> (u32, u32) {
        let mut room = (0, 0);
        for (_, entry) in self.samples.iter() {
            room.0 += u32::from(entry.reserved_rollout);
            room.1 += u32::from(entry.reserved_output);
        }
        for (_, group) in self.groups.iter() {
            room.0 += group.reserved_rollout;
            room.1 += group.reserved_output;
        }
        room
    }

    fn audit_queues(&self) -> Result<(), Violation> {
        let in_rollout = self.rollout.slots();
        let all_in = |slots: &[Slot], state| slots.iter().all(|&s| self.samples[s].state == state);
        let weigh = |&leader: &Slot| match self.samples[leader].group {
            NONE => 1,
            group => self.groups[group].members.len(),
        };
        let in_output = self.output.slots();
        let samples: u32 = in_output.iter().map(weigh).sum();
        let counted = in_rollout.len() == self.rollout.samples as usize
            && in_rollout.len() == self.rollout.entries as usize
            && in_output.len() == self.output.entries as usize
            && samples == self.output.samples
            && all_in(&in_rollout, SampleState::RolloutQueue)
            && all_in(&in_output, SampleState::OutputQueue);
        if !counted || self.votes.len() != self.votes_flying() || !self.replicas.adds_up() {
            return Err(Violation::Recount);
        }
        Ok(())
    }

    fn votes_flying(&self) -> usize {
        let flying = |(_, ballot): (Slot, &super::state::Ballot)| {
            ballot.in_flight.iter().filter(|&&vote| vote != NONE).count()
        };
        self.ballots.iter().map(flying).sum()
    }

    fn audit_versions(&self) -> Result<(), Violation> {
        let newest = self.learner.number();
        let from_future = self.samples.iter().any(|(_, e)| e.sample.head.number() > newest)
            || self.replicas.iter().any(|replica| replica.deploy.number() > newest);
        if from_future { Err(Violation::Version) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;

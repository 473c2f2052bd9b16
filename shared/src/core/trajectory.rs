//! Trajectories: samples that are a whole session (`sample_unit = "session"`).
//!
//! A session's first admitted main turn makes its sample, which takes a place, a seat in its group
//! and a slot of `max_concurrent_rollouts`, and keeps them until the session ends. Later main turns
//! go on with it and need only a replica, so that a session in the middle waits for nothing that
//! others hold. Between turns the sample waits for the end of its session; then it is judged.

use super::slab::{List, NONE, Slot};
use super::state::{Environment, Purpose};
use super::{SampleState, Scheduler, Stage};
use crate::action::Discard;
use crate::config::SampleUnit;
use crate::input::Segment;
use crate::version::DeployVersion;

impl Scheduler {
    /// A sample is the whole trajectory of a session. Fixed for a run.
    pub(super) fn trajectories(&self) -> bool {
        self.config.policy_training.sample_unit == SampleUnit::Session
    }

    /// The turn's session has begun a trajectory, which the turn goes on with; or it will have none
    /// any more, and the turn is served unrecorded.
    pub(super) fn goes_on(&self, turn: Slot) -> bool {
        let session = &self.sessions[self.turns[turn].session];
        session.trajectory != NONE || session.unrecorded
    }

    /// What the trajectory that a turn goes on with asks of the weights. They never become older
    /// from turn to turn, so that the tail is the newest; before its first turn has ended, a second
    /// one beside it takes none that are older than those that the gate has counted.
    pub(super) fn trajectory_floor(&self, turn: Slot) -> DeployVersion {
        let turn = &self.turns[turn];
        let session = &self.sessions[turn.session];
        if turn.purpose != Purpose::Train || session.trajectory == NONE {
            return DeployVersion::default();
        }
        let entry = &self.samples[session.trajectory];
        let (head, tail) = (entry.sample.head.number(), entry.sample.tail.number());
        DeployVersion::new(if entry.sample.tokens > 0 { tail } else { head })
    }

    /// Makes a turn that is about to start one of a sample's.
    pub(super) fn join_sample(&mut self, turn: Slot, sample: Slot) {
        self.turns[turn].sample = sample;
        self.samples[sample].turns.push_back(&mut self.sample_links, turn);
    }

    /// A turn is over for its sample, if it has one.
    pub(super) fn leave_sample(&mut self, turn: Slot) {
        let sample = std::mem::replace(&mut self.turns[turn].sample, NONE);
        if let Some(entry) = self.samples.get_mut(sample) {
            entry.turns.remove(&mut self.sample_links, turn);
        }
    }

    /// The turns of a sample that are under way, which it has no longer.
    pub(super) fn take_turns(&mut self, sample: Slot) -> List {
        std::mem::take(&mut self.samples[sample].turns)
    }

    /// A session has its sample: it keeps a slot, and what else the session asks needs no place.
    pub(super) fn begin_trajectory(&mut self, session: Slot, sample: Slot) {
        if !self.trajectories() {
            return;
        }
        self.sessions[session].trajectory = sample;
        self.keep_slot(sample);
    }

    /// A turn that goes on is about to start.
    pub(super) fn go_on(&mut self, turn: Slot, deploy: DeployVersion) {
        let session = self.turns[turn].session;
        let sample = self.sessions[session].trajectory;
        if sample == NONE {
            self.turns[turn].purpose = Purpose::ServeOnly;
            self.ledger.served_only += 1;
            return;
        }
        self.ledger.continued += 1;
        if self.samples[sample].state == SampleState::AwaitingSessionEnd {
            self.stop_waiting(sample);
            self.in_state(sample, SampleState::Generating);
            self.samples[sample].sample.waited_until(self.now, self.learner);
        }
        self.samples[sample].sample.request = self.turns[turn].request;
        self.join_sample(turn, sample);
        self.set_head(sample, deploy);
    }

    /// A turn of a trajectory ended well.
    pub(super) fn await_turn(&mut self, sample: Slot) {
        let entry = &self.samples[sample];
        let session = entry.session;
        if !entry.turns.is_empty() {
            return;
        }
        if self.sessions[session].ended {
            return self.trajectory_over(sample);
        }
        self.in_state(sample, SampleState::AwaitingSessionEnd);
        self.sessions[session].awaiting_end.push_back(&mut self.waiting_links, sample);
    }

    /// Its session has ended, and none of its turns is under way: it can be judged.
    pub(super) fn trajectory_over(&mut self, sample: Slot) {
        let session = &mut self.sessions[self.samples[sample].session];
        (session.trajectory, session.unrecorded) = (NONE, true);
        self.samples[sample].stamp(Stage::StateKnown, self.now, self.learner);
        self.enter_rollout(sample);
    }

    /// A trajectory was discarded: what its session still asks is served and not recorded.
    pub(super) fn lose_trajectory(&mut self, session: Slot, sample: Slot) {
        if session != NONE && self.sessions[session].trajectory == sample {
            let session = &mut self.sessions[session];
            (session.trajectory, session.unrecorded) = (NONE, true);
        }
    }

    /// A rollout that cannot train is not worth its environment. People are served on.
    pub(super) fn end_hosted_session(&mut self, session: Slot) {
        let hosted = |session: &super::state::Session| {
            session.unrecorded && session.environment != Environment::None
        };
        if self.sessions.get(session).is_some_and(hosted) {
            self.end_session(session);
        }
    }

    /// A turn that was never served leaves: its trajectory goes on, and its client may ask again.
    pub(super) fn keep_session_open(&mut self, turn: Slot) {
        if self.goes_on(turn) {
            self.turns[turn].last = false;
        }
    }

    /// The seat in a group is the session's, whichever of its turns takes it. Whether the group has
    /// to count one more.
    pub(super) fn take_session_seat(&mut self, turn: Slot) -> bool {
        if !self.trajectories() {
            return true;
        }
        let (session, group) = (self.turns[turn].session, self.turns[turn].group);
        let session = &mut self.sessions[session];
        session.seat_turns += 1;
        std::mem::replace(&mut session.seat, group).is_none()
    }

    /// A turn of those that wait with their session's seat leaves. Whether the seat is free again.
    pub(super) fn leave_session_seat(&mut self, turn: Slot) -> bool {
        if !self.trajectories() {
            return true;
        }
        let admitted = self.goes_on(turn);
        let session = &mut self.sessions[self.turns[turn].session];
        session.seat_turns -= 1;
        let free = session.seat_turns == 0 && !admitted;
        if free {
            session.seat = None;
        }
        free
    }

    /// No session will begin, and none is under way.
    pub(super) fn source_is_dry(&self) -> bool {
        // Sessions that have not ended have an idle timer. One that has an environment has no
        // request under way between its turns.
        let sessions_over = !self.trajectories() || self.idle_timers.is_empty();
        self.exhausted && self.turns.len() == 0 && sessions_over
    }

    /// A turn was going on with weights that a rollback has taken back.
    pub(super) fn runs_on_lost_weights(&self, sample: Slot) -> bool {
        let lost = |turn: Slot| {
            let turn = &self.turns[turn];
            turn.on_replica() && self.is_lost(turn.started_on.number())
        };
        self.trajectories() && self.samples[sample].turns.iter(&self.sample_links).any(lost)
    }

    /// Why what a turn has generated cannot be part of its sample, if so.
    pub(super) fn unusable(&self, turn: Slot, segments: &[Segment]) -> Option<Discard> {
        if segments.is_empty() {
            return Some(Discard::Empty);
        }
        if !self.segments_possible(turn, segments) {
            return Some(Discard::BadStamp);
        }
        let lost = |segment: &Segment| self.is_lost(segment.version.number());
        let lost = self.trajectories() && segments.iter().any(lost);
        lost.then_some(Discard::LostWeights)
    }
}

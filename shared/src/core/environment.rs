//! Sessions, their next states, and the environments that host them.

use super::slab::{List, NONE, Slot};
use super::state::{Environment, Session};
use super::{SampleState, Scheduler, Stage, Violation};
use crate::action::{Action, Discard};
use crate::config::JudgeNeeds;
use crate::id::SessionId;
use crate::input::EnvironmentOutcome;
use crate::version::DeployVersion;

impl Scheduler {
    /// The live session with this id; a new one if there is none.
    pub(super) fn open_session(&mut self, id: SessionId) -> Slot {
        if let Some(slot) = self.session_of.get(id.0) {
            self.touch_session(slot);
            return slot;
        }
        let slot = self.sessions.insert(Session {
            id,
            ended: false,
            turns: 0,
            samples: 0,
            awaiting_state: List::default(),
            awaiting_end: List::default(),
            trajectory: NONE,
            unrecorded: false,
            seat: None,
            seat_turns: 0,
            counted: false,
            last_replica: None,
            last_active: self.now,
            environment: Environment::None,
            environment_attempt: 0,
            environment_tries: 0,
            environment_since: self.now,
        });
        self.session_of.insert(id.0, slot);
        self.idle_timers.push_back(&mut self.idle_links, slot);
        slot
    }

    pub(super) fn touch_session(&mut self, slot: Slot) {
        if self.sessions[slot].ended {
            return;
        }
        self.sessions[slot].last_active = self.now;
        self.idle_timers.remove(&mut self.idle_links, slot);
        self.idle_timers.push_back(&mut self.idle_links, slot);
    }

    /// A session that has ended is forgotten with its last turn and sample.
    pub(super) fn forget_session_if_over(&mut self, slot: Slot) {
        let session = &self.sessions[slot];
        if session.ended && session.turns == 0 && session.samples == 0 {
            self.sessions.remove(slot);
        }
    }

    pub(super) fn session_went_idle(&mut self) {
        let Some(slot) = self.idle_timers.front() else { return };
        let busy = matches!(
            self.sessions[slot].environment,
            Environment::Waiting | Environment::Resetting | Environment::Stepping
        );
        if self.sessions[slot].turns > 0 || busy {
            return self.touch_session(slot);
        }
        let session = self.sessions[slot].id;
        if self.sessions[slot].environment == Environment::None {
            self.act(Action::EndSession { session });
        }
        self.end_session(slot);
    }

    pub(super) fn handle_session_ended(&mut self, id: SessionId) {
        match self.session_of.get(id.0) {
            Some(slot) => self.end_session(slot),
            None => self.ignore(),
        }
    }

    /// No further turn will come: what waits for a next state gets none, what waits for the end is
    /// judged, and the environment is free.
    pub(super) fn end_session(&mut self, slot: Slot) {
        // A turn's end can end its session too, and the session may be forgotten by then.
        if self.sessions.get(slot).is_none_or(|session| session.ended) {
            return;
        }
        self.close_session(slot);
        if self.trajectories() && self.source_is_dry() {
            self.close_groups();
        }
    }

    fn close_session(&mut self, slot: Slot) {
        self.sessions[slot].ended = true;
        self.session_of.remove(self.sessions[slot].id.0);
        self.idle_timers.remove(&mut self.idle_links, slot);
        self.free_environment(slot);
        while let Some(sample) = self.sessions[slot].awaiting_state.front() {
            self.discard(sample, Discard::NoNextState);
            if self.sessions.get(slot).is_none() {
                return;
            }
        }
        while let Some(sample) = self.sessions[slot].awaiting_end.front() {
            self.stop_waiting(sample);
            self.in_state(sample, SampleState::Generating);
            match self.trajectories() {
                true => self.trajectory_over(sample),
                false => self.enter_rollout(sample),
            }
            if self.sessions.get(slot).is_none() {
                return;
            }
        }
        self.forget_session_if_over(slot);
    }

    #[cold]
    pub(super) fn handle_source_exhausted(&mut self) {
        self.exhausted = true;
        if self.source_is_dry() {
            self.close_groups();
        }
    }
}

/// Next states.
impl Scheduler {
    /// A turn is generated: its judge may need what follows.
    pub(super) fn await_state(&mut self, slot: Slot) {
        if self.trajectories() {
            return self.await_turn(slot);
        }
        if self.config.reward_judging.judge_needs == JudgeNeeds::Turn {
            return self.state_known(slot);
        }
        let session = self.samples[slot].session;
        if self.sessions[session].ended {
            return self.discard(slot, Discard::NoNextState);
        }
        self.in_state(slot, SampleState::AwaitingState);
        self.samples[slot].waiting_since = self.now;
        self.sessions[session].awaiting_state.push_back(&mut self.waiting_links, slot);
        if self.samples[slot].sample.group.is_none() {
            self.park_timers.push_back(&mut self.park_timer_links, slot);
        }
    }

    pub(super) fn handle_next_state(&mut self, id: SessionId) {
        match self.session_of.get(id.0) {
            Some(slot) => {
                self.touch_session(slot);
                self.deliver_state(slot);
            }
            None => self.ignore(),
        }
    }

    /// The session's waiting turns have their next state.
    pub(super) fn deliver_state(&mut self, session: Slot) {
        while let Some(slot) = self.sessions[session].awaiting_state.front() {
            self.stop_waiting(slot);
            self.samples[slot].stamp(Stage::StateKnown, self.now, self.learner);
            if self.samples[slot].state == SampleState::Parked {
                self.samples[slot].returning = true;
                self.returning.insert(slot, self.samples[slot].sample.head.number(), false);
                self.return_parked();
            } else {
                // In no list, as a sample whose turn has just ended.
                self.in_state(slot, SampleState::Generating);
                self.judge_when_due(slot);
            }
        }
        self.drop_late_returners();
    }

    /// Takes a sample out of its session's list, and off its timer.
    pub(super) fn stop_waiting(&mut self, slot: Slot) {
        let entry = &self.samples[slot];
        let session = &mut self.sessions[entry.session];
        match entry.state {
            SampleState::AwaitingSessionEnd => {
                session.awaiting_end.remove(&mut self.waiting_links, slot);
            }
            state => {
                session.awaiting_state.remove(&mut self.waiting_links, slot);
                if state == SampleState::AwaitingState && entry.sample.group.is_none() {
                    self.park_timers.remove(&mut self.park_timer_links, slot);
                }
            }
        }
    }

    fn state_known(&mut self, slot: Slot) {
        self.samples[slot].stamp(Stage::StateKnown, self.now, self.learner);
        self.judge_when_due(slot);
    }

    /// Judged now, or with the other turns of its session.
    fn judge_when_due(&mut self, slot: Slot) {
        let session = self.samples[slot].session;
        if self.config.reward_judging.fire_on_turn_end || self.sessions[session].ended {
            return self.enter_rollout(slot);
        }
        self.in_state(slot, SampleState::AwaitingSessionEnd);
        self.sessions[session].awaiting_end.push_back(&mut self.waiting_links, slot);
    }

    /// People who read an answer must not close the gate for everyone: the turn that has waited
    /// longest gives its place back.
    pub(super) fn park_next(&mut self) {
        let Some(slot) = self.park_timers.pop_front(&mut self.park_timer_links) else { return };
        self.in_state(slot, SampleState::Parked);
        self.ledger.parkings += 1;
        self.release_slot(slot);
        self.release_room(slot);
        self.set_exempt(slot, true);
        self.places -= 1;
        self.gate.parked();
        self.admission_due = true;
    }

    /// Parked samples that have their next state take free places, before anything new does. The
    /// oldest come first, but an old one that has no place does not stand in a younger one's way.
    pub(super) fn return_parked(&mut self) -> bool {
        let (mut from, mut moved) = (0, false);
        while let Some(slot) = self.returning.first_from(from) {
            let head = self.samples[slot].sample.head.number();
            if !self.may_return(slot) {
                from = head.saturating_add(1);
                continue;
            }
            self.returning.remove(slot, head, false);
            self.samples[slot].returning = false;
            self.places += 1;
            self.gate.took_place();
            self.reserve_room(slot);
            self.set_exempt(slot, false);
            self.in_state(slot, SampleState::Generating);
            self.judge_when_due(slot);
            moved = true;
        }
        moved
    }

    /// Those that have become older than η meanwhile will not return.
    pub(super) fn drop_late_returners(&mut self) {
        let bound = self.bound_steps();
        while let Some(oldest) = self.returning.oldest()
            && self.learner.number().saturating_sub(oldest) > bound
            && let Some(slot) = self.returning.first_from(oldest)
        {
            self.discard(slot, Discard::StaleParked);
        }
    }

    /// A parked sample may have a place again: it would be trained within η.
    fn may_return(&self, slot: Slot) -> bool {
        let head = self.samples[slot].sample.head.number();
        let age = self.learner.number().saturating_sub(head);
        // Trained next, it would be as stale as a sample that starts now on weights of its age.
        let as_old = self.gate_view(DeployVersion::new(head));
        age <= self.bound_steps() && self.gate.capacity(&as_old) > 0 && self.room_to_reserve()
    }
}

/// Environments.
impl Scheduler {
    pub(super) fn handle_session_started(&mut self, id: SessionId) {
        let slot = self.open_session(id);
        if self.sessions[slot].environment != Environment::None {
            return self.ignore();
        }
        self.sessions[slot].environment = Environment::Waiting;
        self.environment_line.push_back(&mut self.environment_links, slot);
    }

    /// Resets environments for the sessions that have waited longest, while there are free ones.
    pub(super) fn start_environments(&mut self) {
        let limit = self.config.environment_hosting.max_envs;
        while limit == 0 || self.environments < limit {
            let Some(slot) = self.environment_line.pop_front(&mut self.environment_links) else {
                return;
            };
            self.environments += 1;
            self.ensure(limit == 0 || self.environments <= limit, Violation::Environments);
            self.sessions[slot].environment_tries = 0;
            self.reset_environment(slot);
        }
    }

    fn reset_environment(&mut self, slot: Slot) {
        let (session, attempt) = self.next_environment_attempt(slot, Environment::Resetting);
        self.reset_timers.push_back(&mut self.environment_links, slot);
        self.act(Action::ResetEnvironment { session, attempt });
    }

    /// A turn has ended: the session's environment, if it has one, takes it.
    pub(super) fn step_environment(&mut self, slot: Slot) {
        if self.sessions[slot].environment == Environment::Idle {
            self.sessions[slot].environment_tries = 0;
            self.start_environment_step(slot);
        }
    }

    fn start_environment_step(&mut self, slot: Slot) {
        let (session, attempt) = self.next_environment_attempt(slot, Environment::Stepping);
        self.step_timers.push_back(&mut self.environment_links, slot);
        self.act(Action::StepEnvironment { session, attempt });
    }

    fn next_environment_attempt(&mut self, slot: Slot, next: Environment) -> (SessionId, u32) {
        let session = &mut self.sessions[slot];
        session.environment = next;
        session.environment_attempt += 1;
        session.environment_tries += 1;
        session.environment_since = self.now;
        (session.id, session.environment_attempt)
    }

    fn leave_environment_timer(&mut self, slot: Slot) {
        match self.sessions[slot].environment {
            Environment::Resetting => self.reset_timers.remove(&mut self.environment_links, slot),
            Environment::Stepping => self.step_timers.remove(&mut self.environment_links, slot),
            _ => {}
        }
    }

    pub(super) fn handle_environment_ended(
        &mut self,
        id: SessionId,
        attempt: u32,
        outcome: EnvironmentOutcome,
    ) {
        let Some(slot) = self.session_of.get(id.0) else { return self.ignore() };
        let session = &self.sessions[slot];
        let state = session.environment;
        let working = matches!(state, Environment::Resetting | Environment::Stepping);
        if !working || session.environment_attempt != attempt {
            return self.ignore();
        }
        self.leave_environment_timer(slot);
        self.touch_session(slot);
        match outcome {
            EnvironmentOutcome::Failed => self.environment_failed(slot),
            EnvironmentOutcome::Ready | EnvironmentOutcome::Done => {
                self.sessions[slot].environment = Environment::Idle;
                if state == Environment::Stepping {
                    self.deliver_state(slot);
                }
                if outcome == EnvironmentOutcome::Done {
                    self.end_session(slot);
                }
            }
        }
    }

    /// A reset or step failed: again, or the session is over.
    fn environment_failed(&mut self, slot: Slot) {
        let again =
            self.sessions[slot].environment_tries <= self.config.environment_hosting.retries;
        match self.sessions[slot].environment {
            Environment::Resetting if again => self.reset_environment(slot),
            Environment::Stepping if again => self.start_environment_step(slot),
            _ => {
                self.sessions[slot].environment = Environment::Idle;
                while let Some(sample) = self.sessions[slot].awaiting_state.front() {
                    self.discard(sample, Discard::EnvironmentFailed);
                }
                let trajectory = self.sessions[slot].trajectory;
                if trajectory != NONE {
                    self.kill(trajectory, Discard::EnvironmentFailed);
                }
                self.end_session(slot);
            }
        }
    }

    #[cold]
    pub(super) fn reset_timed_out(&mut self) {
        if let Some(slot) = self.reset_timers.front() {
            self.environment_timed_out(slot);
        }
    }

    #[cold]
    pub(super) fn step_timed_out(&mut self) {
        if let Some(slot) = self.step_timers.front() {
            self.environment_timed_out(slot);
        }
    }

    fn environment_timed_out(&mut self, slot: Slot) {
        self.cancel_environment(slot);
        self.environment_failed(slot);
    }

    fn cancel_environment(&mut self, slot: Slot) {
        self.leave_environment_timer(slot);
        let session = &self.sessions[slot];
        let (session, attempt) = (session.id, session.environment_attempt);
        self.act(Action::CancelEnvironment { session, attempt });
    }

    fn free_environment(&mut self, slot: Slot) {
        match self.sessions[slot].environment {
            Environment::None => return,
            Environment::Waiting => {
                self.environment_line.remove(&mut self.environment_links, slot);
            }
            Environment::Idle => self.environments -= 1,
            Environment::Resetting | Environment::Stepping => {
                self.cancel_environment(slot);
                self.environments -= 1;
            }
        }
        self.sessions[slot].environment = Environment::None;
        let session = self.sessions[slot].id;
        self.act(Action::EndSession { session });
    }
}

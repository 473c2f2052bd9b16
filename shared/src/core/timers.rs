//! Everything that happens because time passed.
//!
//! Timers of one kind share one span, so each kind is a list by start time: its front is due
//! first, also after a reconfiguration has changed the span.

use super::Scheduler;
use super::state::{Sync, TurnState};
use crate::time::{Span, Time};

/// `since + span`, unless the span is 0, which means never.
pub(super) fn deadline(since: Time, span: Span) -> Option<Time> {
    (span > Span::ZERO).then(|| since + span)
}

impl Scheduler {
    /// When to call [`handle`](Self::handle) with a [`Tick`](crate::input::Input::Tick) at the
    /// latest. Any `handle` can change it. Nothing is due once the run has ended, except requests
    /// that are held.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let [short, late, train] = self.trainer.deadlines(&self.config.policy_training);
        let deadlines = [
            self.hold_deadline(),
            self.generation_deadline(),
            self.cancel_deadline(),
            self.park_deadline(),
            self.idle_deadline(),
            self.vote_deadline(),
            self.reset_deadline(),
            self.step_deadline(),
            self.straggler_deadline(),
            self.group_deadline(),
            short,
            late,
            train,
            self.publication_deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Fires every timer that is due.
    pub(super) fn expire(&mut self) {
        while due(self.generation_deadline(), self.now) {
            self.generation_timed_out();
        }
        while due(self.cancel_deadline(), self.now) {
            self.aborted_turn_given_up();
        }
        while due(self.vote_deadline(), self.now) {
            self.vote_timed_out();
        }
        while due(self.reset_deadline(), self.now) {
            self.reset_timed_out();
        }
        while due(self.step_deadline(), self.now) {
            self.step_timed_out();
        }
        while due(self.park_deadline(), self.now) {
            self.park_next();
        }
        while due(self.idle_deadline(), self.now) {
            self.session_went_idle();
        }
        while due(self.straggler_deadline(), self.now) {
            self.stop_waiting_for_stragglers();
        }
        while due(self.group_deadline(), self.now) {
            self.group_timed_out();
        }
        self.expire_training();
        if due(self.publication_deadline(), self.now) {
            self.expire_publication();
        }
        while due(self.hold_deadline(), self.now) {
            self.hold_expired();
        }
    }

    fn hold_deadline(&self) -> Option<Time> {
        let turn = &self.turns[self.hold_timers.front()?];
        deadline(turn.arrived, self.config.policy_serving.hold)
    }

    fn generation_deadline(&self) -> Option<Time> {
        let turn = &self.turns[self.generation_timers.front()?];
        debug_assert_eq!(turn.state, TurnState::Running, "only running turns have this timer");
        deadline(turn.started, self.config.policy_serving.generation_timeout)
    }

    fn cancel_deadline(&self) -> Option<Time> {
        let turn = &self.turns[self.cancel_timers.front()?];
        // An engine that never answers must not keep its turn for ever: 0 gives up at once.
        Some(turn.started + self.config.policy_serving.abort_timeout)
    }

    fn park_deadline(&self) -> Option<Time> {
        let entry = &self.samples[self.park_timers.front()?];
        deadline(entry.waiting_since, self.config.policy_training.park_after)
    }

    fn idle_deadline(&self) -> Option<Time> {
        let session = &self.sessions[self.idle_timers.front()?];
        deadline(session.last_active, self.config.environment_hosting.session_idle)
    }

    fn vote_deadline(&self) -> Option<Time> {
        let vote = &self.votes[self.vote_timers.front()?];
        deadline(vote.started, self.config.reward_judging.judge_timeout)
    }

    fn reset_deadline(&self) -> Option<Time> {
        let session = &self.sessions[self.reset_timers.front()?];
        deadline(session.environment_since, self.config.environment_hosting.reset_timeout)
    }

    fn step_deadline(&self) -> Option<Time> {
        let session = &self.sessions[self.step_timers.front()?];
        deadline(session.environment_since, self.config.environment_hosting.step_timeout)
    }

    fn straggler_deadline(&self) -> Option<Time> {
        let since = self.groups[self.straggler_timers.front()?].enough_since?;
        deadline(since, self.config.policy_training.straggler_wait)
    }

    fn group_deadline(&self) -> Option<Time> {
        let group = &self.groups[self.group_timers.front()?];
        deadline(group.since, self.config.policy_training.group_timeout)
    }

    fn publication_deadline(&self) -> Option<Time> {
        if self.ended.is_some() {
            return None;
        }
        if let Some(at) = self.weights.retry_at {
            return Some(at);
        }
        let current = self.weights.current.as_ref()?;
        if let Some(since) = current.saving_since {
            return deadline(since, self.config.policy_serving.save_timeout);
        }
        self.replicas.iter().filter_map(|replica| self.sync_deadline(replica.sync)).min()
    }

    /// When a replica's part of the publication takes too long.
    pub(super) fn sync_deadline(&self, sync: Sync) -> Option<Time> {
        let serving = &self.config.policy_serving;
        match sync {
            // Aborted turns that do not end are given up one by one.
            Sync::Idle | Sync::Waiting | Sync::Aborting => None,
            // A drain without a time limit would keep the gate closed for ever: 0 aborts at once.
            Sync::Draining(since) => Some(since + serving.pause_timeout),
            Sync::Transferring(since) => deadline(since, serving.transfer_timeout),
            Sync::Loading(since) => deadline(since, serving.load_timeout),
        }
    }
}

pub(super) fn due(deadline: Option<Time>, now: Time) -> bool {
    deadline.is_some_and(|deadline| deadline <= now)
}

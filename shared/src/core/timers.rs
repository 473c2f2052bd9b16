//! Everything that happens because time passed.
//!
//! Timers of one kind share one span, so each kind is a list by start time: its front is due
//! first, also after a reconfiguration has changed the span.

use super::Scheduler;
use super::slab::{List, Slab};
use super::state::{Sync, TurnState};
use crate::time::{Span, Time};

/// When what is not to happen is due.
pub(super) const NEVER: Time = Time::MAX;

/// `since + span`, unless the span is 0, which means never.
pub(super) fn deadline(since: Time, span: Span) -> Time {
    if span > Span::ZERO { since + span } else { NEVER }
}

pub(super) fn due(deadline: Time, now: Time) -> bool {
    deadline <= now && deadline != NEVER
}

/// When the first of a list of timers is due.
fn first<T>(timers: &List, of: &Slab<T>, due: impl FnOnce(&T) -> Time) -> Time {
    timers.front().map_or(NEVER, |slot| due(&of[slot]))
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
        deadlines.into_iter().min().filter(|&deadline| deadline != NEVER)
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

    fn hold_deadline(&self) -> Time {
        let hold = self.config.policy_serving.hold;
        first(&self.hold_timers, &self.turns, |turn| deadline(turn.arrived, hold))
    }

    fn generation_deadline(&self) -> Time {
        let timeout = self.config.policy_serving.generation_timeout;
        first(&self.generation_timers, &self.turns, |turn| {
            debug_assert_eq!(turn.state, TurnState::Running, "only running turns have this timer");
            deadline(turn.started, timeout)
        })
    }

    fn cancel_deadline(&self) -> Time {
        let timeout = self.config.policy_serving.abort_timeout;
        // An engine that never answers must not keep its turn for ever: 0 gives up at once.
        first(&self.cancel_timers, &self.turns, |turn| turn.started + timeout)
    }

    fn park_deadline(&self) -> Time {
        let after = self.config.policy_training.park_after;
        first(&self.park_timers, &self.samples, |entry| deadline(entry.waiting_since, after))
    }

    fn idle_deadline(&self) -> Time {
        let idle = self.config.environment_hosting.session_idle;
        first(&self.idle_timers, &self.sessions, |session| deadline(session.last_active, idle))
    }

    fn vote_deadline(&self) -> Time {
        let timeout = self.config.reward_judging.judge_timeout;
        first(&self.vote_timers, &self.votes, |vote| deadline(vote.started, timeout))
    }

    fn reset_deadline(&self) -> Time {
        self.environment_deadline(&self.reset_timers, self.config.environment_hosting.reset_timeout)
    }

    fn step_deadline(&self) -> Time {
        self.environment_deadline(&self.step_timers, self.config.environment_hosting.step_timeout)
    }

    fn environment_deadline(&self, timers: &List, timeout: Span) -> Time {
        first(timers, &self.sessions, |session| deadline(session.environment_since, timeout))
    }

    fn straggler_deadline(&self) -> Time {
        let wait = self.config.policy_training.straggler_wait;
        first(&self.straggler_timers, &self.groups, |group| {
            group.enough_since.map_or(NEVER, |since| deadline(since, wait))
        })
    }

    fn group_deadline(&self) -> Time {
        let timeout = self.config.policy_training.group_timeout;
        first(&self.group_timers, &self.groups, |group| deadline(group.since, timeout))
    }

    fn publication_deadline(&self) -> Time {
        if self.ended.is_some() {
            return NEVER;
        }
        if let Some(at) = self.weights.retry_at {
            return at;
        }
        let Some(current) = &self.weights.current else { return NEVER };
        if let Some(since) = current.saving_since {
            return deadline(since, self.config.policy_serving.save_timeout);
        }
        let deadlines = self.replicas.iter().map(|replica| self.sync_deadline(replica.sync));
        deadlines.min().unwrap_or(NEVER)
    }

    /// When a replica's part of the publication takes too long.
    pub(super) fn sync_deadline(&self, sync: Sync) -> Time {
        let serving = &self.config.policy_serving;
        match sync {
            // Aborted turns that do not end are given up one by one.
            Sync::Idle | Sync::Waiting | Sync::Aborting => NEVER,
            // A drain without a time limit would keep the gate closed for ever: 0 aborts at once.
            Sync::Draining(since) => since + serving.pause_timeout,
            Sync::Transferring(since) => deadline(since, serving.transfer_timeout),
            Sync::Loading(since) => deadline(since, serving.load_timeout),
        }
    }
}

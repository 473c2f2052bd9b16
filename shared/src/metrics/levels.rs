//! Time-weighted averages of what is where.

use serde::{Deserialize, Serialize};

use crate::core::{Gauges, Scheduler};
use crate::time::{Span, Time};

/// What is in force between two inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Levels {
    pub(super) gauges: Gauges,
    pub(super) judge_concurrency: u32,
    pub(super) learner: u32,
    pub(super) trained: u64,
}

impl Levels {
    pub(super) fn of(scheduler: &Scheduler) -> Self {
        Self {
            gauges: scheduler.gauges(),
            judge_concurrency: scheduler.config().reward_judging.judge_concurrency,
            learner: scheduler.learner().number(),
            trained: scheduler.ledger().trained,
        }
    }
}

/// A level's integral over time, in units times nanoseconds, and its maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) sum: u128,
    pub(super) max: u32,
}

impl Area {
    #[inline]
    fn add(&mut self, level: u32, span: Span) {
        self.sum += u128::from(level) * u128::from(span.as_nanos());
        self.max = self.max.max(level);
    }
}

/// The integrals of all levels since the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Areas {
    pub(super) running: Area,
    pub(super) held: Area,
    pub(super) rollout_queue: Area,
    pub(super) output_queue: Area,
    pub(super) outstanding: Area,
    pub(super) parked: Area,
    pub(super) training: Area,
    pub(super) replicas_up: Area,
    pub(super) replicas_idle: Area,
    pub(super) publish_lag: Area,
    pub(super) judge_slots: Area,
    pub(super) judge_free: Area,
    pub(super) bound: Area,
}

impl Areas {
    fn add(&mut self, levels: &Levels, span: Span) {
        let gauges = &levels.gauges;
        self.running.add(gauges.running, span);
        self.held.add(gauges.held, span);
        self.rollout_queue.add(gauges.rollout_queue, span);
        self.output_queue.add(gauges.output_queue, span);
        self.outstanding.add(gauges.outstanding, span);
        self.parked.add(gauges.parked, span);
        self.training.add(u32::from(gauges.training), span);
        self.replicas_up.add(gauges.replicas_up, span);
        self.replicas_idle.add(gauges.replicas_up.saturating_sub(gauges.replicas_busy), span);
        self.publish_lag.add(gauges.publish_lag_sum, span);
        self.bound.add(gauges.bound, span);
        self.judge_slots.add(levels.judge_concurrency, span);
        // A limit that was lowered under running votes leaves nothing free, not less.
        self.judge_free.add(levels.judge_concurrency.saturating_sub(gauges.votes), span);
    }
}

/// The times in which new requests were answered with 503.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Windows {
    /// Windows that began since the reset, or were open then.
    pub(super) count: u64,
    /// Their lengths, as far as they lie after the reset.
    pub(super) sum: Span,
    pub(super) longest: Span,
    open: Option<Time>,
}

impl Windows {
    fn set(&mut self, now: Time, closed: bool) {
        match (self.open, closed) {
            (None, true) => {
                self.count += 1;
                self.open = Some(now);
            }
            (Some(_), false) => {
                *self = self.until(now);
                self.open = None;
            }
            _ => {}
        }
    }

    /// These windows, with one that is still open counted up to `now`.
    fn until(self, now: Time) -> Self {
        let Some(since) = self.open else { return self };
        let length = now.since(since);
        Self { sum: self.sum + length, longest: self.longest.max(length), open: Some(now), ..self }
    }
}

/// Integrates [`Levels`] over time. Only a change costs more than a comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct Integrator {
    start: Time,
    since: Time,
    levels: Levels,
    areas: Areas,
    windows: Windows,
}

impl Integrator {
    /// From `now` on, `levels` are in force.
    #[inline]
    pub(super) fn set(&mut self, now: Time, levels: Levels) {
        if levels != self.levels {
            self.areas.add(&self.levels, now.since(self.since));
            self.windows.set(now, levels.gauges.closed);
            (self.since, self.levels) = (now, levels);
        }
    }

    pub(super) fn reset(&mut self, now: Time, levels: Levels) {
        *self = Self { start: now, since: now, levels, ..Self::default() };
        self.windows.set(now, levels.gauges.closed);
    }

    /// What is in force.
    pub(super) const fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The time since the reset, the integrals over it, and its windows.
    pub(super) fn totals(&self, now: Time) -> (Span, Areas, Windows) {
        let mut areas = self.areas.clone();
        areas.add(&self.levels, now.since(self.since));
        (now.since(self.start), areas, self.windows.until(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(running: u32, closed: bool) -> Levels {
        let gauges = Gauges { running, closed, ..Gauges::default() };
        Levels { gauges, ..Levels::default() }
    }

    #[test]
    fn an_average_weighs_each_level_by_how_long_it_lasted() {
        let mut integrator = Integrator::default();
        integrator.set(Time::from_secs(2), levels(3, false));
        integrator.set(Time::from_secs(6), levels(1, false));
        let (span, areas, _) = integrator.totals(Time::from_secs(10));
        assert_eq!(span, Span::from_secs(10));
        assert_eq!(areas.running.sum, (3 * 4 + 4) * 1_000_000_000);
        assert_eq!(areas.running.max, 3);
    }

    #[test]
    fn a_window_that_is_open_at_both_ends_counts_within_them() {
        let mut integrator = Integrator::default();
        integrator.set(Time::from_secs(1), levels(0, true));
        integrator.reset(Time::from_secs(3), levels(0, true));
        integrator.set(Time::from_secs(5), levels(0, false));
        integrator.set(Time::from_secs(6), levels(0, true));
        let (_, _, windows) = integrator.totals(Time::from_secs(9));
        assert_eq!((windows.count, windows.sum), (2, Span::from_secs(5)));
        assert_eq!(windows.longest, Span::from_secs(3));
    }

    #[test]
    fn a_level_of_no_duration_leaves_no_area() {
        let mut integrator = Integrator::default();
        integrator.set(Time::from_secs(2), levels(9, false));
        integrator.set(Time::from_secs(2), levels(0, false));
        let (_, areas, _) = integrator.totals(Time::from_secs(4));
        assert_eq!(areas.running.sum, 0);
    }
}

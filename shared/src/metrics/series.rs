//! Gauges over time, in bounded memory.

use serde::{Deserialize, Serialize};

use super::levels::Levels;
use crate::time::{Span, Time};

/// When a series has this many rows, every second one is dropped.
const MAX_ROWS: usize = 4096;

/// What was in force at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    at: Time,
    levels: Levels,
}

impl Row {
    /// The columns after the time, in the order of [`values`](Self::values). All are numbers of
    /// things, but `training` and `closed` (0 or 1), `publish_lag` (mean over replicas that are
    /// up, in versions) and `bound` (in versions).
    pub const COLUMNS: [&str; 13] = [
        "rollout_queue",
        "output_queue",
        "running",
        "held",
        "votes",
        "training",
        "outstanding",
        "parked",
        "closed",
        "publish_lag",
        "learner",
        "trained",
        "bound",
    ];

    /// When.
    #[must_use]
    pub const fn at(&self) -> Time {
        self.at
    }

    /// Its values by [`COLUMNS`](Self::COLUMNS); the publish lag is `None` while no replica is up.
    #[must_use]
    pub fn values(&self) -> [Option<f64>; Self::COLUMNS.len()] {
        let Levels { gauges, learner, trained, .. } = self.levels;
        let count = |count: u32| Some(f64::from(count));
        let up = gauges.replicas_up;
        [
            count(gauges.rollout_queue),
            count(gauges.output_queue),
            count(gauges.running),
            count(gauges.held),
            count(gauges.votes),
            count(u32::from(gauges.training)),
            count(gauges.outstanding),
            count(gauges.parked),
            count(u32::from(gauges.closed)),
            (up > 0).then(|| f64::from(gauges.publish_lag_sum) / f64::from(up)),
            count(learner),
            Some(trained as f64),
            count(gauges.bound),
        ]
    }
}

/// [`Row`]s at multiples of an interval since the run's start, each with what was in force after
/// the inputs of that instant. It covers the whole run, the warm-up too.
///
/// It never holds 4096 rows: then every second one is dropped and the interval doubles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    interval: Span,
    next: Time,
    rows: Vec<Row>,
}

impl Series {
    /// A series with a row every `interval`; zero: no rows at all.
    pub(super) fn new(interval: Span) -> Self {
        let rows = Vec::with_capacity(if interval == Span::ZERO { 0 } else { MAX_ROWS });
        Self { interval, next: Time::ZERO, rows }
    }

    /// The distance of its rows.
    #[must_use]
    pub const fn interval(&self) -> Span {
        self.interval
    }

    /// Its rows, in order of time.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// `levels` were in force until something happened at `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Time, levels: &Levels) {
        if self.next < now {
            self.fill(now, levels);
        }
    }

    /// Ends the series: `now` itself gets its row, if it is one's time.
    pub(super) fn end(&mut self, now: Time, levels: &Levels) {
        self.fill(now + Span::from_nanos(1), levels);
    }

    #[cold]
    fn fill(&mut self, until: Time, levels: &Levels) {
        while self.interval > Span::ZERO && self.next < until {
            self.rows.push(Row { at: self.next, levels: *levels });
            if self.rows.len() == MAX_ROWS {
                let mut even = false;
                self.rows.retain(|_| {
                    even = !even;
                    even
                });
                self.interval = self.interval.times(2);
                // The last row, of odd index, was dropped; this is its successor's time.
                self.next = self.rows.last().map_or(Time::MAX, |row| row.at);
            }
            self.next += self.interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trained(trained: u64) -> Levels {
        Levels { trained, ..Levels::default() }
    }

    #[test]
    fn rows_carry_the_last_value_forward() {
        let mut series = Series::new(Span::from_secs(1));
        series.advance(Time::from_secs(2), &trained(0));
        series.advance(Time::from_secs(2), &trained(5));
        series.end(Time::from_secs(3), &trained(7));
        let rows: Vec<_> = series.rows().iter().map(|row| (row.at(), row.levels.trained)).collect();
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[1], (Time::from_secs(1), 0));
        assert_eq!(rows[2], (Time::from_secs(2), 7), "after all inputs of that instant");
        assert_eq!(rows[3], (Time::from_secs(3), 7));
    }

    #[test]
    fn a_long_run_halves_the_resolution() {
        let mut series = Series::new(Span::from_secs(1));
        for second in 0..100_000 {
            series.advance(Time::from_secs(second), &trained(second));
        }
        assert!(series.rows().len() < MAX_ROWS);
        assert!(series.rows().len() >= MAX_ROWS / 4);
        assert_eq!(series.interval(), Span::from_secs(32));
        for (index, row) in (0..).zip(series.rows()) {
            assert_eq!(row.at(), Time::from_secs(32 * index));
        }
    }

    #[test]
    fn a_run_of_centuries_ends() {
        let mut series = Series::new(Span::from_nanos(1));
        series.end(Time::MAX, &trained(0));
        assert!(series.rows().len() < MAX_ROWS);
    }
}

//! Instants and durations, in whole nanoseconds since the run's start.
//!
//! The core never reads a clock: a driver passes [`Time`] in. A simulated run and a live run use
//! the same type.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// An instant: nanoseconds since the start of the run. Monotonic; goes on after a restart.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(u64);

/// A duration in nanoseconds, 0 to about 584 years.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than every instant of a run.
    pub const MAX: Time = Time(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// The instant `secs` whole seconds after the start (saturating).
    #[must_use]
    pub const fn from_secs(secs: u64) -> Time {
        Time(secs.saturating_mul(NANOS_PER_SEC))
    }

    /// Nanoseconds since the start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start, for reports.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// The time passed since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than every run.
    pub const MAX: Span = Span(u64::MAX);

    /// `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Span {
        Span(nanos)
    }

    /// `millis` milliseconds (saturating).
    #[must_use]
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000_000))
    }

    /// `secs` whole seconds (saturating).
    #[must_use]
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs.saturating_mul(NANOS_PER_SEC))
    }

    /// `secs` seconds, rounded to the nearest nanosecond; `None` for a negative, infinite or
    /// undefined number. More than the range saturates.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Option<Span> {
        // `as` saturates, which is what the doc says.
        (secs.is_finite() && secs >= 0.0)
            .then_some(Span((secs * NANOS_PER_SEC as f64 + 0.5) as u64))
    }

    /// The number of nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The number of seconds, for reports.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// `self * factor`, saturating.
    #[must_use]
    pub const fn times(self, factor: u64) -> Span {
        Span(self.0.saturating_mul(factor))
    }

    /// The next whole number of seconds: itself, or later.
    #[must_use]
    pub const fn whole_secs(self) -> Span {
        Span(self.0.div_ceil(NANOS_PER_SEC).saturating_mul(NANOS_PER_SEC))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

impl fmt::Display for Span {
    /// Seconds with as many decimals as are needed: `1.5s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, nanos) = (self.0 / NANOS_PER_SEC, self.0 % NANOS_PER_SEC);
        if nanos == 0 {
            return write!(f, "{secs}s");
        }
        let decimals = format!("{nanos:09}");
        write!(f, "{secs}.{}s", decimals.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_print_as_seconds() {
        assert_eq!(Span::from_millis(1500).to_string(), "1.5s");
        assert_eq!(Span::from_secs(120).to_string(), "120s");
        assert_eq!(Span::from_nanos(1).to_string(), "0.000000001s");
    }

    #[test]
    fn negative_and_undefined_seconds_are_no_span() {
        assert_eq!(Span::from_secs_f64(-0.1), None);
        assert_eq!(Span::from_secs_f64(f64::NAN), None);
        assert_eq!(Span::from_secs_f64(f64::INFINITY), None);
        assert_eq!(Span::from_secs_f64(0.0000000004), Some(Span::ZERO));
        assert_eq!(Span::from_secs_f64(1e300), Some(Span::MAX));
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Time::MAX + Span::from_secs(1), Time::MAX);
        assert_eq!(Time::ZERO.since(Time::from_secs(1)), Span::ZERO);
    }
}

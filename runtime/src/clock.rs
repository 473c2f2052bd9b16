//! The only clock of the runtime.
#![allow(clippy::disallowed_types, reason = "a live run needs a clock; nothing else reads one")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use headway_shared::time::{Span, Time};

/// Nanoseconds since the run's start, monotonic; goes on after a restart. Copies agree, on every
/// thread.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// When this process took the run up.
    origin: Instant,
    /// How old the run was then.
    offset: Time,
}

impl Clock {
    /// A clock that shows `offset` now.
    #[must_use]
    pub fn from(offset: Time) -> Self {
        Self { origin: Instant::now(), offset }
    }

    /// The time since the run's start.
    #[must_use]
    pub fn now(&self) -> Time {
        let nanos = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.offset + Span::from_nanos(nanos)
    }

    /// When `time` is, for a timer of tokio; at most a day away, so that it can be represented.
    #[must_use]
    pub fn instant(&self, time: Time) -> tokio::time::Instant {
        let ahead = time.since(self.offset).as_nanos().min(self.now().as_nanos() + DAY);
        let since_origin = Duration::from_nanos(ahead);
        tokio::time::Instant::from_std(self.origin) + since_origin
    }
}

const DAY: u64 = 86_400_000_000_000;

/// Milliseconds since 1970, for columns that people read. No decision knows it.
#[must_use]
pub fn wall_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

//! Refused requests of the last minutes, so that a page that is opened late shows them, too.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use headway_shared::action::Refusal;
use headway_shared::time::Time;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::clock::{Clock, wall_millis};
use crate::driver::Status;

/// The statuses that are told apart.
pub(super) const CODES: [u16; 2] = [429, 503];
/// Seconds of a bar.
const BAR_SEC: u64 = 10;
/// So many bars are kept: ten minutes.
const BARS: u64 = 60;
/// The counters are looked at at most so often, while they change.
const PAUSE: Duration = Duration::from_millis(250);

/// Refused main requests, counted since the gateway began.
#[derive(Clone, Debug)]
pub(super) struct Refusals {
    clock: Clock,
    /// When that was, in milliseconds since 1970: it tells processes of a run apart.
    began: i64,
    bars: Arc<Mutex<Bars>>,
}

impl Refusals {
    pub(super) fn new() -> Self {
        Self { clock: Clock::from(Time::ZERO), began: wall_millis(), bars: Arc::default() }
    }

    /// Counts until the run is over.
    pub(super) async fn follow(self, mut status: watch::Receiver<Status>) {
        while status.changed().await.is_ok() {
            self.note(&status.borrow_and_update());
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// What was refused up to now, as a page is told it.
    pub(super) fn shown(&self, status: &Status) -> Value {
        self.note(status);
        let bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        json!({"began_ms": self.began, "bar_sec": BAR_SEC, "bars": bars.until(self.clock.now())})
    }

    pub(super) fn note(&self, status: &Status) {
        let counts = CODES.map(|code| refused(status, code));
        let mut bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        bars.note(self.clock.now(), counts);
    }
}

/// Main requests that were refused with this status.
pub(super) fn refused(status: &Status, code: u16) -> u64 {
    let reasons = Refusal::ALL.iter().filter(|reason| reason.status() == code);
    reasons.map(|reason| status.ledger.refused[reason.index()]).sum()
}

/// What was counted.
#[derive(Debug, Default)]
struct Bars {
    /// The counters, as they were last looked at.
    last: Option<[u64; 2]>,
    /// The number of a bar since the beginning, and what was refused in it: those in which something was.
    bars: VecDeque<(u64, [u64; 2])>,
}

impl Bars {
    /// Takes note of the counters.
    fn note(&mut self, now: Time, counts: [u64; 2]) {
        // A recovered run counted before; counters that were read late count nothing twice.
        let last = self.last.unwrap_or(counts);
        let more = [0, 1].map(|code| counts[code].saturating_sub(last[code]));
        self.last = Some([0, 1].map(|code| counts[code].max(last[code])));
        if more == [0, 0] {
            return;
        }
        let number = number(now);
        match self.bars.back_mut().filter(|(newest, _)| *newest == number) {
            Some((_, bar)) => [0, 1].into_iter().for_each(|code| bar[code] += more[code]),
            None => self.bars.push_back((number, more)),
        }
        while self.bars.front().is_some_and(|(oldest, _)| oldest + BARS <= number) {
            self.bars.pop_front();
        }
    }

    /// How many bars ago, and how many refusals of each status.
    fn until(&self, now: Time) -> Vec<[u64; 3]> {
        let age = |number: u64| self::number(now).saturating_sub(number);
        let bars = self.bars.iter().filter(|(number, _)| age(*number) < BARS);
        bars.map(|&(number, [busy, closed])| [age(number), busy, closed]).collect()
    }
}

fn number(now: Time) -> u64 {
    now.as_nanos() / (BAR_SEC * 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use headway_shared::time::Span;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn what_was_refused_stands_in_the_bar_of_its_time_and_ages() {
        let mut bars = Bars::default();
        for (seconds, counts) in [(0, [7, 1]), (3, [9, 1]), (9, [9, 2]), (25, [10, 2])] {
            bars.note(at(seconds), counts);
        }
        assert_eq!(bars.until(at(29)), [[2, 2, 1], [0, 1, 0]], "what was before is in no bar");
        assert_eq!(bars.until(at(609)), [[58, 1, 0]]);
        assert_eq!(bars.until(at(2000)), [[0; 3]; 0]);
    }

    #[test]
    fn counters_that_are_read_late_count_nothing_twice() {
        let mut bars = Bars::default();
        for counts in [[0, 0], [5, 0], [3, 0], [6, 0]] {
            bars.note(at(1), counts);
        }
        assert_eq!(bars.until(at(1)), [[0, 6, 0]]);
    }

    #[test]
    fn no_more_than_ten_minutes_are_kept() {
        let mut bars = Bars::default();
        for count in 0..10_000 {
            bars.note(at(count * 7), [count, count]);
        }
        assert!(bars.bars.len() as u64 <= BARS, "{}", bars.bars.len());
        assert_eq!(bars.until(at(9999 * 7)).len() as u64, BARS);
    }
}

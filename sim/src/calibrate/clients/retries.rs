//! What clients do when they are refused.

use headway_shared::time::Time;

use super::turns_of;
use crate::calibrate::estimate::{Estimates, Item, number};
use crate::calibrate::fit::Unit;
use crate::calibrate::measured::{Measured, Turn};
use crate::calibrate::series::Values;

const NESTED: &str = "world.clients.retries";
/// The official client: half a second doubled to 8, a `Retry-After` up to a minute.
const DEFAULT_RETRIES: u32 = 2;
const BACKOFF_SEC: f64 = 0.5;
const BACKOFF_MAX_SEC: f64 = 8.0;
const RETRY_AFTER_MAX_SEC: f64 = 60.0;
/// A client that waits longer than it was told to by so much is its user who comes back.
const SLACK_SEC: f64 = 1.0;
/// The most that a scenario takes: clients that never gave up.
const NEVER: u32 = 1000;

/// Retries of a turn by its client, between the returns of its user.
#[derive(Debug, Default)]
struct Seen {
    /// Most retries in a row.
    most: u32,
    /// Retries in a row after which the client gave up.
    given_up: Vec<u32>,
    /// Seconds after which users came back.
    returns: Vec<f64>,
    /// Users who did not.
    gone: u64,
    /// First waits without a time that was told.
    first: Vec<f64>,
    /// The longest such wait.
    longest: f64,
    /// Requests that were sent again.
    retried: usize,
}

/// Adds `retries`, where anything was refused.
pub(super) fn retries(estimates: &mut Estimates, measured: &Measured, since: Time) {
    let mut seen = Seen::default();
    for session in &measured.sessions.all {
        let silent = measured.end.since(session.until).as_secs_f64();
        // Whoever could still come back within the longest wait is neither here nor gone.
        let gone = session.refused && silent > RETRY_AFTER_MAX_SEC + SLACK_SEC;
        let last = session.turns.len().saturating_sub(1);
        for (place, turn) in session.turns.iter().enumerate() {
            if turn.at >= since && (!turn.retries.is_empty() || (gone && place == last)) {
                seen.turn(turn, gone && place == last);
            }
        }
    }
    if seen.retried > 0 || seen.gone > 0 {
        seen.add(estimates);
    }
    timeouts(estimates, measured, since);
}

impl Seen {
    fn turn(&mut self, turn: &Turn, gone: bool) {
        let mut in_a_row = 0;
        for &(waited, told) in &turn.retries {
            self.retried += 1;
            let most = if told > 0.0 { told.min(RETRY_AFTER_MAX_SEC) } else { BACKOFF_MAX_SEC };
            if waited > most + SLACK_SEC {
                self.given_up.push(in_a_row);
                self.returns.push(waited);
                in_a_row = 0;
                continue;
            }
            in_a_row += 1;
            self.most = self.most.max(in_a_row);
            if told == 0.0 {
                self.longest = self.longest.max(waited);
                if in_a_row == 1 {
                    self.first.push(waited);
                }
            }
        }
        if gone {
            self.given_up.push(in_a_row);
            self.gone += 1;
        }
    }

    fn add(mut self, estimates: &mut Estimates) {
        let setting =
            |key, value: String, count| Item::setting("retries", NESTED, key, value, count);
        // A user who came back as soon as the client would have is none: so the median.
        self.given_up.sort_unstable();
        let most = match self.given_up.get(self.given_up.len() / 2) {
            Some(given_up) => *given_up,
            None if self.most > DEFAULT_RETRIES => NEVER,
            None => DEFAULT_RETRIES,
        };
        let known = if self.given_up.is_empty() { "; none gave up" } else { "" };
        estimates.note(format!(
            "retries: a refused request was sent again up to {} times in a row{known}",
            self.most
        ));
        estimates.items.push(setting("max_retries", most.min(NEVER).to_string(), self.retried));
        self.waits(estimates);
        let back = self.returns.len() as u64;
        let left = back + self.gone;
        estimates.share("users who come back", NESTED, "return_share", back, left, 1);
        let values = Values { values: self.returns, cut: 0 };
        estimates.law("users' return", NESTED, "return_after", Unit::Seconds, values);
    }

    /// Waits that are not those of the official client.
    fn waits(&mut self, estimates: &mut Estimates) {
        self.first.sort_by(f64::total_cmp);
        let Some(median) = self.first.get(self.first.len() / 2).copied() else { return };
        // A wait is shortened at random by up to a quarter.
        let first = median / 0.875;
        if (first - BACKOFF_SEC).abs() <= 0.25 * BACKOFF_SEC {
            return;
        }
        let count = self.first.len();
        let mut add = |key, secs: f64| {
            estimates.items.push(Item::setting("retries", NESTED, key, number(secs), count));
        };
        add("backoff_sec", first);
        add("backoff_max_sec", self.longest.max(first));
    }
}

/// Clients that left before they were answered.
fn timeouts(estimates: &mut Estimates, measured: &Measured, since: Time) {
    let waited: Vec<f64> = turns_of(measured, since).filter_map(|turn| turn.left).collect();
    let ends = |ends: (f64, f64), secs: &f64| (ends.0.min(*secs), ends.1.max(*secs));
    let (low, high) = waited.iter().fold((f64::INFINITY, 0.0), ends);
    if waited.is_empty() {
        return;
    }
    if high - low <= 0.05 * high {
        let item =
            Item::setting("client's time limit", NESTED, "timeout_sec", number(low), waited.len());
        estimates.items.push(item);
    } else {
        estimates.note(format!(
            "{} requests were left by their clients after {} to {} s: simulated clients leave at \
             one time limit only",
            waited.len(),
            number(low),
            number(high)
        ));
    }
}

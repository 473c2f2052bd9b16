//! How clients try again: what the official OpenAI client does, for simulated and for real ones.

use crate::time::Span;

/// When a client sends a request again that was refused or failed (openai-python,
/// `_should_retry` and `_calculate_retry_timeout`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Wait before the first retry without `Retry-After`; doubled with each try.
    pub first: Span,
    /// The longest such wait.
    pub longest: Span,
    /// A longer `Retry-After` is not honoured.
    pub retry_after_max: Span,
}

impl Default for Backoff {
    /// As the official client: from half a second to 8, and `Retry-After` up to a minute.
    fn default() -> Self {
        Self {
            first: Span::from_millis(500),
            longest: Span::from_secs(8),
            retry_after_max: Span::from_secs(60),
        }
    }
}

impl Backoff {
    /// Whether an answer with this HTTP status is tried again.
    #[must_use]
    pub const fn retries(status: u16) -> bool {
        matches!(status, 408 | 409 | 429 | 500..)
    }

    /// The wait before the next try: `Retry-After` where it is above zero and not above the longest
    /// honoured one, else the backoff, less up to a quarter at random. `tries`: requests sent so
    /// far; `random`: from 0 to 1.
    #[must_use]
    pub fn delay(&self, tries: u32, retry_after: Span, random: f64) -> Span {
        if retry_after > Span::ZERO && retry_after <= self.retry_after_max {
            return retry_after;
        }
        // 2^30 backoffs are far above every maximum.
        let doublings = tries.saturating_sub(1).min(30);
        let backoff = self.first.times(1 << doublings).min(self.longest);
        Span::from_secs_f64(backoff.as_secs_f64() * (1.0 - 0.25 * random)).unwrap_or(Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn honours_retry_after_up_to_a_minute() {
        let wait = |secs| Backoff::default().delay(1, Span::from_secs(secs), 0.0);
        assert_eq!(wait(60), Span::from_secs(60));
        assert_eq!(wait(61), Span::from_millis(500));
    }

    #[test]
    fn backs_off_from_half_a_second_to_eight_less_a_quarter() {
        let delay = |tries, random| Backoff::default().delay(tries, Span::ZERO, random);
        let waits: Vec<_> = (1..=7).map(|tries| delay(tries, 0.0).as_secs_f64()).collect();
        assert_eq!(waits, [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]);
        assert_eq!(delay(2, 1.0), Span::from_millis(750));
        assert_eq!(delay(1000, 0.0), Span::from_secs(8));
    }

    #[test]
    fn tries_again_what_may_go_better_the_next_time() {
        assert!([408, 409, 429, 500, 503].into_iter().all(Backoff::retries));
        assert!(![200, 400, 401, 404, 413, 422].into_iter().any(Backoff::retries));
    }
}

//! When a refused request is sent again.

use headway_shared::digest::mix;
use headway_shared::time::Span;

use crate::world::event::span;
use crate::world::settings::Retries;

/// Uniform in [0, 1): the `index`-th number of a turn's luck.
pub(in crate::world) fn luck(seed: u64, index: u64) -> f64 {
    const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
    (mix(seed ^ mix(index)) >> 11) as f64 * STEP
}

/// How long the official OpenAI client waits before its next try (openai-python,
/// `_calculate_retry_timeout`): `Retry-After` where it is above zero and not above the largest
/// honoured one, else the backoff, doubled with each try, less up to a quarter at random.
/// `tries`: requests sent so far; `random`: from 0 to 1.
pub(super) fn delay(retries: &Retries, tries: u32, retry_after: Span, random: f64) -> Span {
    if retry_after > Span::ZERO && retry_after <= retries.retry_after_max {
        return retry_after;
    }
    // 2^30 backoffs are far above every maximum.
    let doublings = tries.saturating_sub(1).min(30);
    let backoff = retries.backoff.times(1 << doublings).min(retries.backoff_max);
    span(backoff.as_secs_f64() * (1.0 - 0.25 * random))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::sampler::Distribution;

    fn official() -> Retries {
        Retries {
            max_retries: 2,
            backoff: Span::from_millis(500),
            backoff_max: Span::from_secs(8),
            retry_after_max: Span::from_secs(60),
            timeout: Span::ZERO,
            return_share: 1.0,
            return_after: Distribution::constant(30.0).unwrap(),
        }
    }

    #[test]
    fn honours_retry_after_up_to_a_minute() {
        let wait = |secs| delay(&official(), 1, Span::from_secs(secs), 0.0);
        assert_eq!(wait(60), Span::from_secs(60));
        assert_eq!(wait(61), Span::from_millis(500));
    }

    #[test]
    fn backs_off_from_half_a_second_to_eight_less_a_quarter() {
        let waits: Vec<_> =
            (1..=7).map(|tries| delay(&official(), tries, Span::ZERO, 0.0).as_secs_f64()).collect();
        assert_eq!(waits, [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]);
        assert_eq!(delay(&official(), 2, Span::ZERO, 1.0), Span::from_millis(750));
        assert_eq!(delay(&official(), 1000, Span::ZERO, 0.0), Span::from_secs(8));
    }

    #[test]
    fn luck_is_uniform_and_differs_by_index() {
        let numbers: Vec<f64> = (0..1000).map(|index| luck(7, index)).collect();
        let mean = numbers.iter().fold(0.0, |sum, number| sum + number) / 1000.0;
        assert!((mean - 0.5).abs() < 0.03, "mean {mean}");
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
    }
}

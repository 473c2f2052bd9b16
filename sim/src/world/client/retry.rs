//! When a refused request is sent again.

use headway_shared::backoff::Backoff;
use headway_shared::digest::mix;
use headway_shared::time::Span;

use crate::world::settings::Retries;

/// Uniform in [0, 1): the `index`-th number of a turn's luck.
pub(in crate::world) fn luck(seed: u64, index: u64) -> f64 {
    const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
    (mix(seed ^ mix(index)) >> 11) as f64 * STEP
}

/// How long the client waits before its next try: see [`Backoff::delay`].
pub(super) fn delay(retries: &Retries, tries: u32, retry_after: Span, random: f64) -> Span {
    let Retries { backoff, backoff_max, retry_after_max, .. } = *retries;
    let backoff = Backoff { first: backoff, longest: backoff_max, retry_after_max };
    backoff.delay(tries, retry_after, random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luck_is_uniform_and_differs_by_index() {
        let numbers: Vec<f64> = (0..1000).map(|index| luck(7, index)).collect();
        let mean = numbers.iter().fold(0.0, |sum, number| sum + number) / 1000.0;
        assert!((mean - 0.5).abs() < 0.03, "mean {mean}");
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
    }
}

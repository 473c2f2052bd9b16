//! The largest ratio among tokens that were not drawn one by one.
//!
//! The largest of many tokens is far beyond those of a sample of them. Its law follows from how
//! many tokens there are of each age, without drawing any: `P(max <= x)` is the product of `F(x)` over
//! the tokens.

use std::collections::BTreeMap;

use super::model::Tokens;

/// Steps of the integral over how unlikely tokens are, and halvings of the interval that the
/// maximum lies in: to 1e-9 nats.
const STEPS: u32 = 64;
const HALVINGS: u32 = 40;
/// A log-ratio beyond this is none that anything could be done with.
const FURTHEST: f64 = 1000.0;

/// Tokens of one staleness that were not drawn, by the variance of their log-ratio and their population
/// (as bits, so that they can be keys); and those with the label of the token after them, by entropy.
#[derive(Clone, Debug, Default)]
pub(super) struct Undrawn {
    by_law: BTreeMap<[u64; 3], u64>,
    shifted: BTreeMap<u64, u64>,
}

impl Undrawn {
    /// Adds `count` tokens.
    pub(super) fn add(&mut self, tokens: &Tokens, variance: f64, count: u64, shifted: bool) {
        if count == 0 {
            return;
        }
        let law = [variance, tokens.entropy, tokens.tail].map(f64::to_bits);
        *self.by_law.entry(law).or_default() += count;
        if shifted {
            *self.shifted.entry(tokens.entropy.to_bits()).or_default() += count;
        }
    }

    /// The logarithm of the largest ratio, at the place `uniform` (0 to 1, both excluded) of its
    /// distribution; `None` without tokens.
    pub(super) fn largest(&self, uniform: f64) -> Option<f64> {
        let limit = -libm::log(uniform);
        if self.by_law.is_empty() {
            return None;
        }
        // The expected number of tokens above x, which falls with x; at the maximum of this place
        // it is -log(uniform), but for what lies between n log(1 - s) and -n s.
        let above = |x: f64| self.logs_above(x);
        let (mut low, mut high) = (-FURTHEST, FURTHEST);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if above(middle) > limit {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(high)
    }

    /// Minus the logarithm of the probability that no token is above `x`.
    fn logs_above(&self, x: f64) -> f64 {
        let none = |count: u64, survival: f64| match survival {
            1.0.. => f64::INFINITY,
            share => -(count as f64) * libm::log1p(-share),
        };
        let drawn = self.by_law.iter().fold(0.0, |sum, (&law, &count)| {
            let [variance, entropy, tail] = law.map(f64::from_bits);
            let tokens = Tokens { entropy, tail, tail_fade: 0.0 };
            sum + none(count, survival(&tokens, variance, x))
        });
        self.shifted.iter().fold(drawn, |sum, (&entropy, &count)| {
            sum + none(count, shifted_survival(f64::from_bits(entropy), x))
        })
    }
}

/// The share of tokens whose log-ratio, of this variance over all tokens, is above `x`.
///
/// By parts over `q`, one minus the token's probability: above `x` are `g(q)` of those with scale
/// `c(q)`, and `(1 - q)^(1/entropy)` of all tokens have a larger q, so that the share is the integral
/// of that by `dg`.
pub(super) fn survival(tokens: &Tokens, variance: f64, x: f64) -> f64 {
    let norm = tokens.norm();
    let of = |unlikely: f64| normal_above(tokens.raw_scale(unlikely) / norm, variance, x);
    if tokens.tail == 0.0 {
        return of(1.0);
    }
    let rate = 1.0 / tokens.entropy;
    let first = of(0.0);
    let (mut sum, mut before) = (first, first);
    for step in 1..=STEPS {
        let here = of(f64::from(step) / f64::from(STEPS));
        let likely = 1.0 - (f64::from(step) - 0.5) / f64::from(STEPS);
        sum += (here - before) * libm::pow(likely, rate);
        before = here;
    }
    sum.clamp(0.0, 1.0)
}

/// P(c x - c² v / 2 > at) for x normal with variance v.
fn normal_above(scale: f64, variance: f64, at: f64) -> f64 {
    let deviation = scale * libm::sqrt(variance);
    if deviation <= 0.0 {
        return if at < 0.0 { 1.0 } else { 0.0 };
    }
    let distance = (at + 0.5 * deviation * deviation) / deviation;
    0.5 * libm::erfc(distance / std::f64::consts::SQRT_2)
}

/// The same for the difference of two tokens' -log(probability), each exponential.
fn shifted_survival(entropy: f64, x: f64) -> f64 {
    let tail = 0.5 * libm::exp(-x.abs() / entropy);
    if x > 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::math::normal_quantile;

    #[test]
    fn the_largest_of_normal_logs_is_the_quantile_of_their_number() {
        let tokens = Tokens { entropy: 0.5, tail: 0.0, tail_fade: 0.0 };
        let (variance, count) = (0.04, 1_000_000);
        let mut undrawn = Undrawn::default();
        assert_eq!(undrawn.largest(0.5), None);
        undrawn.add(&tokens, variance, count, false);
        let found = undrawn.largest(0.5).unwrap();
        // F(x)^n = 1/2.
        let share = -libm::expm1(libm::log(0.5) / count as f64);
        let expected = -0.2 * normal_quantile(share) - 0.02;
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }

    #[test]
    fn an_unlikely_token_has_the_heavier_tail() {
        let (light, heavy) = (
            Tokens { entropy: 0.5, tail: 0.0, tail_fade: 0.0 },
            Tokens { entropy: 0.5, tail: 1.0, tail_fade: 0.0 },
        );
        let above = |tokens: &Tokens| survival(tokens, 0.04, 0.8);
        assert!(above(&heavy) > 10.0 * above(&light));
    }

    #[test]
    fn the_share_above_a_ratio_is_that_of_tokens_drawn_one_by_one() {
        let tokens = Tokens { entropy: 0.5, tail: 1.0, tail_fade: 0.0 };
        let steps = 4_000;
        let place = |step: i32| (f64::from(step) + 0.5) / f64::from(steps);
        for x in [-0.3, -0.05, 0.0, 0.1, 0.4, 0.9] {
            let of = |step: i32| {
                // -log(probability) at this place of the exponential law.
                let unlikely = -libm::expm1(tokens.entropy * libm::log(place(step)));
                normal_above(unlikely / tokens.norm(), 0.04, x)
            };
            let sum = (0..steps).map(of).fold(0.0, |sum, share| sum + share);
            let (found, expected) = (survival(&tokens, 0.04, x), sum / f64::from(steps));
            assert!((found / expected - 1.0).abs() < 0.02, "{x}: {found} {expected}");
        }
    }
}

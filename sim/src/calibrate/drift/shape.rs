//! The shape of log-ratios within a step.

use std::collections::BTreeMap;

use headway_shared::digest::Digest;

use super::Reading;
use crate::drift::Tokens;
use crate::kernel::math::normal_quantile;
use crate::kernel::random::{Component, Key};

/// Steps that are drawn to know what a population of tokens shows, and most tokens of one.
const STEPS: usize = 101;
const MOST_TOKENS: usize = 400;
/// What entropies are tried: so many, each larger than the one before by the same factor.
const ENTROPIES: i32 = 33;
const LEAST_ENTROPY: f64 = 0.05;
const MOST_ENTROPY: f64 = 10.0;
/// A tail that is not 1 is taken where it leaves less than this share of the squared misfit.
const CLEARLY: f64 = 0.5;

/// What the steps of one distance show.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shown {
    /// The root mean square of the log-ratio.
    root: f64,
    /// The mean size of the log-ratio, beside that.
    abs: f64,
    /// How far the logarithm of the 99th percentile is above the mean, beside that.
    p99: f64,
}

/// A token of every step: how surprising it is for an entropy of 1, and how far its log-ratio is for a
/// scale of 1.
type Draws = Vec<Vec<(f64, f64)>>;

/// The population of tokens whose log-ratios have the shape that was measured: by least squares to
/// `E|x| / rms` and `(log p99 - mean) / rms` at every distance above 0, each the median over steps.
/// `None`: nothing moved.
///
/// The mean is taken off, for it has either sign: tokens that are trained come from the older policy, which
/// had them more likely than the newer one; those of a lag probe come from a policy near the newer one.
///
/// In the medians a step counts as much as its root mean square: where training has come to rest, a
/// few tokens still move and the shape is another, and such steps show in no figure. What a
/// population shows is the median over steps of as many tokens, drawn from a fixed stream, for the
/// 99th percentile of 200 tokens is the second largest of them, and not that of the law.
pub(super) fn tokens(readings: &[Reading]) -> Option<Tokens> {
    let moved = |reading: &&Reading| reading.point.k > 0 && reading.point.log_square > 0.0;
    let moved: Vec<&Reading> = readings.iter().filter(moved).collect();
    let mut by_distance: BTreeMap<u32, Vec<&Reading>> = BTreeMap::new();
    for &reading in &moved {
        by_distance.entry(reading.point.k).or_default().push(reading);
    }
    let measured: Vec<(Shown, f64)> =
        by_distance.values().map(|of| (measured(of), of.len() as f64)).collect();
    let count = median(moved.iter().map(|reading| (reading.point.tokens, 1.0)).collect())?;
    let draws = draws((count as usize).clamp(1, MOST_TOKENS));
    let best = |tail: f64| {
        let tried = entropies(tail).map(|entropy| {
            let tokens = Tokens { entropy, tail };
            (tokens, misfit(&tokens, &measured, &draws))
        });
        tried.reduce(|best, other| if other.1 < best.1 { other } else { best })
    };
    let usual = best(1.0)?;
    let others = [0.0, 0.5, 2.0].into_iter().filter_map(best);
    let other = others.reduce(|best, other| if other.1 < best.1 { other } else { best })?;
    Some(if other.1 < CLEARLY * usual.1 { other.0 } else { usual.0 })
}

/// Without a tail all tokens are alike, whatever the entropy.
fn entropies(tail: f64) -> impl Iterator<Item = f64> {
    let step = libm::log(MOST_ENTROPY / LEAST_ENTROPY) / f64::from(ENTROPIES - 1);
    let all = (0..ENTROPIES).map(move |at| LEAST_ENTROPY * libm::exp(step * f64::from(at)));
    let usual = 0.5;
    all.map(move |entropy| if tail == 0.0 { usual } else { entropy }).take(if tail == 0.0 {
        1
    } else {
        ENTROPIES as usize
    })
}

fn measured(readings: &[&Reading]) -> Shown {
    let root = |reading: &Reading| libm::sqrt(reading.point.log_square);
    let of = |value: &dyn Fn(&Reading) -> f64| {
        median(readings.iter().map(|reading| (value(reading), root(reading))).collect())
            .unwrap_or(0.0)
    };
    Shown {
        root: of(&root),
        abs: of(&|reading| reading.abs / root(reading)),
        p99: of(&|reading| (libm::log(reading.p99.max(1e-300)) - reading.mean) / root(reading)),
    }
}

fn draws(tokens: usize) -> Draws {
    let key = Key::new(0, Digest::of(b"shape of drift"), 0);
    let step = |step: usize| {
        let mut stream = key.stream(Component::Token, step as u64);
        (0..tokens).map(|_| (stream.exponential(), normal_quantile(stream.uniform()))).collect()
    };
    (0..STEPS).map(step).collect()
}

fn misfit(tokens: &Tokens, measured: &[(Shown, f64)], draws: &Draws) -> f64 {
    let norm = tokens.norm();
    let scaled: Draws = draws
        .iter()
        .map(|step| {
            let scale =
                |surprise: f64| tokens.raw_scale(-libm::expm1(-tokens.entropy * surprise)) / norm;
            step.iter().map(|&(surprise, normal)| (scale(surprise), normal)).collect()
        })
        .collect();
    measured.iter().fold(0.0, |sum, &(measured, weight)| {
        let shown = shown(&scaled, measured.root);
        let (abs, p99) = (shown.abs - measured.abs, shown.p99 - measured.p99);
        sum + weight * (abs * abs + p99 * p99)
    })
}

/// What steps of tokens with these scales show, where the root mean square is `root`.
fn shown(scaled: &Draws, root: f64) -> Shown {
    let mut logs = Vec::new();
    let (mut abs, mut p99) = (Vec::new(), Vec::new());
    for step in scaled {
        logs.clear();
        logs.extend(step.iter().map(|&(scale, normal)| {
            let deviation = scale * root;
            deviation * normal - 0.5 * deviation * deviation
        }));
        let count = logs.len();
        let sum = |of: &dyn Fn(f64) -> f64| logs.iter().fold(0.0, |sum, &log| sum + of(log));
        let own = libm::sqrt(sum(&|log| log * log) / count as f64).max(1e-300);
        abs.push((sum(&f64::abs) / count as f64 / own, 1.0));
        let total = sum(&|log| log);
        // By nearest rank, as the trainer reports it.
        let rank = (99 * count).div_ceil(100) - 1;
        let (_, &mut at, _) = logs.select_nth_unstable_by(rank, f64::total_cmp);
        let mean = total / count as f64;
        p99.push(((at - mean) / own, 1.0));
    }
    let middle = |values| median(values).unwrap_or(0.0);
    Shown { root, abs: middle(abs), p99: middle(p99) }
}

/// The median of values that count so much.
fn median(mut values: Vec<(f64, f64)>) -> Option<f64> {
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let half = 0.5 * values.iter().fold(0.0, |sum, (_, weight)| sum + weight);
    let mut seen = 0.0;
    let reached = |(_, weight): &&(f64, f64)| {
        seen += weight;
        seen >= half
    };
    values.iter().find(reached).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::fit::ProbePoint;

    /// What steps of a population report at five distances: tokens of the older policy, or with
    /// `newer` those of the newer one.
    fn readings(tokens: Tokens, newer: bool) -> Vec<Reading> {
        let key = Key::new(3, Digest::of(b"another"), 0);
        let mut out = Vec::new();
        for step in 0..40_u32 {
            for k in 1..=5_u32 {
                let mut stream = key.stream(Component::Token, u64::from(step * 8 + k));
                let root = 0.05 * f64::from(k);
                let mut logs: Vec<f64> = (0..200)
                    .map(|_| {
                        let surprise = tokens.entropy * stream.exponential();
                        let scale = tokens.raw_scale(-libm::expm1(-surprise)) / tokens.norm();
                        let deviation = scale * root;
                        let half = if newer { 0.5 } else { -0.5 };
                        deviation * stream.normal() + half * deviation * deviation
                    })
                    .collect();
                logs.sort_by(f64::total_cmp);
                let mean = |of: &dyn Fn(f64) -> f64| {
                    logs.iter().fold(0.0, |sum, &log| sum + of(log)) / 200.0
                };
                let log_square = mean(&|log| log * log);
                let point = ProbePoint { step, k, log_square, tokens: 200.0 };
                let (abs, p99) = (mean(&f64::abs), libm::exp(logs[197]));
                out.push(Reading { point, abs, p99, mean: mean(&|log| log) });
            }
        }
        out
    }

    #[test]
    fn the_shape_of_what_was_measured_is_found() {
        let truth = Tokens { entropy: 0.4, tail: 1.0 };
        for newer in [false, true] {
            let found = tokens(&readings(truth, newer)).unwrap();
            assert_eq!(found.tail, 1.0);
            let ratio = found.kurtosis() / truth.kurtosis();
            assert!((ratio - 1.0).abs() < 0.15, "{newer}: {found:?}");
        }
    }

    #[test]
    fn tokens_that_are_all_alike_have_the_kurtosis_of_a_normal_law() {
        let found = tokens(&readings(Tokens { entropy: 0.5, tail: 0.0 }, true)).unwrap();
        assert!(found.kurtosis() < 3.6, "{found:?}");
        assert_eq!(tokens(&[]), None);
    }

    #[test]
    fn a_heavy_tail_is_told_from_a_light_one() {
        let found = tokens(&readings(Tokens { entropy: 0.1, tail: 2.0 }, false)).unwrap();
        assert_eq!(found.tail, 2.0, "{found:?}");
    }
}

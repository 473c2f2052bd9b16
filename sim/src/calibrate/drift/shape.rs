//! The shape of log-ratios within a step.

use std::collections::BTreeMap;

use headway_shared::digest::Digest;
use rayon::prelude::*;

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
/// Another tail is taken where it leaves less than this share of the squared misfit, and the usual one more
/// than this for each group of distances: the 99th percentile of 200 tokens varies by 0.3 to 0.4 of their
/// root mean square.
const USUAL_TAIL: f64 = 1.0;
const TAILS: [f64; 5] = [0.5, USUAL_TAIL, 2.0, 4.0, 8.0];
const CLEARLY: f64 = 0.5;
const LEFT_TO_CHANCE: f64 = 0.2;
/// The fades that are tried: the same tokens in every version, or others; and more than that.
const FADES: [f64; 3] = [0.0, 0.5, 1.0];

/// What the steps of one stretch show of distances that are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shown {
    /// The root mean square of the log-ratio.
    root: f64,
    /// The mean size of the log-ratio, beside that.
    abs: f64,
    /// How far the logarithm of the 99th percentile is above the mean, beside that.
    p99: f64,
}

/// What was measured in one stretch, by group of distances, and of how many readings.
type Cells = BTreeMap<usize, (Shown, f64)>;

/// A token of every step: how surprising it is for an entropy of 1, and how far its log-ratio is for a
/// scale of 1.
type Draws = Vec<Vec<(f64, f64)>>;

/// By stretch of training, the population of tokens whose log-ratios have the shape that was measured: by
/// least squares to `E|x| / rms` and `(log p99 - mean) / rms`, each the median over the steps of a stretch
/// and of distances that are alike (1, 2 and 3, 4 to 7, and so on). A stretch begins at each of `starts`,
/// and at 0. A stretch without movement is like the one before it. `None`: nothing moved.
///
/// The mean is taken off, for it has either sign: tokens that are trained come from the older policy, which
/// had them more likely than the newer one; those of a lag probe come from a policy near the newer one.
///
/// In the medians a step counts as much as its root mean square: where training has come to rest, a
/// few tokens still move and the shape is another, and such steps show in no figure. What a
/// population shows is the median over steps of as many tokens, drawn from a fixed stream, for the
/// 99th percentile of 200 tokens is the second largest of them, and not that of the law.
pub(super) fn tokens(readings: &[Reading], starts: &[u32]) -> Option<Vec<Tokens>> {
    let moved = |reading: &&Reading| reading.point.k > 0 && reading.point.log_square > 0.0;
    let moved: Vec<&Reading> = readings.iter().filter(moved).collect();
    let count = median(moved.iter().map(|reading| (reading.point.tokens, 1.0)).collect())?;
    let draws = draws((count as usize).clamp(1, MOST_TOKENS));
    let stretches = cells(&moved, starts);
    let distances = distances(&moved);
    let tried: Vec<(Tokens, Vec<f64>)> = populations()
        .into_par_iter()
        .map(|tokens| (tokens, misfits(&tokens, &stretches, &distances, &draws)))
        .collect();
    let best = |(at, cells): (usize, &Cells)| best(&tried, at, cells.len());
    let found: Vec<Option<Tokens>> = stretches.iter().enumerate().map(best).collect();
    let mut last = found.iter().flatten().copied().next()?;
    let each = |found: &Option<Tokens>| {
        last = found.unwrap_or(last);
        last
    };
    Some(found.iter().map(each).collect())
}

/// The population with the least misfit to a stretch, one with another tail than the usual one only where
/// it is clearly better; `None`: nothing moved in it.
fn best(tried: &[(Tokens, Vec<f64>)], stretch: usize, cells: usize) -> Option<Tokens> {
    let least = |usual: bool| {
        let of = tried.iter().filter(|(tokens, _)| (tokens.tail == USUAL_TAIL) == usual);
        of.map(|(tokens, misfits)| (*tokens, misfits[stretch]))
            .reduce(|best, other| if other.1 < best.1 { other } else { best })
    };
    let (usual, other) = (least(true)?, least(false)?);
    let chance = LEFT_TO_CHANCE * cells as f64;
    let better = usual.1 > chance && other.1 < CLEARLY * usual.1;
    let found = if better { other } else { usual };
    found.1.is_finite().then_some(found.0)
}

/// All that are tried. Without a tail all tokens are alike, whatever the entropy.
fn populations() -> Vec<Tokens> {
    let step = libm::log(MOST_ENTROPY / LEAST_ENTROPY) / f64::from(ENTROPIES - 1);
    let mut all = vec![Tokens { entropy: 0.5, tail: 0.0, tail_fade: 0.0 }];
    for tail_fade in FADES {
        for tail in TAILS {
            all.extend((0..ENTROPIES).map(|at| {
                let entropy = LEAST_ENTROPY * libm::exp(step * f64::from(at));
                Tokens { entropy, tail, tail_fade }
            }));
        }
    }
    all
}

/// Distances are alike within a factor of two.
fn group(distance: u32) -> usize {
    distance.max(1).ilog2() as usize
}

/// By group of distances, their mean.
fn distances(moved: &[&Reading]) -> BTreeMap<usize, f64> {
    let mut sums: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for reading in moved {
        let (sum, count) = sums.entry(group(reading.point.k)).or_default();
        *sum += f64::from(reading.point.k);
        *count += 1.0;
    }
    sums.into_iter().map(|(group, (sum, count))| (group, sum / count)).collect()
}

/// What was measured, by stretch.
fn cells(moved: &[&Reading], starts: &[u32]) -> Vec<Cells> {
    let mut all: Vec<BTreeMap<usize, Vec<&Reading>>> = vec![BTreeMap::new(); starts.len() + 1];
    for &reading in moved {
        let stretch = starts.partition_point(|&start| start <= reading.point.step);
        all[stretch].entry(group(reading.point.k)).or_default().push(reading);
    }
    let cell = |(group, of): (usize, Vec<&Reading>)| (group, (measured(&of), of.len() as f64));
    all.into_iter().map(|of| of.into_iter().map(cell).collect()).collect()
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

/// How far the population is from what each stretch shows: the sum of squares, each reading counting once;
/// infinite where there is none.
fn misfits(
    tokens: &Tokens,
    stretches: &[Cells],
    distances: &BTreeMap<usize, f64>,
    draws: &Draws,
) -> Vec<f64> {
    let mut misfits = vec![f64::INFINITY; stretches.len()];
    for (group, &distance) in distances {
        let tokens = tokens.over(distance);
        let norm = tokens.norm();
        let scaled: Draws = draws
            .iter()
            .map(|step| {
                let scale = |surprise: f64| {
                    tokens.raw_scale(-libm::expm1(-tokens.entropy * surprise)) / norm
                };
                step.iter().map(|&(surprise, normal)| (scale(surprise), normal)).collect()
            })
            .collect();
        for (misfit, cells) in misfits.iter_mut().zip(stretches) {
            let Some((measured, weight)) = cells.get(group) else { continue };
            let shown = shown(&scaled, measured.root);
            let (abs, p99) = (shown.abs - measured.abs, shown.p99 - measured.p99);
            let square = weight * (abs * abs + p99 * p99);
            *misfit = if misfit.is_finite() { *misfit + square } else { square };
        }
    }
    misfits
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
        let truth = Tokens { entropy: 0.4, tail: 1.0, tail_fade: 0.0 };
        for newer in [false, true] {
            let found = tokens(&readings(truth, newer), &[]).unwrap()[0];
            assert_eq!(found.tail, 1.0);
            let ratio = found.kurtosis() / truth.kurtosis();
            assert!((ratio - 1.0).abs() < 0.2, "{newer}: {found:?}");
        }
    }

    #[test]
    fn tokens_that_are_all_alike_have_the_kurtosis_of_a_normal_law() {
        let found =
            tokens(&readings(Tokens { entropy: 0.5, tail: 0.0, tail_fade: 0.0 }, true), &[])
                .unwrap()[0];
        assert!(found.kurtosis() < 3.6, "{found:?}");
        assert_eq!(tokens(&[], &[]), None);
    }

    #[test]
    fn a_heavy_tail_is_told_from_a_light_one() {
        let found =
            tokens(&readings(Tokens { entropy: 0.1, tail: 2.0, tail_fade: 0.0 }, false), &[])
                .unwrap()[0];
        assert_eq!(found.tail, 2.0, "{found:?}");
    }

    #[test]
    fn each_stretch_has_the_shape_of_its_own_steps() {
        let light = Tokens { entropy: 0.5, tail: 0.0, tail_fade: 0.0 };
        let heavy = Tokens { entropy: 0.2, tail: 1.0, tail_fade: 0.0 };
        let later = readings(heavy, false).into_iter().map(|reading| Reading {
            point: ProbePoint { step: reading.point.step + 40, ..reading.point },
            ..reading
        });
        let all: Vec<Reading> = readings(light, false).into_iter().chain(later).collect();
        let [first, second, third] = tokens(&all, &[40, 900]).unwrap().try_into().unwrap();
        assert!(first.over(3.0).kurtosis() < 3.6, "{first:?}");
        assert!((second.over(3.0).kurtosis() / heavy.kurtosis() - 1.0).abs() < 0.3, "{second:?}");
        assert_eq!(third, second, "nothing was read there");
    }

    #[test]
    fn a_tail_that_is_gone_after_a_few_versions_is_told_from_one_that_stays() {
        let over = |k: u32| Tokens { entropy: 0.3, tail: 1.0, tail_fade: 0.5 }.over(f64::from(k));
        let of = |k: u32| {
            let all = readings(over(k), false).into_iter();
            all.filter(move |reading| reading.point.k == k)
        };
        let found = tokens(&(1..=5).flat_map(of).collect::<Vec<_>>(), &[]).unwrap()[0];
        for k in [1, 5] {
            let ratio = found.over(f64::from(k)).kurtosis() / over(k).kurtosis();
            assert!((ratio - 1.0).abs() < 0.25, "{k}: {found:?}");
        }
    }
}

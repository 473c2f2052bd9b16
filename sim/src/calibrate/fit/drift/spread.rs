//! How much train steps differ in what the policy has moved.

use std::collections::BTreeMap;

use headway_shared::digest::Digest;

use super::resample::{interval, widening};
use super::{DriftFit, Parameter, ProbePoint};
use crate::kernel::random::{Component, Key};

const RESAMPLES: u64 = 400;
/// More is no spread that a scenario can have.
const MOST: f64 = 3.0;
/// Of the interval that the spread is in: to 1e-9.
const HALVINGS: u32 = 32;

/// What one step tells.
#[derive(Clone, Debug)]
struct Step {
    /// The mean over its distances of the squared residual, less what sampling adds to it.
    excess: f64,
    /// These distances.
    distances: Vec<u32>,
    /// How much it counts.
    weight: f64,
    stretch: usize,
}

/// The standard deviation between train steps of the logarithm of what each moves the policy, with its
/// 90% interval: the one with which the residuals `log(log_square / fitted)` about their mean, in each
/// stretch and at each distance, have the mean square that they have. That is, on the scale of
/// logarithms, `log(1 + (kurtosis - 1) / tokens)` by the tokens of a probe, `kurtosis` being that of a
/// stretch at a distance; and the variance of the mean factor of the steps between, which falls with their number.
/// Each step counts once, and as much as its stretch has drift (by the standard deviation): what is
/// predicted are means over steps, in which a stretch without drift does not show. What sampling blurs
/// counts less, as the square of its variance does. `None`: no stretch has two steps.
///
/// The interval is from 400 resamples of whole steps, those of each stretch from itself. Tokens of a
/// step that are not independent of each other (those of a group) make steps differ: that is in it.
pub fn step_spread(
    points: &[ProbePoint],
    fit: &DriftFit,
    kurtosis: impl Fn(usize, u32) -> f64,
) -> Option<Parameter> {
    let steps = steps(points, fit, kurtosis)?;
    let spread = |steps: &[&Step]| spread(steps, fit.step_correlation);
    let key = Key::new(0, Digest::of(b"step spread"), 0);
    let mut by_stretch: BTreeMap<usize, Vec<&Step>> = BTreeMap::new();
    for step in &steps {
        by_stretch.entry(step.stretch).or_default().push(step);
    }
    let resampled = (0..RESAMPLES).map(|resample| {
        let mut stream = key.stream(Component::Resample, resample);
        let mut drawn = Vec::with_capacity(steps.len());
        for of in by_stretch.values() {
            drawn.extend((0..of.len()).map(|_| of[stream.below(of.len() as u64) as usize]));
        }
        spread(&drawn)
    });
    let widening = widening(steps.len() as f64, by_stretch.len() as f64);
    let all: Vec<&Step> = steps.iter().collect();
    let found = interval(resampled.collect(), spread(&all), widening);
    let Parameter { value, low, high } = found.not_negative();
    Some(Parameter { value: value.min(MOST), low: low.min(MOST), high: high.min(MOST) })
}

/// How far a value is from the fit.
#[derive(Clone, Copy, Debug)]
struct Residual {
    /// The distance.
    k: u32,
    /// Of logarithms.
    log: f64,
    /// The variance that it has by sampling.
    sampling: f64,
}

/// By bisection, for the expected mean square grows with the spread.
fn spread(steps: &[&Step], correlation: f64) -> f64 {
    let excess = steps.iter().fold(0.0, |sum, step| sum + step.weight * step.excess);
    // By distance, how much it counts.
    let mut weights: BTreeMap<u32, f64> = BTreeMap::new();
    for step in steps {
        for &distance in &step.distances {
            *weights.entry(distance).or_default() += step.weight / step.distances.len() as f64;
        }
    }
    let expected = |spread: f64| {
        let of = |(&distance, weight): (&u32, &f64)| {
            weight * variance_between(distance, spread, correlation)
        };
        weights.iter().map(of).fold(0.0, |sum, part| sum + part)
    };
    let (mut low, mut high) = (0.0, MOST);
    if excess <= 0.0 {
        return 0.0;
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if expected(middle) < excess {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The variance of the logarithm of the mean factor of so many steps in a row: as if the mean were
/// log-normal too, like its terms (Fenton, *The sum of log-normal probability distributions*, 1960).
fn variance_between(distance: u32, spread: f64, correlation: f64) -> f64 {
    let count = f64::from(distance);
    let mut alike = 1.0;
    let mut sum = 0.0;
    for lag in 0..distance {
        let pairs = if lag == 0 { count } else { 2.0 * (count - f64::from(lag)) };
        sum += pairs * libm::expm1(spread * spread * alike);
        alike *= correlation;
    }
    libm::log1p(sum / (count * count))
}

/// What the steps tell that are not the only one of their stretch at all their distances.
fn steps(
    points: &[ProbePoint],
    fit: &DriftFit,
    kurtosis: impl Fn(usize, u32) -> f64,
) -> Option<Vec<Step>> {
    let laws: Vec<(u32, f64, f64)> = fit.stretches().collect();
    let stretch =
        |step: u32| laws.iter().skip(1).take_while(|(from_step, ..)| *from_step <= step).count();
    let floor = fit.sigma0.value * fit.sigma0.value;
    // By stretch and step.
    let mut all: BTreeMap<(usize, u32), Vec<Residual>> = BTreeMap::new();
    let mut means: BTreeMap<(usize, u32), [f64; 2]> = BTreeMap::new();
    for point in points.iter().filter(|point| point.k > 0 && point.log_square > floor) {
        let place = stretch(point.step);
        let (_, a, p) = laws[place];
        let moved = a * libm::pow(f64::from(point.k), p);
        if moved <= floor {
            continue;
        }
        let residual = libm::log((point.log_square - floor) / moved);
        let sampling = libm::log1p((kurtosis(place, point.k) - 1.0).max(0.0) / point.tokens);
        all.entry((place, point.step)).or_default().push(Residual {
            k: point.k,
            log: residual,
            sampling,
        });
        let mean = means.entry((place, point.k)).or_default();
        mean[0] += residual;
        mean[1] += 1.0;
    }
    let steps: Vec<Step> = all
        .iter()
        .filter_map(|(&(place, _), values)| {
            let (mut square, mut sampling, mut distances) = (0.0, 0.0, Vec::new());
            for residual in values {
                let [sum, count] = means[&(place, residual.k)];
                // One value is its own mean.
                if count > 1.0 {
                    let off = residual.log - sum / count;
                    square += off * off * count / (count - 1.0);
                    sampling += residual.sampling;
                    distances.push(residual.k);
                }
            }
            let told = distances.len() as f64;
            let blur = 1.0 + sampling / told;
            let weight = libm::sqrt(laws[place].1) / (blur * blur);
            let excess = (square - sampling) / told;
            (!distances.is_empty()).then_some(Step { excess, distances, weight, stretch: place })
        })
        .collect();
    (!steps.is_empty()).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::super::drift;
    use super::*;

    const FURTHEST: u32 = 8;
    const PROBES: u32 = 80;

    /// A probe of every eighth step, each of which moves the policy by exp(spread z), and whose means of 200
    /// tokens have this noise.
    fn points(spread: f64, noise: f64, seed: u64) -> Vec<ProbePoint> {
        let key = Key::new(seed, Digest::of(b"steps"), 0);
        let moves: Vec<f64> = (0..(PROBES + 1) * FURTHEST)
            .map(|step| {
                let normal = key.stream(Component::Step, u64::from(step)).normal();
                libm::exp(spread * normal - 0.5 * spread * spread)
            })
            .collect();
        let of = |step: u32| {
            let factor = libm::exp(noise * key.stream(Component::Token, u64::from(step)).normal());
            let moves = &moves;
            (0..FURTHEST).map(move |k| {
                let between = &moves[(FURTHEST + step - k) as usize..(FURTHEST + step) as usize];
                let sum = between.iter().fold(0.0, |sum, part| sum + part);
                let a = 0.003 * factor * sum / f64::from(k.max(1));
                let log_square = 1e-14 + a * libm::pow(f64::from(k), 1.6);
                ProbePoint { step, k, log_square, tokens: 200.0 }
            })
        };
        (0..PROBES).flat_map(|probe| of(probe * FURTHEST)).collect()
    }

    #[test]
    fn the_spread_of_steps_is_found_without_that_of_sampling() {
        // Of 200 tokens with a kurtosis of 9.
        let noise = 0.2;
        for truth in [0.3, 0.7] {
            let found: Vec<Parameter> = (0..20)
                .map(|seed| {
                    let points = points(truth, noise, seed);
                    let fit = DriftFit { step_correlation: 0.0, ..drift(&points).unwrap() };
                    step_spread(&points, &fit, |_, _| 9.0).unwrap()
                })
                .collect();
            let mean = found.iter().map(|found| found.value).sum::<f64>() / 20.0;
            assert!((mean / truth - 1.0).abs() < 0.12, "{truth}: {mean}");
            let held = found.iter().filter(|found| found.holds(truth)).count();
            // Some of a small spread is taken for stretches.
            assert!(held >= 13, "{truth}: {held} of 20");
        }
    }

    #[test]
    fn steps_that_differ_by_their_tokens_alone_have_no_spread() {
        let points = points(0.0, 0.15, 5);
        let fit = drift(&points).unwrap();
        let found = step_spread(&points, &fit, |_, _| 9.0).unwrap();
        assert_eq!((found.value, found.low), (0.0, 0.0), "{found:?}");
    }
}

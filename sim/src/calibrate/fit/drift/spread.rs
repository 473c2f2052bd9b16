//! How much train steps differ in what the policy has moved.

use std::collections::BTreeMap;

use headway_shared::digest::Digest;

use super::resample::{interval, widening};
use super::{DriftFit, Parameter, ProbePoint};
use crate::kernel::random::{Component, Key};

const RESAMPLES: u64 = 400;
/// More is no spread that a scenario can have.
const MOST: f64 = 3.0;

/// What one step tells.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The mean over its distances of the squared residual, less what sampling adds to it.
    excess: f64,
    /// How much it counts.
    weight: f64,
    stretch: usize,
}

/// The standard deviation between steps of `log a`, with its 90% interval: of the residuals
/// `log(log_square / fitted)` about their mean in each stretch and at each distance, squared, less
/// the variance that the mean square of `tokens` tokens of this kurtosis has by itself,
/// `(kurtosis - 1) / tokens` on the scale of logarithms. Each step counts once, and as much as its
/// stretch has drift (by the standard deviation): what is predicted are means over steps, in which a
/// stretch without drift does not show. `None`: no stretch has two steps.
///
/// The interval is from 400 resamples of whole steps, those of each stretch from itself. Tokens of a
/// step that are not independent of each other (those of a group) make steps differ: that is in it.
pub fn step_spread(points: &[ProbePoint], fit: &DriftFit, kurtosis: f64) -> Option<Parameter> {
    let steps = steps(points, fit, kurtosis)?;
    let key = Key::new(0, Digest::of(b"step spread"), 0);
    let mut by_stretch: BTreeMap<usize, Vec<Step>> = BTreeMap::new();
    for step in &steps {
        by_stretch.entry(step.stretch).or_default().push(*step);
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
    let found = interval(resampled.collect(), spread(&steps), widening);
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

fn spread(steps: &[Step]) -> f64 {
    let (sum, weight) = steps.iter().fold((0.0, 0.0), |(sum, weight), step| {
        (sum + step.weight * step.excess, weight + step.weight)
    });
    libm::sqrt((sum / weight).max(0.0))
}

/// What the steps tell that are not the only one of their stretch at all their distances.
fn steps(points: &[ProbePoint], fit: &DriftFit, kurtosis: f64) -> Option<Vec<Step>> {
    let laws: Vec<f64> = std::iter::once(fit.a.value)
        .chain(fit.windows.iter().map(|window| window.a.value))
        .collect();
    let stretch =
        |step: u32| fit.windows.iter().take_while(|window| window.from_step <= step).count();
    let floor = fit.sigma0.value * fit.sigma0.value;
    // By stretch and step.
    let mut all: BTreeMap<(usize, u32), Vec<Residual>> = BTreeMap::new();
    let mut means: BTreeMap<(usize, u32), [f64; 2]> = BTreeMap::new();
    for point in points.iter().filter(|point| point.k > 0 && point.log_square > floor) {
        let place = stretch(point.step);
        let moved = laws[place] * libm::pow(f64::from(point.k), fit.p.value);
        if moved <= floor {
            continue;
        }
        let residual = libm::log((point.log_square - floor) / moved);
        let sampling = (kurtosis - 1.0).max(0.0) / point.tokens;
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
            let (mut square, mut sampling, mut told) = (0.0, 0.0, 0.0);
            for residual in values {
                let [sum, count] = means[&(place, residual.k)];
                // One value is its own mean.
                if count > 1.0 {
                    let off = residual.log - sum / count;
                    square += off * off * count / (count - 1.0);
                    sampling += residual.sampling;
                    told += 1.0;
                }
            }
            let weight = libm::sqrt(laws[place]);
            let excess = (square - sampling) / told;
            (told > 0.0).then_some(Step { excess, weight, stretch: place })
        })
        .collect();
    (!steps.is_empty()).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::super::drift;
    use super::*;

    /// Steps whose `a` differ by exp(spread z), and whose means of 200 tokens have this noise.
    fn points(spread: f64, noise: f64) -> Vec<ProbePoint> {
        let key = Key::new(5, Digest::of(b"steps"), 0);
        let of = |step: u32| {
            let mut stream = key.stream(Component::Step, u64::from(step));
            let a = 0.003 * libm::exp(spread * stream.normal() - 0.5 * spread * spread);
            let factor = libm::exp(noise * stream.normal());
            (0..8).map(move |k| ProbePoint {
                step,
                k,
                log_square: 1e-14 + a * factor * libm::pow(f64::from(k), 1.6),
                tokens: 200.0,
            })
        };
        (0..80).flat_map(of).collect()
    }

    #[test]
    fn the_spread_of_steps_is_found_without_that_of_sampling() {
        // Of 200 tokens with a kurtosis of 9.
        let noise = 0.2;
        for truth in [0.3, 0.7] {
            let points = points(truth, noise);
            let fit = drift(&points).unwrap();
            let found = step_spread(&points, &fit, 9.0).unwrap();
            assert!((found.value / truth - 1.0).abs() < 0.25, "{truth}: {found:?}");
            assert!(found.holds(truth) && found.high < 2.0 * truth, "{truth}: {found:?}");
        }
    }

    #[test]
    fn steps_that_differ_by_their_tokens_alone_have_no_spread() {
        let points = points(0.0, 0.15);
        let fit = drift(&points).unwrap();
        let found = step_spread(&points, &fit, 9.0).unwrap();
        assert_eq!((found.value, found.low), (0.0, 0.0), "{found:?}");
    }
}

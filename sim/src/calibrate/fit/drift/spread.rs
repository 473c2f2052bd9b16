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
    /// The mean over its distances of the squared residual, and of what sampling adds to it.
    square: f64,
    sampling: f64,
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
    let (steps, lost) = steps(points, fit, kurtosis)?;
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
        spread(&drawn, &lost)
    });
    let widening = widening(steps.len() as f64, by_stretch.len() as f64);
    let found = interval(resampled.collect(), spread(&steps, &lost), widening);
    let Parameter { value, low, high } = found.not_negative();
    Some(Parameter { value: value.min(MOST), low: low.min(MOST), high: high.min(MOST) })
}

fn spread(steps: &[Step], lost: &[f64]) -> f64 {
    let (sum, weight) = steps.iter().fold((0.0, 0.0), |(sum, weight), step| {
        let excess = step.square * lost[step.stretch] - step.sampling;
        (sum + step.weight * excess, weight + step.weight)
    });
    libm::sqrt((sum / weight).max(0.0))
}

/// The steps, and by stretch what a square about the mean is to be multiplied by.
fn steps(points: &[ProbePoint], fit: &DriftFit, kurtosis: f64) -> Option<(Vec<Step>, Vec<f64>)> {
    let laws: Vec<f64> = std::iter::once(fit.a.value)
        .chain(fit.windows.iter().map(|window| window.a.value))
        .collect();
    let stretch =
        |step: u32| fit.windows.iter().take_while(|window| window.from_step <= step).count();
    let floor = fit.sigma0.value * fit.sigma0.value;
    // (distance, residual, sampling variance) by stretch and step.
    let mut all: BTreeMap<(usize, u32), Vec<(u32, f64, f64)>> = BTreeMap::new();
    let mut means: BTreeMap<(usize, u32), [f64; 2]> = BTreeMap::new();
    for point in points.iter().filter(|point| point.k > 0 && point.log_square > floor) {
        let place = stretch(point.step);
        let moved = laws[place] * libm::pow(f64::from(point.k), fit.p.value);
        if moved <= floor {
            continue;
        }
        let residual = libm::log((point.log_square - floor) / moved);
        let sampling = (kurtosis - 1.0).max(0.0) / point.tokens;
        all.entry((place, point.step)).or_default().push((point.k, residual, sampling));
        let mean = means.entry((place, point.k)).or_default();
        mean[0] += residual;
        mean[1] += 1.0;
    }
    let mut counts = vec![0.0; laws.len()];
    let steps: Vec<Step> = all
        .iter()
        .map(|(&(place, _), values)| {
            counts[place] += 1.0;
            let (mut square, mut sampling) = (0.0, 0.0);
            for &(k, residual, own) in values {
                let [sum, count] = means[&(place, k)];
                let off = residual - sum / count;
                square += off * off;
                sampling += own;
            }
            let count = values.len() as f64;
            Step {
                square: square / count,
                sampling: sampling / count,
                weight: libm::sqrt(laws[place]),
                stretch: place,
            }
        })
        .filter(|step| step.weight > 0.0)
        .collect();
    let lost = counts.iter().map(|&count| if count > 1.0 { count / (count - 1.0) } else { 0.0 });
    let lost: Vec<f64> = lost.collect();
    steps.iter().any(|step| lost[step.stretch] > 0.0).then_some((steps, lost))
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

//! Intervals by resampling whole probes.

use std::ops::Range;

use headway_shared::digest::Digest;

use super::model::{Model, Start};
use super::probes::Probes;
use crate::calibrate::fit::{LOWER, Parameter, UPPER, t_upper};
use crate::kernel::math::normal_quantile;
use crate::kernel::random::{Component, Key};
use crate::stats::mean;

/// The parameters with their intervals; an `a` for each stretch.
pub(super) struct Intervals {
    pub(super) sigma0: Parameter,
    pub(super) p: Parameter,
    pub(super) a: Vec<Parameter>,
    /// The correlation of each logarithm of `a` with `p`.
    pub(super) a_with_p: Vec<f64>,
}

/// Draws probes with replacement, those of each stretch from itself, and fits again, so many times.
/// The draws depend on nothing but the numbers of probes. Neighbours are alike: `block` of them are
/// drawn together (circular block bootstrap: Politis and Romano, *Exploring the limits of bootstrap*,
/// 1992).
pub(super) fn intervals(
    probes: &Probes,
    stretches: &[Range<usize>],
    fitted: &Model,
    block: usize,
    resamples: u64,
) -> Intervals {
    let key = Key::new(0, Digest::of(b"lag probes"), 0);
    let models: Vec<Model> = (0..resamples)
        .map(|resample| {
            let mut stream = key.stream(Component::Resample, resample);
            let mut draw = |stretch: &Range<usize>| {
                let (start, count) = (stretch.start, stretch.len());
                let mut from = 0;
                probes.cells_of((0..count).map(|at| {
                    if at % block == 0 {
                        from = stream.below(count as u64) as usize;
                    }
                    start + (from + at % block) % count
                }))
            };
            let cells: Vec<_> = stretches.iter().map(&mut draw).collect();
            Model::fit(&cells, Start::From(fitted))
        })
        .collect();
    let all = probes.len() as f64;
    let shared = widening(all, stretches.len() as f64);
    let root = |floor: f64| if floor > fitted.least { floor.sqrt() } else { 0.0 };
    let of = |value: &dyn Fn(&Model) -> f64, widening: f64| {
        interval(models.iter().map(value).collect(), value(fitted), widening)
    };
    let sigma0 = of(&|model| root(model.floor), shared);
    let p = of(&|model| model.p, shared);
    let a = stretches.iter().enumerate().map(|(at, stretch)| {
        let widening = widening(stretch.len() as f64, 1.0);
        shown(of(&|model| libm::log(model.a[at]), widening), fitted.least)
    });
    let powers: Vec<f64> = models.iter().map(|model| model.p).collect();
    let a_with_p = (0..stretches.len()).map(|at| {
        let logs: Vec<f64> = models.iter().map(|model| libm::log(model.a[at])).collect();
        correlation(&logs, &powers)
    });
    Intervals {
        a_with_p: a_with_p.collect(),
        sigma0: sigma0.not_negative(),
        p: Parameter { value: p.value, low: p.low.max(1.0), high: p.high.min(2.0) },
        a: a.collect(),
    }
}

/// Of two columns; 0 where one of them does not vary.
fn correlation(left: &[f64], right: &[f64]) -> f64 {
    let centred = |values: &[f64]| {
        let mean = mean(values).unwrap_or(0.0);
        values.iter().map(|value| value - mean).collect::<Vec<f64>>()
    };
    let (left, right) = (centred(left), centred(right));
    let product = |one: &[f64], other: &[f64]| {
        one.iter().zip(other).fold(0.0, |sum, (one, other)| sum + one * other)
    };
    let spread = libm::sqrt(product(&left, &left) * product(&right, &right));
    if spread > 0.0 { (product(&left, &right) / spread).clamp(-1.0, 1.0) } else { 0.0 }
}

/// Out of logarithms; what no value shows is 0.
fn shown(logs: Parameter, least: f64) -> Parameter {
    let of = |log: f64| {
        let value = libm::exp(log);
        if value > 1.001 * least { value } else { 0.0 }
    };
    Parameter { value: of(logs.value), low: of(logs.low), high: of(logs.high) }
}

/// A resample of n spreads like n - 1, and its quantiles are the normal law's where Student's t is
/// wanted.
pub(super) fn widening(count: f64, others: f64) -> f64 {
    let df = (count - others).max(1.0);
    t_upper(df) / normal_quantile(UPPER) * (count / df).sqrt()
}

/// From the resamples' values, about the estimate.
pub(super) fn interval(mut values: Vec<f64>, value: f64, widening: f64) -> Parameter {
    values.sort_by(f64::total_cmp);
    let quantile = |p: f64| {
        let place = p * (values.len() - 1) as f64;
        let (below, share) = (place as usize, place - libm::floor(place));
        let above = (below + 1).min(values.len() - 1);
        values[below] + share * (values[above] - values[below])
    };
    let end = |p: f64| value + widening * (quantile(p) - value);
    Parameter::new(value, end(LOWER), end(UPPER))
}

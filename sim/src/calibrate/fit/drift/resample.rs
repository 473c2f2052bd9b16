//! Intervals by resampling whole probes.

use std::ops::Range;

use headway_shared::digest::Digest;

use super::model::{Cell, Model, Start};
use super::powers::Powers;
use super::probes::Probes;
use crate::calibrate::fit::{LOWER, Parameter, UPPER, t_upper};
use crate::kernel::math::normal_quantile;
use crate::kernel::random::{Component, Key};
use crate::stats::mean;

/// The parameters with their intervals.
pub(super) struct Found {
    pub(super) sigma0: Parameter,
    /// One, or one for each stretch.
    pub(super) p: Vec<Parameter>,
    /// By stretch.
    pub(super) a: Vec<Parameter>,
    /// The correlation of each logarithm of `a` with its `p`.
    pub(super) a_with_p: Vec<f64>,
}

/// Probes are drawn in so many blocks of neighbours.
pub(super) const BLOCKS: usize = 4;

/// Draws probes with replacement, those of each stretch from itself, and fits again, so many times.
/// The draws depend on nothing but the numbers of probes.
///
/// A policy moves more at some times than at others, for longer than a step, and another run has other
/// such times. So a quarter of a stretch is drawn together (circular block bootstrap: Politis and
/// Romano, *Exploring the limits of bootstrap*, 1992), and four of them spread as four values do: the
/// batch means of simulation (Schmeiser, *Operations Research* 30, 1982), right for whatever is alike
/// for less than a quarter.
pub(super) fn found(
    probes: &Probes,
    stretches: &[Range<usize>],
    fitted: &Model,
    resamples: u64,
) -> Found {
    let key = Key::new(0, Digest::of(b"lag probes"), 0);
    let drawn: Vec<Vec<Vec<Cell>>> = (0..resamples)
        .map(|resample| {
            let mut stream = key.stream(Component::Resample, resample);
            let mut draw = |stretch: &Range<usize>| {
                let (start, count) = (stretch.start, stretch.len());
                let block = count.div_ceil(BLOCKS);
                let mut from = 0;
                probes.cells_of((0..count).map(|at| {
                    if at % block == 0 {
                        from = stream.below(count as u64) as usize;
                    }
                    start + (from + at % block) % count
                }))
            };
            stretches.iter().map(&mut draw).collect()
        })
        .collect();
    let models: Vec<Model> =
        drawn.iter().map(|cells| Model::fit(cells, Start::From(fitted))).collect();
    let own = widening_of_blocks(1);
    let shared = widening_of_blocks(stretches.len());
    let root = |floor: f64| if floor > fitted.least { floor.sqrt() } else { 0.0 };
    let of = |value: &dyn Fn(&Model) -> f64| {
        interval(models.iter().map(value).collect(), value(fitted), shared)
    };
    let sigma0 = of(&|model| root(model.floor)).not_negative();
    let whole = probes.cells(stretches);
    let powers = Powers::of(&whole, &drawn, &models, fitted);
    let p = match &powers {
        None => vec![of(&|model| model.p)],
        Some(powers) => powers.intervals(own),
    };
    let within =
        |p: Parameter| Parameter { value: p.value, low: p.low.max(1.0), high: p.high.min(2.0) };
    let (mut a, mut a_with_p) = (Vec::new(), Vec::new());
    for at in 0..stretches.len() {
        let (value, levels, of_p): (f64, Vec<f64>, Vec<f64>) = match &powers {
            None => {
                let levels = models.iter().map(|model| model.a[at]).collect();
                (fitted.a[at], levels, models.iter().map(|model| model.p).collect())
            }
            Some(powers) => {
                let level =
                    |model: &Model, cells: &[Cell], p: f64| model.level(cells, model.a[at], p);
                let of_p = powers.resampled[at].clone();
                let again = models.iter().zip(&drawn).zip(&of_p);
                let levels =
                    again.map(|((model, cells), &p)| level(model, &cells[at], p)).collect();
                (level(fitted, &whole[at], powers.values[at]), levels, of_p)
            }
        };
        let logs: Vec<f64> = levels.into_iter().map(libm::log).collect();
        a_with_p.push(correlation(&logs, &of_p));
        a.push(shown(interval(logs, libm::log(value), own), fitted.least));
    }
    Found { sigma0, p: p.into_iter().map(within).collect(), a, a_with_p }
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

/// The same for blocks that begin anywhere: their spread is as certain as that of half as many again which
/// do not overlap (Meketon and Schmeiser, *Overlapping batch means*, Winter Simulation Conference, 1984).
fn widening_of_blocks(stretches: usize) -> f64 {
    let (blocks, left) = (BLOCKS as f64, (BLOCKS - 1) as f64);
    t_upper(1.5 * left * stretches as f64) / normal_quantile(UPPER) * (blocks / left).sqrt()
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

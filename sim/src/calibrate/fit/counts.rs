//! Whole numbers that the world rounded from a continuous law: the likelihood of each is that of
//! all that is rounded to it.

use super::chosen::Limits;
use super::law::Law;
use super::maximum::{Peak, maximum};
use super::proportion::jeffreys;
use super::sample::Sample;
use super::times::{self, Estimate, beyond};
use super::{Family, LOWER, Parameter, UPPER, t_upper};
use crate::kernel::math::gamma_quantile;

/// Where steps between counts are this much finer than their spread, on the scale of logarithms,
/// densities are probabilities: the error of the likelihood's curvature is 1 in 600.
const FINE: f64 = 5.0;
/// So many values at an end tell where in its step it lies.
const AT_END: f64 = 10.0;

/// A count, as what the law has been rounded from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Values of this count.
    pub(super) times: f64,
}

impl Cell {
    fn is_step(&self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }

    /// The middle of a step; of what is open to one side, its end.
    fn place(&self) -> f64 {
        match (self.low.is_finite(), self.high.is_finite()) {
            (true, true) => 0.5 * (self.low + self.high),
            (false, _) => self.high,
            (true, false) => self.low,
        }
    }
}

/// The different counts, in order.
pub(super) fn cells(sample: &Sample, limits: Limits) -> Vec<Cell> {
    let least = limits.at_least.map_or(0.0, f64::from);
    let most = limits.at_most.map_or(f64::INFINITY, f64::from);
    let mut cells: Vec<Cell> = Vec::new();
    for &value in &sample.sorted {
        let value = value.max(least).min(most);
        let low = if value == least { f64::NEG_INFINITY } else { value - 0.5 };
        let high = if value == most { f64::INFINITY } else { value + 0.5 };
        match cells.last_mut() {
            Some(last) if last.high == high => last.times += 1.0,
            _ => cells.push(Cell { low, high, times: 1.0 }),
        }
    }
    cells
}

pub(super) fn log_likelihood(cells: &[Cell], law: &Law) -> f64 {
    cells.iter().fold(0.0, |sum, cell| {
        sum + cell.times * libm::log(law.within(cell.low, cell.high).max(1e-300))
    })
}

/// The likelihood of the column of values itself, each different count with its own probability.
pub(super) fn log_likelihood_of_column(cells: &[Cell], count: f64) -> f64 {
    cells.iter().fold(0.0, |sum, cell| sum + cell.times * libm::log(cell.times / count))
}

/// The estimate of a family, or why there is none. The counts are not all the same.
pub(super) fn estimate(
    sample: &Sample,
    cells: &[Cell],
    family: Family,
) -> Result<Estimate, &'static str> {
    if family.parameters() >= cells.len() as u32 {
        return Err("there are too few different counts");
    }
    let spread = (sample.log_squares / sample.count).sqrt();
    let fine = sample.min() * spread >= FINE && cells.iter().all(Cell::is_step);
    match family {
        Family::Uniform => uniform(sample, cells),
        Family::Pareto => pareto(sample, cells),
        _ if fine => times::estimate(sample, family),
        Family::Exponential => exponential(sample, cells),
        Family::LogNormal => lognormal(sample, cells),
        Family::Gamma => gamma(sample, cells),
        Family::Constant => Err("the values differ"),
        Family::Empirical => Err("it is none"),
    }
}

const FLAT: &str = "the counts do not tell its parameters";

fn exponential(sample: &Sample, cells: &[Cell]) -> Result<Estimate, &'static str> {
    let law = |at: &[f64; 1]| Law::Exponential { mean: libm::exp(at[0]) };
    let start = [libm::log(sample.mean.max(0.2))];
    let peak = maximum(|at| log_likelihood(cells, &law(at)), start).ok_or(FLAT)?;
    let mean = interval(sample, &peak, 0);
    Ok(Estimate { law: law(&peak.at), log_likelihood: peak.value, parameters: vec![mean], mean })
}

/// The exponential of a coordinate, by Student's t and the observed information.
fn interval<const D: usize>(sample: &Sample, peak: &Peak<D>, coordinate: usize) -> Parameter {
    let t = t_upper(sample.count - D as f64);
    let width = t * peak.covariance[coordinate][coordinate].max(0.0).sqrt();
    Parameter::times(libm::exp(peak.at[coordinate]), width)
}

fn lognormal(sample: &Sample, cells: &[Cell]) -> Result<Estimate, &'static str> {
    let law = |at: &[f64; 2]| Law::LogNormal { mu: at[0], sigma: libm::exp(at[1]) };
    let logs = |of: &dyn Fn(f64) -> f64| {
        cells.iter().fold(0.0, |sum, cell| sum + cell.times * of(libm::log(cell.place().max(0.3))))
            / sample.count
    };
    let mu = logs(&|log| log);
    let sigma = logs(&|log| (log - mu) * (log - mu)).sqrt().max(0.05);
    let start = [mu, libm::log(sigma)];
    let peak = maximum(|at| log_likelihood(cells, &law(at)), start).ok_or(FLAT)?;
    let [mu, sigma] = [peak.at[0], libm::exp(peak.at[1])];
    if sigma > 10.0 {
        return Err("its sigma would be above 10");
    }
    // log(mean) = mu + sigma^2 / 2, with the gradient (1, sigma^2).
    let square = sigma * sigma;
    let [[first, twist], [_, second]] = peak.covariance;
    let variance = first + 2.0 * square * twist + square * square * second;
    let t = t_upper(sample.count - 2.0);
    Ok(Estimate {
        law: law(&peak.at),
        log_likelihood: peak.value,
        parameters: vec![interval(sample, &peak, 0), interval(sample, &peak, 1)],
        mean: Parameter::times(libm::exp(mu + 0.5 * square), t * variance.max(0.0).sqrt()),
    })
}

fn gamma(sample: &Sample, cells: &[Cell]) -> Result<Estimate, &'static str> {
    let law = |at: &[f64; 2]| Law::Gamma { shape: libm::exp(at[0]), mean: libm::exp(at[1]) };
    let mean = sample.mean.max(0.2);
    let shape = (mean * mean / sample.variance().max(1e-3 * mean)).clamp(0.05, 1e5);
    let start = [libm::log(shape), libm::log(mean)];
    let peak = maximum(|at| log_likelihood(cells, &law(at)), start).ok_or(FLAT)?;
    if !(0.01..=1e6).contains(&libm::exp(peak.at[0])) {
        return Err("its shape would be outside 0.01 to a million");
    }
    let mean = interval(sample, &peak, 1);
    Ok(Estimate {
        law: law(&peak.at),
        log_likelihood: peak.value,
        parameters: vec![interval(sample, &peak, 0), mean],
        mean,
    })
}

/// The ends, each somewhere in the step of the smallest and the largest count: where, follows from
/// the share of values there. With fewer than ten, the interval is that of a continuous law, wider
/// by the step: it holds in more than 90% of cases.
fn uniform(sample: &Sample, cells: &[Cell]) -> Result<Estimate, &'static str> {
    let (count, first, last) = (sample.count, cells[0], cells[cells.len() - 1]);
    if !last.is_step() || !(first.is_step() || first.high == 0.5) {
        return Err("its ends are cut off");
    }
    // No end lies below 0.
    let most = if first.is_step() { 1.0 } else { first.high };
    let inner = last.low - first.high;
    let (mut low, mut high) = (most, 1.0);
    for _ in 0..200 {
        let range = low + inner + high;
        low = (range * first.times / count).min(most);
        high = (range * last.times / count).min(1.0);
    }
    let range = low + inner + high;
    let law = Law::Uniform { min: first.high - low, max: last.low + high };
    let end = |cell: Cell, most: f64| {
        let further = most + (range + 1.0) * beyond(count);
        if cell.times < AT_END {
            return (0.0, further);
        }
        let share = jeffreys(cell.times, count);
        ((share.low * range).min(most), (share.high * range).min(further))
    };
    let (from, to) = end(first, most);
    let min = Parameter::new(first.high - low, first.high - to, first.high - from).not_negative();
    let (from, to) = end(last, 1.0);
    let max = Parameter::new(last.low + high, last.low + from, last.low + to);
    let middle = 0.5 * (min.value + max.value);
    let width = 0.5 * (range * beyond(count)) + 0.5 * (min.high - min.low).min(1.0);
    Ok(Estimate {
        law,
        log_likelihood: log_likelihood(cells, &law),
        parameters: vec![min, max],
        mean: Parameter::new(middle, middle - width, middle + width).not_negative(),
    })
}

/// `alpha` from the values above the smallest count, or from all where `min` would leave its step;
/// then `min` from the share of values in it.
fn pareto(sample: &Sample, cells: &[Cell]) -> Result<Estimate, &'static str> {
    let (first, others) = (cells[0], &cells[1..]);
    if !first.is_step() {
        return Err("its smallest values are cut off");
    }
    let count = sample.count;
    let from = |min: f64, cells: &[Cell]| {
        let likelihood =
            |at: &[f64; 1]| log_likelihood(cells, &Law::Pareto { min, alpha: libm::exp(at[0]) });
        let mean = cells
            .iter()
            .fold(0.0, |sum, cell| sum + cell.times * libm::log((cell.low + 0.5).max(min) / min));
        let values = cells.iter().fold(0.0, |sum, cell| sum + cell.times);
        maximum(likelihood, [libm::log(values / mean.max(1e-9))]).ok_or(FLAT)
    };
    let share = 1.0 - first.times / count;
    let inner = from(first.high, others)?;
    let min = first.high * libm::exp(libm::log(share) / libm::exp(inner.at[0]));
    let (min, peak) =
        if min > first.low { (min, inner) } else { (first.low, from(first.low, cells)?) };
    let alpha = libm::exp(peak.at[0]);
    // As exact as for continuous values, of as many as would tell as much.
    let worth = (1.0 / peak.covariance[0][0]).max(2.0);
    let end = |p: f64| alpha * gamma_quantile(p, worth - 1.0) / worth;
    let (low, high) = (end(LOWER), end(UPPER));
    if low <= 1.0 {
        return Err("its mean could be infinite");
    }
    let law = Law::Pareto { min, alpha };
    let at = |share: f64| first.high * libm::exp(libm::log(share) / alpha);
    let end = if first.times < AT_END {
        let lowest = (first.low * libm::exp(-beyond(count) / alpha)).min(min);
        Parameter::new(min, lowest, first.high)
    } else {
        let below = jeffreys(first.times, count);
        Parameter::new(min, at(1.0 - below.high).max(first.low), at(1.0 - below.low))
    };
    let mean = |alpha: f64| min * alpha / (alpha - 1.0);
    Ok(Estimate {
        law,
        log_likelihood: log_likelihood(cells, &law),
        parameters: vec![end, Parameter::new(alpha, low, high)],
        mean: Parameter::new(mean(alpha), mean(high), mean(low)),
    })
}

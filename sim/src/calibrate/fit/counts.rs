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

/// The ends, each somewhere in the step of the smallest and the largest count. Of the values outside
/// the other end's step, the share in this one is binomial, which says where the end is. With fewer
/// than ten values in it, the interval is that of a continuous law, wider by the step: it holds in
/// more than 90% of cases.
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
    // How far an end reaches into its step.
    let reach = |cell: Cell, other: Cell, value: f64, most: f64| {
        let furthest = most + (range + 1.0) * beyond(count);
        if cell.times < AT_END {
            return Parameter::new(value, 0.0, furthest);
        }
        let share = jeffreys(cell.times, count - other.times);
        let of = |share: f64| inner * share / (1.0 - share);
        Parameter::new(value, of(share.low).min(most), of(share.high).min(furthest))
    };
    let (down, up) = (reach(first, last, low, most), reach(last, first, high, 1.0));
    let middle = 0.5 * (first.high - low + last.low + high);
    let (below, above) = if first.times.min(last.times) < AT_END {
        let width = 0.5 * range * beyond(count) + 0.5;
        (width, width)
    } else {
        let half = |down: f64, up: f64| 0.5 * (down * down + up * up).sqrt();
        (half(down.high - low, high - up.low), half(low - down.low, up.high - high))
    };
    Ok(Estimate {
        law,
        log_likelihood: log_likelihood(cells, &law),
        parameters: vec![
            Parameter::new(first.high - low, first.high - down.high, first.high - down.low)
                .not_negative(),
            Parameter::new(last.low + high, last.low + up.low, last.low + up.high),
        ],
        mean: Parameter::new(middle, middle - below, middle + above).not_negative(),
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
    let depth = -libm::log1p(-first.times / count);
    let inner = from(first.high, others)?;
    let min = first.high * libm::exp(-depth / libm::exp(inner.at[0]));
    let (min, peak) =
        if min > first.low { (min, inner) } else { (first.low, from(first.low, cells)?) };
    let alpha = libm::exp(peak.at[0]);
    // As exact as for continuous values, of as many as would tell as much.
    let worth = (1.0 / peak.covariance[0][0]).max(2.0);
    let end = |p: f64| alpha * gamma_quantile(p, worth - 1.0) / worth;
    let alpha = Parameter::new(alpha, end(LOWER), end(UPPER));
    if alpha.low <= 1.0 {
        return Err("its mean could be infinite");
    }
    let law = Law::Pareto { min, alpha: alpha.value };
    let lowest = (first.low * libm::exp(-beyond(count) / alpha.value)).min(min);
    let (end, mean) = if first.times < AT_END {
        let of = |alpha: f64| min * alpha / (alpha - 1.0);
        let mean = Parameter::new(of(alpha.value), of(alpha.high), of(alpha.low));
        (Parameter::new(min, lowest, first.high), mean)
    } else {
        let share = jeffreys(first.times, count);
        let depth = Parameter::new(depth, -libm::log1p(-share.low), -libm::log1p(-share.high));
        let Parameter { value, low, high } = least_of_pareto(first.high, depth, alpha);
        let end = Parameter::new(min, low.max(lowest), high);
        (end, mean_of_pareto(first.high, depth, alpha, min / value))
    };
    Ok(Estimate {
        law,
        log_likelihood: log_likelihood(cells, &law),
        parameters: vec![end, alpha],
        mean,
    })
}

/// Where the smallest step ends at `top`, and `e^-depth` of all values are above it: the smallest
/// value is `top e^(-depth / alpha)`. The two intervals are independent, and their parts of the
/// error are added as squares (Zou and Donner, Construction of confidence limits about effect
/// measures, 2008).
fn least_of_pareto(top: f64, depth: Parameter, alpha: Parameter) -> Parameter {
    let ratio = depth.value / alpha.value;
    let part = |near: f64, far: f64| libm::log(far / near) * libm::log(far / near);
    let more = (part(depth.value, depth.high) + part(alpha.value, alpha.low)).sqrt();
    let less = (part(depth.value, depth.low) + part(alpha.value, alpha.high)).sqrt();
    let at = |ratio: f64| top * libm::exp(-ratio);
    Parameter::new(at(ratio), at(ratio * libm::exp(more)), at(ratio * libm::exp(-less)))
}

/// The mean likewise; `factor` corrects a smallest value that was held within its step.
fn mean_of_pareto(top: f64, depth: Parameter, alpha: Parameter, factor: f64) -> Parameter {
    let log = |depth: f64, alpha: f64| libm::log(alpha / (alpha - 1.0)) - depth / alpha;
    let value = log(depth.value, alpha.value);
    let by_alpha = [alpha.low, alpha.high].map(|alpha| log(depth.value, alpha) - value);
    let by_depth = [depth.low, depth.high].map(|depth| log(depth, alpha.value) - value);
    let reach = |sign: f64| {
        let most = |parts: [f64; 2]| (sign * parts[0]).max(sign * parts[1]).max(0.0);
        let (first, second) = (most(by_alpha), most(by_depth));
        (first * first + second * second).sqrt()
    };
    let at = |log: f64| factor * top * libm::exp(log);
    Parameter::new(at(value), at(value - reach(-1.0)), at(value + reach(1.0)))
}

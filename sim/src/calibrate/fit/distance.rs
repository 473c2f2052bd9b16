//! The Kolmogorov distance of a fitted law, and how often it is larger by chance.

use super::counts::Cell;
use super::law::Law;

/// How far the values are from a law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Distance {
    /// The largest difference of the two distributions, 0 to 1.
    pub(super) ks: f64,
    /// The probability of one so large, if the values are of the law's family and its parameters
    /// were estimated from them.
    pub(super) p_value: f64,
}

/// The distance of values in increasing order.
pub(super) fn of_values(sorted: &[f64], law: &Law) -> Distance {
    let ks = largest(sorted, law);
    let count = sorted.len() as f64;
    let p_value = match *law {
        // Between the smallest and the largest value the others are uniform, with known ends.
        Law::Uniform { .. } if count > 2.0 => {
            let inner = &sorted[1..sorted.len() - 1];
            by_known(largest(inner, law), count - 2.0)
        }
        // Above the smallest value, the others' logarithms are exponential.
        Law::Pareto { min, alpha } if count > 1.0 => {
            let alpha = alpha * (count - 1.0) / count;
            by_exponential(largest(&sorted[1..], &Law::Pareto { min, alpha }), count - 1.0)
        }
        _ => p_value(ks, count, law),
    };
    Distance { ks, p_value }
}

fn largest(sorted: &[f64], law: &Law) -> f64 {
    let count = sorted.len() as f64;
    sorted.iter().enumerate().fold(0.0, |most: f64, (index, &value)| {
        let below = law.below(value);
        let (before, after) = (index as f64 / count, (index + 1) as f64 / count);
        most.max(below - before).max(after - below)
    })
}

/// The distance of counts from what a law is rounded to. Steps make distances smaller, so that the
/// p-value is an upper bound.
pub(super) fn of_cells(cells: &[Cell], law: &Law) -> Distance {
    let count = cells.iter().fold(0.0, |sum, cell| sum + cell.times);
    let mut before = 0.0;
    let ks = cells.iter().fold(0.0, |most: f64, cell| {
        let (low, high) = (law.below(cell.low) - before, law.below(cell.high));
        before += cell.times / count;
        most.max(low.abs()).max((high - before).abs())
    });
    Distance { ks, p_value: p_value(ks, count, law) }
}

fn p_value(distance: f64, count: f64, law: &Law) -> f64 {
    match *law {
        Law::Constant { .. } => 1.0,
        Law::Uniform { .. } => by_known(distance, count),
        Law::Exponential { .. } | Law::Pareto { .. } => by_exponential(distance, count),
        Law::LogNormal { .. } => by_table(&NORMAL, adjusted(distance, count)),
        Law::Gamma { shape, .. } => by_gamma(adjusted(distance, count), shape),
    }
}

/// Kolmogorov's law of known parameters, with Stephens' argument for few values (EDF statistics for
/// goodness of fit and some comparisons, 1974).
fn by_known(distance: f64, count: f64) -> f64 {
    let root = count.sqrt();
    let x = distance * (root + 0.12 + 0.11 / root);
    if x < 0.3 {
        return 1.0;
    }
    let mut sum = 0.0;
    for k in 1..=40 {
        let sign = if k % 2 == 1 { 2.0 } else { -2.0 };
        let k = f64::from(k);
        sum += sign * libm::exp(-2.0 * k * k * x * x);
    }
    sum.clamp(0.0, 1.0)
}

/// Stephens' argument for a law of which one scale was estimated.
fn by_exponential(distance: f64, count: f64) -> f64 {
    let root = count.sqrt();
    by_table(&EXPONENTIAL, (distance - 0.2 / count) * (root + 0.26 + 0.5 / root))
}

/// Stephens' argument for a law of which place and scale were estimated.
fn adjusted(distance: f64, count: f64) -> f64 {
    let root = count.sqrt();
    distance * (root - 0.01 + 0.85 / root)
}

/// What the columns of [`Table`] are exceeded with.
const PROBABILITIES: [f64; 9] = [0.999, 0.9, 0.5, 0.25, 0.15, 0.1, 0.05, 0.025, 0.01];

/// Adjusted distances by the probability with which they are exceeded.
type Table = [f64; 9];

/// Between columns log p is linear in the distance, beyond the last in its square.
fn by_table(table: &Table, distance: f64) -> f64 {
    let Some(next) = table.iter().position(|&at| distance < at) else {
        let [.., before, last] = *table;
        let [.., more, less] = PROBABILITIES.map(libm::log);
        let slope = (less - more) / (last * last - before * before);
        return libm::exp(less + slope * (distance * distance - last * last));
    };
    if next == 0 {
        return 1.0;
    }
    let share = (distance - table[next - 1]) / (table[next] - table[next - 1]);
    let [more, less] = [PROBABILITIES[next - 1], PROBABILITIES[next]].map(libm::log);
    libm::exp(more + share * (less - more))
}

/// Between shapes, on the scale of 1 / (1 + shape), linear.
fn by_gamma(distance: f64, shape: f64) -> f64 {
    let place = |shape: f64| 1.0 / (1.0 + shape);
    let at = place(shape);
    let next = GAMMA.iter().position(|&(shape, _)| place(shape) <= at).unwrap_or(GAMMA.len() - 1);
    let (right, high) = &GAMMA[next];
    let (left, low) = &GAMMA[next.saturating_sub(1)];
    if next == 0 {
        return by_table(high, distance);
    }
    let share = (at - place(*left)) / (place(*right) - place(*left));
    let table = std::array::from_fn(|column| low[column] + share * (high[column] - low[column]));
    by_table(&table, distance)
}

/// Exponential, the mean estimated: Stephens 1974; the first four columns simulated.
const EXPONENTIAL: Table = [0.33, 0.50, 0.70, 0.85, 0.926, 0.990, 1.094, 1.190, 1.308];

/// Normal, mean and variance estimated: Stephens 1974; the first four columns simulated.
const NORMAL: Table = [0.29, 0.44, 0.60, 0.71, 0.775, 0.819, 0.895, 0.955, 1.035];

/// Gamma, shape and mean estimated, by shape: simulated.
const GAMMA: [(f64, Table); 1] = [(1e6, NORMAL)];

#[cfg(test)]
mod tables {
    use headway_shared::digest::Digest;
    use rayon::prelude::*;

    use super::*;
    use crate::calibrate::fit::sample::Sample;
    use crate::calibrate::fit::{Family, Unit, times};
    use crate::kernel::random::{Component, Key};
    use crate::kernel::sampler::Distribution;

    #[test]
    #[ignore = "makes the tables"]
    fn tables() {
        let laws = [
            ("exp", Distribution::exponential(1.0), Family::Exponential),
            ("normal", Distribution::lognormal_median_sigma(1.0, 1.0), Family::LogNormal),
            ("0.03", Distribution::gamma(0.03, 1.0), Family::Gamma),
            ("0.1", Distribution::gamma(0.1, 1.0), Family::Gamma),
            ("0.3", Distribution::gamma(0.3, 1.0), Family::Gamma),
            ("1", Distribution::gamma(1.0, 1.0), Family::Gamma),
            ("3", Distribution::gamma(3.0, 1.0), Family::Gamma),
            ("10", Distribution::gamma(10.0, 1.0), Family::Gamma),
            ("100", Distribution::gamma(100.0, 1.0), Family::Gamma),
        ];
        let n: u64 = std::env::var("N").unwrap().parse().unwrap();
        let sets: u64 = std::env::var("SETS").unwrap().parse().unwrap();
        for (name, law, family) in laws {
            let law = law.unwrap();
            let mut found: Vec<f64> = (0..sets)
                .into_par_iter()
                .map(|set| {
                    let mut stream =
                        Key::new(set, Digest::of(b"tables"), 0).stream(Component::Request, 0);
                    let values: Vec<f64> = (0..n).map(|at| law.sample(&mut stream, at)).collect();
                    let sample = Sample::new(&values, Unit::Seconds).unwrap();
                    let Ok(fit) = times::estimate(&sample, family) else { return -1.0 };
                    let d = largest(&sample.sorted, &fit.law);
                    let (count, root) = (n as f64, (n as f64).sqrt());
                    match family {
                        Family::Exponential => (d - 0.2 / count) * (root + 0.26 + 0.5 / root),
                        _ => adjusted(d, count),
                    }
                })
                .collect();
            found.sort_by(f64::total_cmp);
            let at = |p: f64| found[((1.0 - p) * sets as f64) as usize];
            println!("{name} n={n}: {:.3?}", PROBABILITIES.map(at));
        }
    }
}

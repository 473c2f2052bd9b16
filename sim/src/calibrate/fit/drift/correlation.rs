//! How alike neighbouring train steps are in what the policy has moved.

use std::ops::Range;

use super::model::Model;
use super::probes::Probes;
use crate::stats::mean;

/// Lags, in probes, beyond which nothing is looked for.
const MOST_LAGS: usize = 12;
/// The normal law's 95th percentile: a correlation below is chance.
const CHANCE: f64 = 1.645;

/// How neighbours are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Correlation {
    /// So many probes tell no more of a mean than one that is independent of the others; at least 1.
    pub(super) alike: usize,
    /// Between one train step and the next, of a process whose correlation falls by the same factor with
    /// each step (autoregressive of first order) and that inflates the variance of a mean as much.
    pub(super) per_step: f64,
}

impl Correlation {
    const NONE: Self = Self { alike: 1, per_step: 0.0 };

    /// From how far the logarithms of the probes' values are from the fit, about their mean in each
    /// stretch: their autocorrelations, summed up by pairs of lags as long as these are above 0 (the
    /// initial positive sequence: Geyer, *Practical Markov chain Monte Carlo*, Statistical Science 7,
    /// 1992). A stretch counts as much as it has drift (by the standard deviation). None, where
    /// the first one may be chance.
    pub(super) fn of(probes: &Probes, stretches: &[Range<usize>], fitted: &Model) -> Self {
        let residuals: Vec<Vec<f64>> = stretches
            .iter()
            .enumerate()
            .map(|(at, stretch)| {
                let weight = libm::sqrt(fitted.a[at]);
                let levels: Vec<f64> =
                    stretch.clone().map(|probe| probes.level(probe, fitted, at)).collect();
                let mean = mean(&levels).unwrap_or(0.0);
                levels.iter().map(|level| weight * (level - mean)).collect()
            })
            .collect();
        let sum = |lag: usize| {
            let products = |of: &Vec<f64>| {
                of.iter().zip(of.iter().skip(lag)).fold(0.0, |sum, (one, other)| sum + one * other)
            };
            residuals.iter().map(products).fold(0.0, |sum, part| sum + part)
        };
        let all = sum(0);
        if all <= 0.0 || sum(1) / all * libm::sqrt(probes.len() as f64) < CHANCE {
            return Self::NONE;
        }
        // By what the variance of a mean is larger than that of independent ones.
        let mut inflation = -1.0;
        for lag in (0..MOST_LAGS).step_by(2) {
            let pair = (sum(lag) + sum(lag + 1)) / all;
            if pair <= 0.0 {
                break;
            }
            inflation += 2.0 * pair;
        }
        let between_probes = (inflation - 1.0) / (inflation + 1.0);
        let steps = probes.step(probes.len() - 1) - probes.step(0);
        let distance = f64::from(steps) / (probes.len() - 1) as f64;
        let alike = libm::ceil(inflation) as usize;
        Self { alike, per_step: libm::pow(between_probes, 1.0 / distance) }
    }
}

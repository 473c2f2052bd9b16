//! The drift of a policy, from lag probes: `sigma²(k) = sigma0² + a k^p`.
//!
//! A probe scores one batch under policies k versions apart, for several k, and gives for each the
//! mean square of the log-ratio over the batch's tokens. Its values are heavy-tailed, they vary with
//! their size, and all of one probe go up and down together, since they share tokens and path. So:
//!
//! - the estimate solves the equations of a gamma law, `sum((y - v) / v² dv) = 0` with v the model:
//!   right whatever the law of y is, as long as its mean is v and its error about proportional to it
//!   (quasi-likelihood: McCullagh and Nelder, Generalized linear models, 1989, chapter 9);
//! - whole probes are resampled for the intervals, within their stretch of training;
//! - `a` changes with the stretch, `sigma0` and `p` are those of the run.

mod correlation;
mod model;
mod probes;
mod resample;
mod spread;

use correlation::Correlation;
use model::{Model, Start};
use probes::Probes;
pub use spread::step_spread;

use super::{FitError, Parameter};

/// What a lag probe measured at one distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbePoint {
    /// The step whose batch was scored.
    pub step: u32,
    /// Versions between the two policies.
    pub k: u32,
    /// The mean square of the log-ratio, in nats².
    pub log_square: f64,
    /// Tokens that it is the mean of.
    pub tokens: f64,
}

/// The drift of a run, as `[world.drift]` takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct DriftFit {
    /// The floor: the standard deviation at k = 0, in nats. Exactly 0 where all probes say so: one
    /// process, one precision.
    pub sigma0: Parameter,
    /// The variance that the first version adds, in nats², in the first stretch of training.
    pub a: Parameter,
    /// How it grows with the versions, 1 to 2.
    pub p: Parameter,
    /// The later stretches, in order; empty where `a` did not clearly change.
    pub windows: Vec<WindowFit>,
    /// How the estimates of `a` and `p` depend on each other, from -1 to 1: the correlation of log `a`
    /// with `p`, of each stretch.
    pub a_with_p: Vec<f64>,
    /// How alike neighbouring steps are in what the policy has moved, from 0 to 1: the correlation of
    /// the logarithms.
    pub step_correlation: f64,
    /// Probes.
    pub probes: usize,
}

/// A later stretch of training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowFit {
    /// The step of its first probe.
    pub from_step: u32,
    /// The variance that one version adds in it, in nats².
    pub a: Parameter,
    /// Its probes.
    pub probes: usize,
}

/// Fewer probes than this tell nothing of how much they vary.
const LEAST_PROBES: usize = 5;
const RESAMPLES: u64 = 400;

/// Fits the drift, with 90% intervals.
///
/// **Stretches.** The probes, in order of their steps, are cut into as many parts of equal numbers as
/// have at least eight probes each, at most 32. Neighbours are joined as long as the two least
/// different are not different at the level of 1% (Welch's t of the logarithms of the probes' values
/// by one fit to all). Then each cut goes where the logarithms on its two sides are nearest to their
/// means.
///
/// **Intervals.** 400 times as many probes are drawn with replacement, those of each stretch from
/// itself, and all is fitted again: the interval is from the 5% to the 95% quantile of that, about the
/// estimate widened as Student's t is wider than the normal law, since the spread of few probes is
/// itself uncertain. The stretches are taken as given. Where neighbouring probes are alike, they are drawn
/// together.
///
/// # Errors
/// If there are fewer than five probes, a value is negative or no number, no probe has any drift, or
/// the distances do not tell `p`: there must be at least two above 0, and 0 or a third.
pub fn drift(points: &[ProbePoint]) -> Result<DriftFit, FitError> {
    let probes = Probes::new(points)?;
    let found = probes.len();
    if found < LEAST_PROBES {
        return Err(FitError::TooFew { of: "lag probes", found, needed: LEAST_PROBES });
    }
    probes.require_distances()?;
    let start = Start::Guess { has_floor: !probes.without_floor };
    let first = Model::fit(&probes.cells(std::slice::from_ref(&(0..found))), start);
    let stretches = probes.stretches(&first);
    let fitted = Model::fit(&probes.cells(&stretches), start);
    let Correlation { alike, per_step } = Correlation::of(&probes, &stretches, &fitted);
    let intervals = resample::intervals(&probes, &stretches, &fitted, alike, RESAMPLES);
    let mut windows = stretches.iter().zip(&intervals.a).map(|(stretch, &a)| WindowFit {
        from_step: probes.step(stretch.start),
        a,
        probes: stretch.len(),
    });
    let a = windows.next().map_or(Parameter::exact(0.0), |window| window.a);
    Ok(DriftFit {
        sigma0: intervals.sigma0,
        a,
        p: intervals.p,
        windows: windows.collect(),
        a_with_p: intervals.a_with_p,
        step_correlation: per_step,
        probes: found,
    })
}

#[cfg(test)]
mod tests;

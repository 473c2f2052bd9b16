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
//! - `a` changes with the stretch, and `p` where stretches differ by more than chance; `sigma0` is that of
//!   the run.

mod correlation;
mod model;
mod powers;
mod probes;
mod resample;
mod spread;

use correlation::step_correlation;
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
    /// How it grows with the versions, 1 to 2, in the first stretch of training.
    pub p: Parameter,
    /// The later stretches, in order; empty where `a` did not clearly change.
    pub windows: Vec<WindowFit>,
    /// How the estimates of `a` and `p` depend on each other, from -1 to 1: the correlation of log `a`
    /// with its `p`, of each stretch.
    pub a_with_p: Vec<f64>,
    /// How alike neighbouring steps are in what the policy has moved, from 0 to 1: the correlation of
    /// the logarithms.
    pub step_correlation: f64,
    /// Probes.
    pub probes: usize,
}

impl DriftFit {
    /// The stretches, the first included: the step that each begins at, `a` and `p`.
    pub fn stretches(&self) -> impl Iterator<Item = (u32, f64, f64)> {
        let first = (0, self.a.value, self.p.value);
        let later = self
            .windows
            .iter()
            .map(|window| (window.from_step, window.a.value, window.p.unwrap_or(self.p).value));
        std::iter::once(first).chain(later)
    }
}

/// A later stretch of training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowFit {
    /// The step of its first probe.
    pub from_step: u32,
    /// The variance that one version adds in it, in nats².
    pub a: Parameter,
    /// How it grows with the versions; `None`: as in the first stretch.
    pub p: Option<Parameter>,
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
/// **Powers.** One `p` is fitted to all stretches, and each stretch by itself. Where these differ by more
/// than chance, each stretch has one between its own and that of all.
///
/// **Intervals.** 400 times as many probes are drawn with replacement, those of each stretch from
/// itself and in quarters of it, and all is fitted again: the interval is from the 5% to the 95% quantile of
/// that, about the estimate widened as Student's t is wider than the normal law, since the spread of four
/// quarters is itself uncertain. The stretches are taken as given.
///
/// # Errors
/// If there are fewer than five probes, a value is negative or no number, no probe has any drift, or
/// the distances do not tell `p`: there must be at least two above 0, and 0 or a third.
pub fn drift(points: &[ProbePoint]) -> Result<DriftFit, FitError> {
    let probes = Probes::new(points)?;
    let count = probes.len();
    if count < LEAST_PROBES {
        return Err(FitError::TooFew { of: "lag probes", found: count, needed: LEAST_PROBES });
    }
    probes.require_distances()?;
    let start = Start::Guess { has_floor: !probes.without_floor };
    let first = Model::fit(&probes.cells(std::slice::from_ref(&(0..count))), start);
    let stretches = probes.stretches(&first);
    let fitted = Model::fit(&probes.cells(&stretches), start);
    let found = resample::found(&probes, &stretches, &fitted, RESAMPLES);
    let mut windows =
        stretches.iter().zip(&found.a).enumerate().map(|(at, (stretch, &a))| WindowFit {
            from_step: probes.step(stretch.start),
            a,
            p: found.p.get(at).copied().filter(|_| at > 0),
            probes: stretch.len(),
        });
    let a = windows.next().map_or(Parameter::exact(0.0), |window| window.a);
    Ok(DriftFit {
        sigma0: found.sigma0,
        a,
        p: found.p.first().copied().unwrap_or(Parameter::exact(fitted.p)),
        windows: windows.collect(),
        a_with_p: found.a_with_p,
        step_correlation: step_correlation(&probes, &stretches, &fitted),
        probes: count,
    })
}

#[cfg(test)]
mod tests;

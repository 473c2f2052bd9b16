//! A point of a plan, before and after it was simulated.

use super::Simulated;
use super::constraint::Constraint;
use super::estimate::Estimate as Guess;
use super::split::Split;
use crate::report::tables::Replicated;
use crate::stats::{Estimate, estimate, paired_difference};
use crate::sweep::Planned;

/// A split, and what is tried at it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// How many GPUs each loop has.
    pub split: Split,
    /// The values of what is tried, in the order of the axes.
    pub values: Vec<String>,
    /// What is run.
    pub planned: Planned,
    /// What it is worth by arithmetic.
    pub estimate: Option<Guess>,
}

impl Candidate {
    /// Samples an hour by arithmetic.
    pub(super) fn guess(&self) -> f64 {
        self.estimate.map_or(0.0, |guess| guess.samples_per_hour)
    }

    /// Whether two differ in their split alone.
    pub(super) fn is_akin(&self, other: &Self) -> bool {
        self.split.layout == other.split.layout && self.values == other.values
    }
}

/// Samples with a gradient, trained in an hour of one run.
fn effective(run: &Replicated) -> Option<f64> {
    let trained = run.summary.get("trained_samples_per_hour")?;
    Some(trained * (1.0 - run.summary.get("masked_share").unwrap_or(0.0)))
}

/// The difference of a number of two sets of runs that saw the same random numbers.
fn difference(
    from: &[(u32, Replicated)],
    to: &[(u32, Replicated)],
    value: impl Fn(&Replicated) -> Option<f64>,
) -> Option<Estimate> {
    let pairs = from.iter().filter_map(|(replication, run)| {
        let (_, other) = to.iter().find(|(number, _)| number == replication)?;
        Some((value(run)?, value(other)?))
    });
    let (before, after): (Vec<f64>, Vec<f64>) = pairs.unzip();
    paired_difference(&before, &after)
}

/// What more effective samples an hour the second has.
pub(super) fn gain(from: &[(u32, Replicated)], to: &[(u32, Replicated)]) -> Option<Estimate> {
    difference(from, to, effective)
}

/// The mean of [`effective`].
pub(super) fn effective_mean(runs: &[(u32, Replicated)]) -> Option<Estimate> {
    let values: Vec<f64> = runs.iter().filter_map(|(_, run)| effective(run)).collect();
    estimate(&values)
}

impl Simulated {
    pub(super) fn new(
        candidate: Candidate,
        runs: Vec<(u32, Replicated)>,
        failed: Option<String>,
    ) -> Self {
        let effective = effective_mean(&runs);
        Self { candidate, runs, failed, effective, breaks: Vec::new(), on_front: false }
    }

    /// The mean of a metric.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<Estimate> {
        let values: Vec<f64> =
            self.runs.iter().filter_map(|(_, run)| run.summary.get(name)).collect();
        estimate(&values)
    }

    /// Mean effective throughput; nothing where nothing was trained.
    pub(super) fn rate(&self) -> f64 {
        self.effective.map_or(0.0, |effective| effective.mean)
    }

    /// Mean head staleness.
    pub(super) fn staleness(&self) -> Option<f64> {
        self.metric("staleness_head_mean").map(|staleness| staleness.mean)
    }

    /// What more effective samples an hour `other` has.
    #[must_use]
    pub fn gain_of(&self, other: &Self) -> Option<Estimate> {
        gain(&self.runs, &other.runs)
    }

    /// How much older the samples of `other` are.
    pub(super) fn ageing_of(&self, other: &Self) -> Option<Estimate> {
        difference(&self.runs, &other.runs, |run| run.summary.get("staleness_head_mean"))
    }

    /// Whether it can be chosen.
    #[must_use]
    pub fn is_fit(&self) -> bool {
        self.failed.is_none() && self.breaks.is_empty() && self.rate() > 0.0
    }

    pub(super) fn judge(&mut self, constraints: &[Constraint]) {
        let broken = |(_, constraint): &(usize, &Constraint)| {
            !constraint.is_kept(self.metric(constraint.metric))
        };
        self.breaks =
            constraints.iter().enumerate().filter(broken).map(|(place, _)| place).collect();
    }

    /// How far it is from keeping every constraint.
    #[must_use]
    pub fn breach(&self, constraints: &[Constraint]) -> f64 {
        let of = |&place: &usize| constraints[place].breach(self.metric(constraints[place].metric));
        self.breaks.iter().map(of).fold(0.0, |sum, breach| sum + breach)
    }
}

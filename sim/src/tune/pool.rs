//! Candidates, and the runs that each was given.

use super::aim::{Aim, STALENESS};
use super::space::{self, Spot};
use super::{Task, TuneError};
use crate::plan::constraint::Constraint;
use crate::report::tables::Replicated;
use crate::run::{RunFailure, RunOptions, simulate};
use crate::stats::{Estimate, estimate, paired_difference};
use crate::sweep::{Misfit, Planned, Progress, RunError, caught, replicate, wrong_with};

/// A combination that was tried.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its place in the space; `None`: the scenario as it is, which lies outside.
    pub(super) spot: Option<Spot>,
    /// The values of its keys, in the order of the axes.
    pub values: Vec<String>,
    /// What is run.
    pub planned: Planned,
    /// How many axes have another value than the scenario.
    pub changes: usize,
    /// What it was first tried for.
    pub origin: Origin,
    /// Its runs, by replication.
    pub runs: Vec<Replicated>,
    /// A run of it stalled, failed or panicked: it cannot be chosen. What happened.
    pub failed: Option<String>,
    /// An earlier candidate whose runs took the same decisions: it is that one by another name.
    pub same_as: Option<usize>,
}

/// Why a candidate was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is the scenario as it is.
    Present,
    /// It is part of the sample that the search begins with.
    Sample,
    /// It differs from the best so far in one key.
    Line,
    /// It differs from the best so far in two keys.
    Pair,
    /// It shows what the bound trades at the choice.
    Front,
}

impl Origin {
    /// Its name in tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Sample => "sample",
            Self::Line => "line",
            Self::Pair => "pair",
            Self::Front => "front",
        }
    }
}

impl Candidate {
    /// The values of a metric in its first `most` replications.
    pub(super) fn values_of(&self, metric: &str, most: usize) -> Vec<Option<f64>> {
        self.runs.iter().take(most).map(|run| run.summary.get(metric)).collect()
    }

    /// The mean of a metric over its first `most` replications.
    pub(super) fn mean_of(&self, metric: &str, most: usize) -> Option<Estimate> {
        let values: Vec<f64> = self.values_of(metric, most).into_iter().flatten().collect();
        estimate(&values)
    }

    /// The mean of a metric over all its replications.
    #[must_use]
    pub fn metric(&self, metric: &str) -> Option<Estimate> {
        self.mean_of(metric, usize::MAX)
    }

    /// What more of a metric `other` has, over the replications that both have: equal replications
    /// saw equal random numbers.
    #[must_use]
    pub fn difference(&self, other: &Self, metric: &str) -> Option<Estimate> {
        let both = self.runs.len().min(other.runs.len());
        let pairs = self.values_of(metric, both).into_iter().zip(other.values_of(metric, both));
        let (from, to): (Vec<f64>, Vec<f64>) =
            pairs.filter_map(|(from, to)| Some((from?, to?))).unzip();
        paired_difference(&from, &to)
    }

    /// Whether its runs took the same decisions and came to the same, as far as both were run: no
    /// decision reads the correction, but ratios do.
    pub(super) fn acts_as(&self, other: &Self) -> bool {
        let mut both = self.runs.iter().zip(&other.runs);
        let same = |(one, other): (&Replicated, &Replicated)| {
            one.digest == other.digest && one.summary == other.summary
        };
        self.runs.len().min(other.runs.len()) >= LEAST && both.all(same)
    }

    /// How far its means are from keeping every constraint, as a sum of shares of the limits.
    pub(super) fn breach(&self, aim: &Aim, most: usize) -> f64 {
        let of = |metric: &str| self.mean_of(metric, most);
        aim.constraints.iter().map(|kept| breach(kept, of(kept.metric))).fold(0.0, |a, b| a + b)
    }

    /// The constraints that it breaks, by their places.
    #[must_use]
    pub fn breaks(&self, aim: &Aim) -> Vec<usize> {
        let broken = |&place: &usize| {
            let constraint = &aim.constraints[place];
            !constraint.is_kept(self.metric(constraint.metric))
        };
        (0..aim.constraints.len()).filter(broken).collect()
    }

    /// The order in which candidates are kept: smaller is better. What keeps the constraints comes
    /// first, then more of what is maximised, then less staleness.
    fn rank(&self, aim: &Aim, most: usize) -> (f64, f64, f64) {
        let mean = |metric: &str| self.mean_of(metric, most).map(|mean| mean.mean);
        (
            self.breach(aim, most),
            -mean(aim.metric.name).unwrap_or(f64::NEG_INFINITY),
            mean(STALENESS).unwrap_or(f64::INFINITY),
        )
    }
}

/// A strict limit that is met exactly is broken by next to nothing, but broken.
fn breach(kept: &Constraint, value: Option<Estimate>) -> f64 {
    let breach = kept.breach(value);
    if breach == 0.0 && !kept.is_kept(value) { f64::MIN_POSITIVE } else { breach }
}

/// Everything that was tried.
pub(super) struct Pool<'a> {
    pub(super) task: &'a Task<'a>,
    progress: &'a dyn Progress,
    pub(super) candidates: Vec<Candidate>,
    /// Where the scenario is now, as far as the space has it.
    pub(super) present: Spot,
    /// Points that do not fit the scenario, with the reason of the first.
    pub(super) unfit: Vec<Spot>,
    pub(super) misfit: Option<Misfit>,
    /// Runs that were made, and the most that may be.
    pub(super) runs: u64,
    pub(super) budget: u64,
}

impl<'a> Pool<'a> {
    /// A pool that holds the scenario as it is.
    pub(super) fn new(task: &'a Task<'a>, budget: u64, progress: &'a dyn Progress) -> Self {
        let (present, exact) = space::present(task.scenario, task.axes);
        let config = &task.scenario.config;
        let as_it_is = Candidate {
            spot: exact.then(|| present.clone()),
            values: task.axes.iter().map(|axis| space::value_of(config, &axis.key)).collect(),
            planned: Planned {
                values: Vec::new(),
                set: Vec::new(),
                scenario: task.scenario.clone(),
                warnings: task.warnings.clone(),
            },
            changes: 0,
            origin: Origin::Present,
            runs: Vec::new(),
            failed: None,
            same_as: None,
        };
        Self {
            task,
            progress,
            candidates: vec![as_it_is],
            present,
            unfit: Vec::new(),
            misfit: None,
            runs: 0,
            budget,
        }
    }

    /// Runs that may still be made.
    pub(super) const fn left(&self) -> u64 {
        self.budget.saturating_sub(self.runs)
    }

    /// The candidate at a point, made where it is new; `None` where the point does not fit the
    /// scenario.
    pub(super) fn at(&mut self, spot: &Spot, origin: Origin) -> Option<usize> {
        let there = |candidate: &Candidate| candidate.spot.as_ref() == Some(spot);
        if let Some(place) = self.candidates.iter().position(there) {
            return Some(place);
        }
        if self.unfit.contains(spot) {
            return None;
        }
        let axes = self.task.axes.iter().zip(spot);
        let choices: Vec<_> = axes.map(|(axis, &place)| &axis.choices[place]).collect();
        let values: Vec<String> = choices.iter().map(|choice| choice.label.clone()).collect();
        let set = choices.iter().flat_map(|choice| choice.set.iter().cloned()).collect();
        match Planned::new(self.task.scenario, values.clone(), set) {
            Ok(planned) => {
                let now = &self.candidates[0].values;
                let changes = values.iter().zip(now).filter(|(value, now)| value != now).count();
                self.candidates.push(Candidate {
                    spot: Some(spot.clone()),
                    values,
                    planned,
                    changes,
                    origin,
                    runs: Vec::new(),
                    failed: None,
                    same_as: None,
                });
                Some(self.candidates.len() - 1)
            }
            Err(misfit) => {
                self.unfit.push(spot.clone());
                self.misfit.get_or_insert(misfit);
                None
            }
        }
    }

    /// Runs that these candidates need to have so many replications each.
    pub(super) fn cost(&self, places: &[usize], replications: usize) -> u64 {
        let missing = |&place: &usize| {
            let candidate = &self.candidates[place];
            let there =
                if candidate.failed.is_some() { replications } else { candidate.runs.len() };
            replications.saturating_sub(there) as u64
        };
        places.iter().map(missing).sum()
    }

    /// Gives these candidates as many replications.
    pub(super) fn raise(&mut self, places: &[usize], replications: usize) -> Result<(), TuneError> {
        let tasks: Vec<(usize, u32)> = places
            .iter()
            .filter(|&&place| self.candidates[place].failed.is_none())
            .flat_map(|&place| {
                let there = self.candidates[place].runs.len();
                (there..replications).map(move |replication| (place, replication as u32))
            })
            .collect();
        self.progress.more(tasks.len());
        self.runs += tasks.len() as u64;
        let work = |task: usize, _: u32| {
            let (place, replication) = tasks[task];
            let scenario = &self.candidates[place].planned.scenario;
            caught(|| simulate(scenario, replication, RunOptions::default()))
        };
        let done = || self.progress.run_ended();
        let runs = replicate(tasks.len(), 0..1, self.task.jobs, work, done);
        let runs = runs.map_err(RunError::from)?;
        for ((place, replication), run) in tasks.iter().copied().zip(runs.into_iter().flatten()) {
            let candidate = &mut self.candidates[place];
            let mut fail = |what: String| {
                candidate.failed.get_or_insert(format!("replication {replication} {what}"));
            };
            let result = match run {
                Ok(Ok(result)) => result,
                Ok(Err(RunFailure::Core { result, .. })) => *result,
                Ok(Err(RunFailure::Record(error))) => return Err(RunError::from(error).into()),
                Err(message) => {
                    fail(format!("panicked, which is a bug of Headway: {message}"));
                    continue;
                }
            };
            if let Some((what, true)) = wrong_with(&result) {
                fail(what);
            }
            candidate.runs.push(Replicated {
                summary: result.summary,
                drift: None,
                digest: result.digest,
                ended: result.ended.word(),
            });
        }
        self.tell_apart(places);
        Ok(())
    }

    /// Finds those whose runs took the same decisions as those of an earlier candidate.
    fn tell_apart(&mut self, places: &[usize]) {
        for &place in places {
            let this = &self.candidates[place];
            let same = |other: &&Candidate| other.same_as.is_none() && this.acts_as(other);
            let earlier = self.candidates[..place].iter().enumerate();
            let same = earlier.filter(|(_, other)| same(other)).map(|(at, _)| at).next();
            self.candidates[place].same_as = same;
        }
    }

    /// Sorts places from the best to the worst by their first `most` replications.
    pub(super) fn sort(&self, places: &mut [usize], most: usize) {
        let rank = |place: &usize| {
            let candidate = &self.candidates[*place];
            (candidate.failed.is_some(), candidate.rank(self.task.aim, most))
        };
        // The sort is stable: of equals, the first.
        places.sort_by(|one, other| {
            let ((one_failed, one), (other_failed, other)) = (rank(one), rank(other));
            one_failed
                .cmp(&other_failed)
                .then(one.0.total_cmp(&other.0))
                .then(one.1.total_cmp(&other.1))
                .then(one.2.total_cmp(&other.2))
        });
    }

    /// Whether a candidate may be chosen, and had all its replications.
    pub(super) fn is_complete(&self, place: usize) -> bool {
        let candidate = &self.candidates[place];
        candidate.runs.len() >= self.task.replications as usize
            && candidate.failed.is_none()
            && candidate.spot.is_some()
    }
}

/// Fewer runs than this have no interval, and prove nothing.
pub(super) const LEAST: usize = 2;

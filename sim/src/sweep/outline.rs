//! What a sweep is about, without the worlds that it runs in: enough to join its runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::contribution::Contribution;
use super::plan::Outcome;
use super::trouble::Trouble;
use super::warm_up;
use crate::report::results::Meta;
use crate::report::tables::{Point, tabulate};

/// A plan as its results see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outline {
    /// What its results are about.
    pub meta: Meta,
    /// Its points, in order.
    pub points: Vec<OutlinedPoint>,
    /// The number of the first replication of each point.
    pub first: u32,
}

/// A point of an [`Outline`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutlinedPoint {
    /// What its keys are called, in the order of [`Meta::keys`].
    pub values: Vec<String>,
    /// What it sets beyond the scenario, each as `key=value`.
    pub set: Vec<String>,
    /// What its ratios were fitted to, or that they are uncalibrated; `None`: it has none.
    pub drift: Option<String>,
}

impl Outline {
    /// How many runs it has.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.points.len().saturating_mul(self.meta.replications as usize)
    }

    /// What went wrong in some of its runs, each with its number.
    #[must_use]
    pub fn trouble(&self, runs: &BTreeMap<usize, Contribution>) -> Vec<Trouble> {
        let replications = self.meta.replications.max(1) as usize;
        let trouble = |(run, contribution): (&usize, &Contribution)| {
            let replication = self.first + (run % replications) as u32;
            contribution.trouble(run / replications, replication)
        };
        runs.iter().filter_map(trouble).collect()
    }

    /// Puts together what its runs gave, which are in the order of points and, within one, of
    /// replications.
    #[must_use]
    pub fn collect(&self, runs: impl IntoIterator<Item = Contribution>) -> Outcome {
        let mut runs = runs.into_iter();
        let mut trouble: Vec<Trouble> = Vec::new();
        let mut points = Vec::new();
        for (place, outlined) in self.points.iter().enumerate() {
            let OutlinedPoint { values, drift, .. } = outlined.clone();
            let mut point = Point { values, drift, runs: Vec::new() };
            let mut courses = Vec::new();
            let numbers = self.first..self.first.saturating_add(self.meta.replications);
            for (replication, contribution) in numbers.zip(runs.by_ref()) {
                trouble.extend(contribution.trouble(place, replication));
                let Contribution { run, course, .. } = contribution;
                courses.extend(course);
                point.runs.extend(run.map(|run| (replication, run)));
            }
            if let Some(what) = warm_up::too_short(&courses) {
                let replication = self.first;
                trouble.push(Trouble { point: place, replication, what, fatal: false });
            }
            points.push(point);
        }
        Outcome { results: tabulate(self.meta.clone(), &points), points, trouble }
    }
}

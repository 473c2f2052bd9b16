//! What a sweep runs, and what comes of it.

use std::io::Write;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use headway_shared::config::Diagnostics;
use headway_shared::time::Span;

use super::contribution::Contribution;
use super::outline::{Outline, OutlinedPoint};
use super::trouble::{Trouble, caught};
use super::{Axis, grid, replicate};
use crate::drift::Model;
use crate::report::about::About;
use crate::report::results::{Kind, Meta, Results};
use crate::report::tables::Point;
use crate::run::{RunOptions, simulate};
use crate::scenario::Scenario;

/// Distance of the rows of a series; a long run makes it longer.
const SERIES_INTERVAL: Span = Span::from_secs(10);

/// A point of a sweep, ready to run.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What its keys are called, in the order of the axes.
    pub values: Vec<String>,
    /// What it sets beyond the scenario, each as `key=value`.
    pub set: Vec<String>,
    /// The scenario with that set.
    pub scenario: Scenario,
    /// What is suspicious about it.
    pub warnings: Diagnostics,
}

impl Planned {
    /// The point of `base` with `set`.
    ///
    /// # Errors
    /// What is wrong with that.
    pub fn new(base: &Scenario, values: Vec<String>, set: Vec<String>) -> Result<Self, Misfit> {
        match base.with_sets(&set) {
            Ok((scenario, warnings)) => Ok(Self { values, set, scenario, warnings }),
            Err(diagnostics) => Err(Misfit { set, diagnostics, fitting: None }),
        }
    }
}

/// Keeps what a run gave, which is named by its number.
pub type Keep<'a> = dyn Fn(usize, &Contribution) -> std::io::Result<()> + Sync + 'a;

/// Points, and which replications of each are run.
#[derive(Clone, Debug)]
pub struct Plan {
    meta: Meta,
    points: Vec<Planned>,
    replications: Range<u32>,
}

/// A point whose settings do not fit the scenario.
#[derive(Clone, Debug)]
pub struct Misfit {
    /// What it sets beyond the scenario, each as `key=value`.
    pub set: Vec<String>,
    /// What is wrong with it.
    pub diagnostics: Diagnostics,
    /// The expression that sweeps only the values that do fit; `None`: several keys are swept, or
    /// no value fits.
    pub fitting: Option<String>,
}

/// What is told while a plan runs.
pub trait Progress: Sync {
    /// So many more runs are to come: what nobody knew when the first began.
    fn more(&self, _runs: usize) {}

    /// One more run has ended.
    fn run_ended(&self);
}

/// Why a plan could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its threads could not be started.
    #[error("the threads could not be started: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// A record could not be written.
    #[error("the record could not be written: {0}")]
    Record(#[from] std::io::Error),
    /// What a run gave could not be kept.
    #[error("what the runs gave could not be kept: {0}")]
    Keep(std::io::Error),
}

/// What a plan gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The tables.
    pub results: Results,
    /// The points with their runs, in order.
    pub points: Vec<Point>,
    /// Runs that went wrong, in order.
    pub trouble: Vec<Trouble>,
}

impl Plan {
    /// Plans every point of the grid of `axes`; no axes: the scenario alone.
    ///
    /// # Errors
    /// What is wrong with the first point whose settings do not fit the scenario.
    pub fn new(
        kind: Kind,
        base: &Scenario,
        axes: &[Axis],
        replications: Range<u32>,
    ) -> Result<Self, Misfit> {
        let mut points = Vec::new();
        let mut misfit = None;
        for choices in grid(axes) {
            let values = choices.iter().map(|choice| choice.label.clone()).collect();
            let set = choices.iter().flat_map(|choice| choice.set.iter().cloned()).collect();
            match Planned::new(base, values, set) {
                Ok(planned) => points.push(planned),
                Err(refused) => {
                    misfit.get_or_insert(refused);
                }
            }
        }
        if let Some(misfit) = misfit {
            return Err(Misfit { fitting: fitting(axes, &points), ..misfit });
        }
        let keys = axes.iter().map(|axis| axis.key.clone()).collect();
        Ok(Self::of(kind, base, keys, points, replications))
    }

    /// Plans these points, whose values belong to `keys`.
    #[must_use]
    pub fn of(
        kind: Kind,
        base: &Scenario,
        keys: Vec<String>,
        points: Vec<Planned>,
        replications: Range<u32>,
    ) -> Self {
        let meta = Meta {
            kind,
            version: env!("CARGO_PKG_VERSION").into(),
            scenario: base.name.clone(),
            title: base.title.clone(),
            scenario_digest: base.digest().to_string(),
            seed: base.seed,
            replications: replications.len() as u32,
            keys,
            drift: calibration(&points),
            config: (kind == Kind::Run).then(|| base.config.clone()),
            about: Some(About::of(base)),
            plots: Vec::new(),
        };
        Self { meta, points, replications }
    }

    /// Its points, in order.
    #[must_use]
    pub fn points(&self) -> &[Planned] {
        &self.points
    }

    /// How many runs it has.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.points.len() * self.replications.len()
    }

    /// What its results are about.
    #[must_use]
    pub fn outline(&self) -> Outline {
        let outlined = |planned: &Planned| OutlinedPoint {
            values: planned.values.clone(),
            set: planned.set.clone(),
            drift: planned.scenario.drift.as_ref().map(Model::calibration),
        };
        Outline {
            meta: self.meta.clone(),
            points: self.points.iter().map(outlined).collect(),
            first: self.replications.start,
        }
    }

    /// Runs it on `jobs` threads (0: one per core). The first replication of the first point is
    /// recorded to `record`.
    ///
    /// # Errors
    /// The threads could not be started, or the record could not be written.
    pub fn run<W: Write + Send>(
        &self,
        jobs: usize,
        record: Option<W>,
        progress: &dyn Progress,
    ) -> Result<Outcome, RunError> {
        let all: Vec<usize> = (0..self.runs()).collect();
        let runs = self.run_these(&all, jobs, record, &|_, _| Ok(()), progress)?;
        Ok(self.outline().collect(runs))
    }

    /// Runs some of its [runs](Self::runs), which are numbered by point and, within one, by
    /// replication. `keep` is called with each as soon as it has ended, by any of the threads.
    ///
    /// # Errors
    /// As [`run`](Self::run), or what `keep` reports.
    pub fn run_some(
        &self,
        runs: &[usize],
        jobs: usize,
        keep: &Keep<'_>,
        progress: &dyn Progress,
    ) -> Result<Vec<Contribution>, RunError> {
        self.run_these(runs, jobs, None::<std::io::Empty>, keep, progress)
    }

    fn run_these<W: Write + Send>(
        &self,
        runs: &[usize],
        jobs: usize,
        record: Option<W>,
        keep: &Keep<'_>,
        progress: &dyn Progress,
    ) -> Result<Vec<Contribution>, RunError> {
        let record = Mutex::new(record);
        let given_up = AtomicBool::new(false);
        let work = |place: usize, _| {
            let run = runs[place];
            let point = run / self.replications.len();
            let replication = self.replications.start + (run % self.replications.len()) as u32;
            // A thread that panicked ends the sweep before its lock is asked for again.
            let mut record = (run == 0).then(|| record.lock().ok()?.take()).flatten();
            let options = RunOptions {
                record: record.as_mut().map(|out| out as &mut dyn Write),
                series_interval: if replication == 0 { SERIES_INTERVAL } else { Span::ZERO },
                ..RunOptions::default()
            };
            // What can no more be kept need not be run.
            if given_up.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let caught = caught(|| simulate(&self.points[point].scenario, replication, options));
            let done = Contribution::of(caught).map_err(RunError::Record).and_then(|done| {
                keep(run, &done).map_err(RunError::Keep)?;
                Ok(Some(done))
            });
            given_up.fetch_or(done.is_err(), Ordering::Relaxed);
            done
        };
        let done = replicate(runs.len(), 0..1, jobs, work, || progress.run_ended())?;
        // Where one was left out, another has failed.
        done.into_iter().flatten().filter_map(Result::transpose).collect()
    }
}

/// What the ratios of these points were fitted to: where one of them is uncalibrated, so is the
/// result; `None` where none has ratios.
fn calibration(points: &[Planned]) -> Option<String> {
    let models = points.iter().filter_map(|point| point.scenario.drift.as_ref());
    models.min_by_key(|model| model.calibrated_from.is_some()).map(Model::calibration)
}

/// The expression for the values of the only axis that make a point.
fn fitting(axes: &[Axis], points: &[Planned]) -> Option<String> {
    let [Axis { key, .. }] = axes else { return None };
    let value = |point: &Planned| match point.set.as_slice() {
        [set] => Some(set.strip_prefix(key)?.strip_prefix('=')?.to_owned()),
        _ => None,
    };
    let values: Vec<String> = points.iter().map(value).collect::<Option<_>>()?;
    (!values.is_empty()).then(|| format!("{key}={}", values.join(",")))
}

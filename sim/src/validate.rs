//! Predictions beside what was measured.
//!
//! A recorded run is measured by the observer that measures a simulation, and simulated again under
//! its own configuration in a scenario's world, several times: each replication has random numbers
//! of its own, and fitted numbers drawn from what is known of them. What the replications give is
//! the prediction interval of one run, and the run lies in it or does not. `docs/validate.md` says how
//! to read the result.

mod document;
mod draw;
mod figures;
mod interval;
mod laws;
mod measure;
mod results;
mod settings;
mod stored;
mod tolerance;
mod world;

use headway_shared::action::Action;
use headway_shared::config::Diagnostics;
use headway_shared::core::Scheduler;
use headway_shared::input::Input;
use headway_shared::time::Span;

pub use document::{
    FailedDocument, MetricDocument, RunDocument, ScoreDocument, SumDocument, ValidationDocument,
};
pub use figures::{FIGURES, Figure, Group};
pub use interval::{COVERAGE, Prediction, central, one_more, predict, score};
pub use laws::{Laws, METRICS as LAWS};
pub use measure::{MeasureError, Measured, Ratio, measure};
pub use results::{Compared, RATIO_RESOLUTION, Row, Score, Sum, Validation};
pub use tolerance::{Tolerance, ToleranceError, Tolerances};

use crate::run::{Ended, RunFailure, RunOptions, RunResult, simulate};
use crate::scenario::{Scenario, Warmup};
use crate::sweep::{Progress, caught, replicate, wrong_with};

/// The number of the first replication: far from those of `simulate` and `sweep`, so that a
/// simulated run is not compared with itself.
const FIRST: u32 = 2_000_000;

/// Tokens of a sample that are drawn one by one at least: the percentile of a step is one of its own
/// tokens, and would be too low in a small part of them.
const TOKENS: u32 = 512;

/// A simulated run that has not made its train steps ends after so many times the time that the
/// recorded one took.
const PATIENCE: u64 = 5;

/// A run to compare.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it gave.
    pub measured: Measured,
    /// How its world is known to differ from the scenario's, each as `key=value`.
    pub set: Vec<String>,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The world, and what is known of its numbers.
    pub scenario: &'a Scenario,
    /// The runs, in the order of tables.
    pub runs: &'a [Run],
    /// What is dropped of each run; the runs are measured with the same.
    pub warmup: Warmup,
    /// How often each run is simulated; two or more.
    pub replications: u32,
    /// Threads; 0: one per core. No result depends on it.
    pub jobs: usize,
    /// How far a prediction may be off.
    pub tolerances: &'a Tolerances,
    /// The run that the scenario was fitted to: what would be said without a model.
    pub baseline: Option<&'a Measured>,
}

/// Why nothing was compared.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// The scenario, or what is set in it, is wrong.
    #[error("{0}")]
    Scenario(Diagnostics),
    /// What is set is a matter of the run's record.
    #[error(
        "{run}: `{assignment}` changes the scheduling sections, and a run is simulated under the \
         configuration in its record\nhelp: set keys of the world, such as \
         world.judge.vote.mean_sec=0.3"
    )]
    Scheduling {
        /// Of which run.
        run: String,
        /// What was set.
        assignment: String,
    },
    /// The threads could not be started.
    #[error("the threads could not be started: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

impl From<Diagnostics> for ValidateError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Scenario(diagnostics)
    }
}

/// One replication of a run.
#[derive(Clone, Debug, Default)]
struct Simulated {
    /// The values of [`FIGURES`].
    values: Vec<Option<f64>>,
    /// Why it is no result.
    trouble: Option<String>,
}

/// Simulates every run of a task, and compares.
///
/// # Errors
/// What is set is wrong, or the threads could not be started.
pub fn validate(task: &Task<'_>, progress: &dyn Progress) -> Result<Validation, ValidateError> {
    task.runs.iter().try_for_each(|run| check_sets(task.scenario, run))?;
    let parameters = task.scenario.calibration.as_ref().map_or(0, |fitted| fitted.parameters.len());
    let places = draw::places(task.scenario.seed, parameters, task.replications);
    let work = |run: usize, replication: u32| -> Result<Simulated, Diagnostics> {
        let Run { measured, set } = &task.runs[run];
        let scenario = draw::drawn(task.scenario, &places[replication as usize], set)?;
        Ok(simulated(&as_run(scenario, measured, task.warmup), FIRST + replication))
    };
    let replications = 0..task.replications;
    let done = replicate(task.runs.len(), replications, task.jobs, work, || progress.run_ended())?;
    let done: Vec<Vec<Simulated>> = done
        .into_iter()
        .map(|runs| runs.into_iter().collect())
        .collect::<Result<_, Diagnostics>>()?;
    Ok(Validation::of(task, &done))
}

/// What is set must leave the scheduling sections alone.
fn check_sets(scenario: &Scenario, run: &Run) -> Result<(), ValidateError> {
    let changes = |set: &[String]| -> Result<bool, Diagnostics> {
        Ok(scenario.with_sets(set)?.0.config != scenario.config)
    };
    if !changes(&run.set)? {
        return Ok(());
    }
    let named = run.set.iter().find(|one| changes(&[(*one).clone()]).unwrap_or(false));
    let assignment = named.or(run.set.first()).cloned().unwrap_or_default();
    Err(ValidateError::Scheduling { run: run.measured.name.clone(), assignment })
}

/// The scenario as the run was: under its configuration, for as many train steps.
fn as_run(mut scenario: Scenario, run: &Measured, warmup: Warmup) -> Scenario {
    scenario.config = run.config.clone();
    scenario.steps = Some(run.steps);
    scenario.duration = Span::from_nanos(run.time.as_nanos().saturating_mul(PATIENCE));
    scenario.warmup = warmup;
    if let Some(drift) = &mut scenario.drift {
        drift.sampled_tokens = drift.sampled_tokens.max(TOKENS);
    }
    scenario
}

fn simulated(scenario: &Scenario, replication: u32) -> Simulated {
    let mut laws = Laws::new(scenario.warmup);
    let run = caught(|| {
        let mut watch = |now, input: &Input, actions: &[Action], core: &Scheduler| {
            laws.observe(now, input, actions, core);
        };
        let options = RunOptions { watch: Some(&mut watch), ..RunOptions::default() };
        simulate(scenario, replication, options)
    });
    let result = match run {
        Ok(Ok(result)) => result,
        Ok(Err(RunFailure::Core { result, .. })) => *result,
        Ok(Err(error @ RunFailure::Record(_))) => return Simulated::nothing(error.to_string()),
        Err(message) => {
            let what = format!("panicked, which is a bug of Headway: {message}");
            return Simulated::nothing(what);
        }
    };
    let laws = laws.values();
    let of = |figure: &Figure| match LAWS.iter().position(|metric| metric.name == figure.name) {
        Some(place) => laws[place],
        None => result.summary.get(figure.name),
    };
    Simulated { values: FIGURES.iter().map(of).collect(), trouble: trouble(scenario, &result) }
}

impl Simulated {
    fn nothing(what: String) -> Self {
        Self { values: vec![None; FIGURES.len()], trouble: Some(what) }
    }
}

/// Why a replication is no result.
fn trouble(scenario: &Scenario, result: &RunResult) -> Option<String> {
    let wrong = wrong_with(result).filter(|(_, fatal)| *fatal).map(|(what, _)| what);
    let slow = || {
        let late = result.ended == Ended::Duration;
        let what = format!(
            "had not made {} train steps in {}, {PATIENCE} times the time of the recorded run",
            scenario.steps.unwrap_or(0),
            scenario.duration
        );
        late.then_some(what)
    };
    wrong.or_else(slow)
}

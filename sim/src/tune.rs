//! Tuning: the configuration that makes a metric largest and keeps every constraint.
//!
//! ```text
//! the scenario as it is + a sample ─► halving ─► the best ─► its lines ─► halving ─► the best ─► …
//!                 none better on its lines ─► pairs of keys that matter ─► none better: the choice
//! ```
//!
//! A space of a few keys has more points than anyone can run, so that few of them are simulated. A
//! round proposes points, runs each of them twice, keeps the better half, doubles the runs of
//! those, and so on until the last have all their replications (successive halving). The first
//! round's points are spread over the space; after that they differ from the best so far in one
//! key, and, where none of these is better, in two. All candidates see the same random numbers,
//! replication by replication, and what is compared is the paired difference. Nothing depends on
//! the number of threads.

pub mod aim;
mod choice;
mod envelope;
mod pool;
pub mod results;
mod search;
pub mod space;
mod verdict;

use headway_shared::config::Diagnostics;
use headway_shared::config::tuned::{Provenance, Tuned};
use headway_shared::record::DECISION_VERSION;
use headway_shared::time::Span;

use self::aim::Aim;
use self::envelope::Predicted;
use self::pool::Pool;
use crate::scenario::Scenario;
use crate::sweep::{Axis, Misfit, Progress, RunError};

pub use self::pool::{Candidate, Origin};

/// Runs of a search where nobody says how many, in a space of which they are less than a quarter.
const MOST_RUNS: u64 = 1_600;

/// What is tuned.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    /// The world, and the configuration to begin with.
    pub scenario: &'a Scenario,
    /// What is suspicious about it.
    pub warnings: Diagnostics,
    /// What is maximised, and what must be kept.
    pub aim: &'a Aim,
    /// What is searched, as [`space::axes`] reads it.
    pub axes: &'a [Axis],
    /// Replications of whatever may be chosen; two or more, or nothing has an interval.
    pub replications: u32,
    /// The most runs; `None`: a quarter of what the whole grid would take, at most 1,600.
    pub budget: Option<u64>,
    /// The length of a window of the envelope; `None`: as long as 20 train steps.
    pub window: Option<Span>,
    /// Threads; 0: one per core.
    pub jobs: usize,
}

/// Replications to begin with where nobody says how many: with fewer, almost everything is as good as
/// everything else, and the least stale of it is slow.
pub const FEW_REPLICATIONS: u32 = 8;

/// Why nothing was tuned.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// No combination of the space fits the scenario; the first misfit.
    #[error("with {}:\n{}", .0.set.join(", "), .0.diagnostics)]
    Misfit(Box<Misfit>),
    /// No window of this length lies in a run after its warm-up.
    #[error(
        "no two windows of {0} fit into the runs after their warm-up\n\
         help: write a shorter --window-sec, or a longer scenario"
    )]
    Window(Span),
    /// The runs could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// What tuning gave.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Everything that was tried, in the order in which it was; the first is the scenario as it is.
    pub candidates: Vec<Candidate>,
    /// The chosen one; `None`: nothing that was tried keeps every constraint.
    pub chosen: Option<usize>,
    /// Whether each lies on the front of what is maximised against staleness.
    pub front: Vec<bool>,
    /// What is predicted of the chosen one.
    pub predicted: Option<Predicted>,
    /// How many points the space has.
    pub points: u64,
    /// Points that were tried and do not fit the scenario.
    pub unfit: usize,
    /// Runs that were made.
    pub runs: u64,
    /// Rounds that were made.
    pub rounds: u32,
    /// The search ended because its runs were spent, not because nothing better was near.
    pub spent: bool,
}

/// Tunes.
///
/// # Errors
/// No combination of the space fits the scenario, or no window of the length that was asked for
/// lies in a run.
pub fn tune(task: &Task<'_>, progress: &dyn Progress) -> Result<Tuning, TuneError> {
    let points = space::size(task.axes);
    let pool = Pool::new(task, budget(task, points), progress);
    let mut search = search::Search::new(pool);
    search.run()?;
    let search::Search { mut pool, rounds, spent, .. } = search;
    let complete = (0..pool.candidates.len()).any(|place| pool.is_complete(place));
    if !complete && let Some(misfit) = pool.misfit.take() {
        return Err(TuneError::Misfit(Box::new(misfit)));
    }
    let chosen = choice::best(&pool).filter(|&place| choice::is_fit(&pool, place));
    let predicted = match chosen {
        Some(place) => {
            pool.runs += u64::from(task.replications);
            Some(envelope::predict(task, &pool.candidates[place], progress)?)
        }
        None => None,
    };
    Ok(Tuning {
        chosen,
        predicted,
        front: choice::front(&pool, task.replications as usize),
        points,
        unfit: pool.unfit.len(),
        runs: pool.runs,
        rounds,
        spent,
        candidates: pool.candidates,
    })
}

/// The most runs of the search: those of the envelope are kept back. However small the space is,
/// the scenario as it is and a few others are run.
fn budget(task: &Task<'_>, points: u64) -> u64 {
    let replications = u64::from(task.replications);
    let grid = points.saturating_mul(replications);
    let budget = task.budget.unwrap_or_else(|| (grid / 4).min(MOST_RUNS));
    let few = replications.saturating_mul(points.min(FEW) + 1);
    budget.saturating_sub(replications).max(few)
}

/// So many points are run whatever the budget is.
const FEW: u64 = 4;

impl Tuning {
    /// The file to hand on; `None` where nothing was chosen. `file` is the scenario's, and
    /// `overrides` what was laid over it, as they were given.
    #[must_use]
    pub fn tuned(&self, task: &Task<'_>, file: &str, overrides: &[String]) -> Option<Tuned> {
        let chosen = &self.candidates[self.chosen?];
        let Predicted { means, envelope } = self.predicted.clone()?;
        let scenario = task.scenario;
        Some(Tuned {
            provenance: Provenance {
                scenario: scenario.name.clone(),
                scenario_file: file.to_owned(),
                scenario_digest: scenario.digest(),
                overrides: overrides.to_vec(),
                seed: scenario.seed,
                replications: task.replications,
                runs: self.runs,
                headway: env!("CARGO_PKG_VERSION").to_owned(),
                decision_version: DECISION_VERSION,
                maximize: task.aim.metric.name.to_owned(),
                subject_to: task.aim.constraints.iter().map(ToString::to_string).collect(),
                space: task.axes.iter().map(space::expression).collect(),
            },
            predicted: means,
            envelope,
            config: chosen.planned.scenario.config.clone(),
        })
    }
}

//! The tournament: every gate and every sync mode, over the same worlds.
//!
//! ```text
//! workloads x entrants (a gate, its knob, its companions) x sync modes ─► replicated runs that saw
//! the same random numbers ─► a row each, with 90% intervals ─► fronts, pictures, tables of the page
//! ```
//!
//! What cannot be configured, stalls or fails has a row too, with the reason.

pub mod entrant;
mod front;
mod length;
pub mod page;
pub mod results;
pub(crate) mod row;

use headway_shared::config::{Choice as _, SyncMode};

use self::entrant::{Entrant, Knob, mode_set};
pub use self::row::{Row, State};
use crate::report::results::Kind;
use crate::report::tables::Replicated;
use crate::scenario::Scenario;
use crate::sweep::{Plan, Planned, Progress, RunError};

/// What is played.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    /// The worlds, whose gates and sync modes do not matter.
    pub workloads: &'a [Scenario],
    /// Who takes part.
    pub entrants: &'a [&'static Entrant],
    /// How weights reach the replicas.
    pub modes: &'a [SyncMode],
    /// Replications of each row; `None`: as many as each workload says.
    pub replications: Option<u32>,
    /// Threads; 0: one per core.
    pub jobs: usize,
}

impl Task<'_> {
    /// Replications of each row of a workload.
    #[must_use]
    pub fn replications_of(&self, workload: &Scenario) -> u32 {
        self.replications.unwrap_or(workload.replications)
    }

    /// Every knob of every entrant under every sync mode, in order.
    fn contests(&self, workload: &Scenario) -> Vec<(&'static Entrant, Knob, SyncMode)> {
        let mut contests = Vec::new();
        for entrant in self.entrants {
            for knob in entrant.knobs(workload) {
                contests.extend(self.modes.iter().map(|mode| (*entrant, knob.clone(), *mode)));
            }
        }
        contests
    }
}

/// What a tournament gave.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// A row per workload, entrant, knob and sync mode, in this order.
    pub rows: Vec<Row>,
}

/// Plays.
///
/// # Errors
/// The threads could not be started.
pub fn play(task: &Task<'_>, progress: &dyn Progress) -> Result<Tournament, RunError> {
    let plays: Vec<Play<'_>> =
        task.workloads.iter().map(|workload| Play::new(task, workload)).collect();
    plays.iter().for_each(|play| progress.more(play.plan.runs()));
    let mut rows = Vec::new();
    for (place, play) in plays.into_iter().enumerate() {
        let from = rows.len();
        rows.extend(play.run(place, task.jobs, progress)?);
        front::mark(&mut rows[from..]);
    }
    Ok(Tournament { rows })
}

/// One workload, ready to run.
struct Play<'a> {
    workload: &'a Scenario,
    contests: Vec<(&'static Entrant, Knob, SyncMode)>,
    /// Of each contest its place in the plan, or why it has none.
    places: Vec<Result<usize, String>>,
    plan: Plan,
}

impl<'a> Play<'a> {
    fn new(task: &Task<'_>, workload: &'a Scenario) -> Self {
        let contests = task.contests(workload);
        let (mut places, mut points) = (Vec::new(), Vec::new());
        for (_, knob, mode) in &contests {
            let set = knob.set.iter().cloned().chain(mode_set(*mode)).collect();
            let values = vec![knob.label.clone(), mode.word().to_owned()];
            places.push(match Planned::new(workload, values, set) {
                Ok(planned) => {
                    points.push(planned);
                    Ok(points.len() - 1)
                }
                Err(misfit) => Err(row::first_error(&misfit.diagnostics)),
            });
        }
        let replications = 0..task.replications_of(workload);
        let plan = Plan::of(Kind::Run, workload, Vec::new(), points, replications);
        Self { workload, contests, places, plan }
    }

    fn run(self, place: usize, jobs: usize, progress: &dyn Progress) -> Result<Vec<Row>, RunError> {
        let outcome = self.plan.run(jobs, None::<std::io::Sink>, progress)?;
        let expected = length::expected(self.workload);
        let mut rows = Vec::new();
        for ((entrant, knob, mode), point) in self.contests.into_iter().zip(self.places) {
            let (runs, state): (&[(u32, Replicated)], State) = match point {
                Err(reason) => (&[], State::Invalid(reason)),
                Ok(at) => (&outcome.points[at].runs, State::of(&outcome.trouble, at)),
            };
            rows.push(Row::new(place, entrant.name, knob, mode, state, runs, expected));
        }
        Ok(rows)
    }
}

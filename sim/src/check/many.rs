//! Many scenarios at once, on several threads; the results do not depend on how many.

use headway_shared::metrics::Summary;

use super::difference::Difference;
use super::golden::Golden;
use super::log::Log;
use super::play::{self, Limits, noise};
use crate::scenario::Scenario;
use crate::sweep::{self, Progress, RunError, caught};

/// The most runs from which the noise of a golden is taken.
const MOST_REPLICATIONS: u32 = 8;
/// The fewest: from two runs the noise would be anything.
const FEWEST_REPLICATIONS: u32 = 4;

/// A scenario, and what was accepted of it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The scenario.
    pub scenario: Scenario,
    /// `None`: nothing yet.
    pub golden: Option<(Golden, Log)>,
}

/// What came of a scenario.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It is as accepted.
    Same,
    /// It is not.
    Differs(Box<Difference>),
    /// Nothing was accepted of it.
    Missing,
    /// It panicked, which is a bug of Headway.
    Panicked(String),
}

/// What is to be accepted.
#[derive(Clone, Debug)]
pub struct Blessed {
    /// What people read.
    pub golden: Golden,
    /// The decisions.
    pub log: Log,
}

/// Compares each scenario that has a golden with it, on `jobs` threads (0: one per core).
///
/// # Errors
/// The threads could not be started.
pub fn check_all(
    targets: &[Target],
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Vec<Outcome>, RunError> {
    let work = |place: usize, _| {
        let Target { scenario, golden } = &targets[place];
        let Some((golden, log)) = golden else { return Outcome::Missing };
        match caught(|| play::check(scenario, golden, log)) {
            Ok(None) => Outcome::Same,
            Ok(Some(difference)) => Outcome::Differs(Box::new(difference)),
            Err(message) => Outcome::Panicked(message),
        }
    };
    let outcomes = sweep::replicate(targets.len(), 0..1, jobs, work, || progress.run_ended())?;
    Ok(outcomes.into_iter().flatten().collect())
}

/// How many runs it takes to accept these.
#[must_use]
pub fn runs_to_bless(scenarios: &[(&Scenario, Limits)]) -> usize {
    scenarios.iter().map(|(scenario, _)| replications(scenario) as usize).sum()
}

fn replications(scenario: &Scenario) -> u32 {
    scenario.replications.clamp(FEWEST_REPLICATIONS, MOST_REPLICATIONS)
}

enum Run {
    First(Box<(Blessed, Summary)>),
    Other(Box<Summary>),
    None,
}

/// Runs each scenario, and some replications of it for the noise of its metrics.
///
/// # Errors
/// The threads could not be started. An entry is the message of a panic where a run had one.
pub fn bless_all(
    scenarios: &[(&Scenario, Limits)],
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Vec<Result<Blessed, String>>, RunError> {
    let work = |place: usize, replication: u32| -> Result<Run, String> {
        let (scenario, limits) = scenarios[place];
        if replication >= replications(scenario) {
            return Ok(Run::None);
        }
        let run = caught(|| match replication {
            0 => play::bless(scenario, limits).map(|(golden, log, summary)| {
                Run::First(Box::new((Blessed { golden, log }, summary)))
            }),
            _ => play::replicate(scenario, replication, limits)
                .map(|summary| Run::Other(Box::new(summary))),
        });
        progress.run_ended();
        Ok(run?.unwrap_or(Run::None))
    };
    let runs = sweep::replicate(scenarios.len(), 0..MOST_REPLICATIONS, jobs, work, || {})?;
    Ok(runs.into_iter().map(together).collect())
}

fn together(runs: Vec<Result<Run, String>>) -> Result<Blessed, String> {
    let mut blessed = None;
    let mut summaries = Vec::new();
    for run in runs {
        match run? {
            Run::First(first) => {
                let (golden, summary) = *first;
                blessed = Some(golden);
                summaries.push(summary);
            }
            Run::Other(summary) => summaries.push(*summary),
            Run::None => {}
        }
    }
    let mut blessed = blessed.ok_or("the run gave nothing")?;
    blessed.golden.set_noise(&noise(&summaries), summaries.len() as u32);
    Ok(blessed)
}

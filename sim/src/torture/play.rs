//! One scenario, played and looked at.

use std::io::Write;

use headway_shared::action::{Action, RunError};
use headway_shared::core::Scheduler;
use headway_shared::input::Input;
use headway_shared::planted::Plant;
use headway_shared::record::Reader;
use headway_shared::replay::replay;
use headway_shared::watch::Watch;

use super::Case;
use crate::run::{Ended, RunFailure, RunOptions, RunResult, simulate};
use crate::scenario::Scenario;
use crate::sweep::caught;

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Inputs with faults.
    pub inputs: u64,
    /// Inputs in which everything must come to its end then.
    pub drain: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { inputs: 400, drain: 40_000 }
    }
}

/// Plays a scenario; what is wrong, in a sentence.
///
/// # Errors
/// The scenario does not load, something does not fit what was seen of the core, two runs differ, or
/// something never ends.
pub fn play(case: &Case, limits: Limits) -> Result<(), String> {
    let scenario = case.load().map_err(|error| format!("it does not load: {error}"))?;
    let mut record = Vec::new();
    let result = watched(&scenario, limits, Plant::default(), Some(&mut record))?;
    caught(|| repeats(&scenario, limits, &result, &record)).unwrap_or_else(|panic| panics(&panic))
}

/// Plays a scenario once with a bug planted; what is found, in a sentence.
///
/// # Errors
/// The scenario does not load, or something is found.
pub fn play_planted(case: &Case, limits: Limits, plant: Plant) -> Result<(), String> {
    let scenario = case.load().map_err(|error| format!("it does not load: {error}"))?;
    watched(&scenario, limits, plant, None).map(|_| ())
}

fn panics<T>(panic: &str) -> Result<T, String> {
    Err(format!("it panics: {panic}"))
}

/// A run with an observer beside it, which keeps books of its own.
fn watched(
    scenario: &Scenario,
    limits: Limits,
    plant: Plant,
    record: Option<&mut Vec<u8>>,
) -> Result<RunResult, String> {
    let mut books = Watch::new(scenario.config.clone());
    let (mut inputs, mut found, mut core) = (0, None, None);
    let mut watch = |at, input: &Input, actions: &[Action], core: &Scheduler| {
        if found.is_none()
            && let Err(what) = books.observe(at, input, actions, core)
        {
            found = Some(format!("at {at}, after {input:?}: {what}"));
        }
        inputs += 1;
        if inputs >= limits.inputs {
            books.calm();
        }
    };
    let options = RunOptions {
        record: record.map(|record| record as &mut dyn Write),
        watch: Some(&mut watch),
        core: Some(&mut core),
        plant,
        ..options(limits)
    };
    let ran = caught(|| simulate(scenario, 0, options).map_err(Box::new)).map(ended);
    if let Some(found) = found {
        return Err(found);
    }
    let result = ran.unwrap_or_else(|panic| panics(&panic))?;
    let core = core.ok_or("the run left no core")?;
    ended_well(&result, limits, &core.stall().to_string())?;
    if result.ended == Ended::Exhausted {
        books.at_end(&core)?;
    }
    Ok(result)
}

fn options<'a>(limits: Limits) -> RunOptions<'a> {
    let max_inputs = limits.inputs + limits.drain;
    RunOptions { max_inputs, calm_after: limits.inputs, ..RunOptions::default() }
}

/// A run may end because publications failed too often: never because a rule of the core was broken.
fn ended(ran: Result<RunResult, Box<RunFailure>>) -> Result<RunResult, String> {
    ran.or_else(|failure| match *failure {
        RunFailure::Core { result, error: RunError::PublicationFailed { .. }, .. } => Ok(*result),
        failure => Err(failure.to_string()),
    })
}

/// The same again is the same, byte for byte, and its record replays.
fn repeats(
    scenario: &Scenario,
    limits: Limits,
    result: &RunResult,
    record: &[u8],
) -> Result<(), String> {
    let mut twin = Vec::new();
    let options = RunOptions { record: Some(&mut twin), ..options(limits) };
    let again = ended(simulate(scenario, 0, options).map_err(Box::new))?;
    if record != twin || result.summary != again.summary {
        let same = record.iter().zip(&twin).take_while(|(one, other)| one == other).count();
        return Err(format!("two runs differ, from byte {same} of their records on"));
    }
    let reader = Reader::open(record).map_err(|error| error.to_string())?;
    replay(reader).map_err(|error| format!("its record does not replay: {error}"))?;
    Ok(())
}

/// Everything that was under way has come to its end.
fn ended_well(result: &RunResult, limits: Limits, stall: &str) -> Result<(), String> {
    match &result.ended {
        Ended::Exhausted | Ended::Failed(RunError::PublicationFailed { .. }) => Ok(()),
        Ended::Stalled(stall) => Err(format!(
            "nothing goes on after {}, though faults have stopped: {stall}",
            result.end
        )),
        ended => Err(format!(
            "it has not come to its end {} inputs after faults have stopped, at {} ({}): {stall}",
            limits.drain,
            result.end,
            ended.word()
        )),
    }
}

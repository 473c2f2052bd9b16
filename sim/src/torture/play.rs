//! One scenario, played and looked at.

use headway_shared::action::{Action, RunError};
use headway_shared::core::{Fate, Resolved, Scheduler};
use headway_shared::record::{Entry, Reader};
use headway_shared::replay::replay;
use headway_shared::time::Span;

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

/// Nothing tells a client to wait longer: it would give up.
const LONGEST_WAIT: Span = Span::from_secs(60);

/// Plays a scenario; what is wrong, in a sentence.
///
/// # Errors
/// The scenario does not load, a rule of the core is broken, two runs differ, or something never
/// ends.
pub fn play(case: &Case, limits: Limits) -> Result<(), String> {
    let scenario = case.load().map_err(|error| format!("it does not load: {error}"))?;
    match caught(|| look_at(&scenario, limits)) {
        Ok(looked) => looked,
        Err(panic) => Err(format!("it panics: {panic}")),
    }
}

fn look_at(scenario: &Scenario, limits: Limits) -> Result<(), String> {
    let (result, record) = recorded(scenario, limits)?;
    let (again, twin) = recorded(scenario, limits)?;
    if record != twin || result.summary != again.summary {
        let same = record.iter().zip(&twin).take_while(|(one, other)| one == other).count();
        return Err(format!("two runs differ, from byte {same} of their records on"));
    }
    let reader = Reader::open(record.as_slice()).map_err(|error| error.to_string())?;
    replay(reader).map_err(|error| format!("its record does not replay: {error}"))?;
    let stall = audit(scenario, &record)?;
    ended_well(&result, limits, &stall)
}

/// A run with its record. A run may end because publications failed too often: never because a rule
/// of the core was broken.
fn recorded(scenario: &Scenario, limits: Limits) -> Result<(RunResult, Vec<u8>), String> {
    let mut record = Vec::new();
    let options = RunOptions {
        record: Some(&mut record),
        max_inputs: limits.inputs + limits.drain,
        calm_after: limits.inputs,
        ..RunOptions::default()
    };
    let result = match simulate(scenario, 0, options) {
        Ok(result) => result,
        Err(RunFailure::Core { result, error: RunError::PublicationFailed { .. }, .. }) => *result,
        Err(failure) => return Err(failure.to_string()),
    };
    Ok((result, record))
}

/// The inputs of a record, handled by a fresh core: every counter is recounted after each. What the
/// trainer waits for at the end.
fn audit(scenario: &Scenario, record: &[u8]) -> Result<String, String> {
    let reader = Reader::open(record).map_err(|error| error.to_string())?;
    let mut core = Scheduler::new(reader.header().config.clone());
    let mut learner = core.learner();
    // A smaller batch, which an operator may ask for, is more versions ahead.
    let mut smallest = scenario.config.clone();
    smallest.policy_training.batch_size = 1;
    let widest = scenario.config.bound_versions().max(smallest.bound_versions());
    for entry in reader {
        let Entry::Input { at, input, .. } = entry.map_err(|error| error.to_string())? else {
            continue;
        };
        core.handle(at, &input);
        while let Some(action) = core.poll_action() {
            if let Action::Refuse { retry_after, .. } = action
                && retry_after > LONGEST_WAIT
            {
                return Err(format!("at {at}: a client is told to wait for {retry_after}"));
            }
        }
        if let Err(violation) = core.audit() {
            return Err(format!("at {at}, after {input:?}: {violation:?}"));
        }
        if core.learner() < learner {
            return Err(format!("at {at}: the learner goes back to {}", core.learner().number()));
        }
        learner = core.learner();
        for resolved in core.resolved() {
            trained_well(scenario, resolved, widest)
                .map_err(|what| format!("at {at}: {what}: {:?}", resolved.sample))?;
        }
    }
    Ok(core.stall().to_string())
}

fn trained_well(scenario: &Scenario, resolved: &Resolved, widest: u32) -> Result<(), &'static str> {
    let Resolved { sample, fate } = resolved;
    if *fate != Fate::Trained {
        return Ok(());
    }
    let staleness = sample.staleness_head();
    if sample.staleness_parts().iter().sum::<u32>() != staleness {
        return Err("the parts of its staleness are not the whole");
    }
    if scenario.config.is_strict() && staleness > widest {
        return Err("it is above a strict bound");
    }
    let filter = scenario.config.policy_training.stale_filter_steps;
    if filter.is_some_and(|filter| staleness > filter) {
        return Err("it is above the filter");
    }
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

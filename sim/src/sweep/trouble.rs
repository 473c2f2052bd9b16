//! What went wrong in a run.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use headway_shared::guard;

use super::silence;
use crate::run::{Ended, RunFailure, RunResult};

/// A run that stalled, failed, panicked, or was too short to say anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Which point.
    pub point: usize,
    /// Which replication of it.
    pub replication: u32,
    /// What happened.
    pub what: String,
    /// The run is no result; else it is a suspicious one.
    pub fatal: bool,
}

/// What is wrong with a run that came to an end, and whether it is no result.
pub(crate) fn wrong_with(result: &RunResult) -> Option<(String, bool)> {
    match &result.ended {
        Ended::Stalled(stall) => Some((format!("stalled at {}: {stall}", result.end), true)),
        Ended::Failed(error) => Some((format!("failed at {}: {error}", result.end), true)),
        _ => suspicion(result),
    }
}

fn suspicion(result: &RunResult) -> Option<(String, bool)> {
    let silence = result.silence.as_ref();
    if let Some(silence) = silence.filter(|silence| silence.is_for_good()) {
        return Some((silence.to_string(), true));
    }
    let silence = || silence.map(ToString::to_string);
    let cold = "ended before its warm-up was over: its metrics include the start";
    let cold = || (!result.warm).then(|| cold.to_owned());
    let deviation = || deviation(result.guard.as_ref()?);
    silence::why(&result.summary)
        .or_else(deviation)
        .or_else(silence)
        .or_else(cold)
        .map(|what| (what, false))
}

/// The run left the envelope of `[guard]`.
fn deviation(found: &guard::Found) -> Option<String> {
    let report = found.deviation.as_ref()?;
    let then = if found.rolled_back { ", and went back to the previous configuration" } else { "" };
    Some(format!("left its envelope at {}: {report}{then}", report.at))
}

/// What a run gave, or the message of the panic that ended it.
pub(super) type Caught = Result<Result<RunResult, RunFailure>, String>;

/// Keeps a panic of one run from ending the others.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    // Everything that a run changes is its own and goes with it.
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| message(panic.as_ref()))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message_and_all_else_passes() {
        assert_eq!(caught(|| 3), Ok(3));
        let numbers: Vec<u32> = Vec::new();
        let error = caught(|| numbers[7]).expect_err("it panics");
        assert!(error.contains("the index is 7"), "{error}");
    }
}

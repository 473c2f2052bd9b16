//! What a recorded run gave: the same columns as a simulation has, and what its train steps
//! reported.

use std::collections::{BTreeMap, BTreeSet};

use headway_shared::config::Config;
use headway_shared::id::StepId;
use headway_shared::input::{Input, Operator};
use headway_shared::metrics::{Metric, Observer, Summary};
use headway_shared::source::{Reported, RunSource, SourceError, follow};
use headway_shared::time::{Span, Time};

use super::laws::{self, Laws};
use crate::drift;
use crate::scenario::Warmup;

/// What train steps report that is compared, under the name of the column that predicts it; and
/// whether a step weighs as many as its tokens.
const REPORTED: [(&str, &str, bool); 4] = [
    ("learner_rollout_step_p99", "learner_rollout_p99", false),
    ("learner_rollout_log_square", "learner_rollout_log_square", true),
    ("train_rollout_logprob_abs_diff", "train_rollout_logprob_abs_diff", true),
    ("clipped_fraction", "clipped_fraction", true),
];

/// What a step says of how many tokens it trained; the first that it says.
const TOKENS: [&str; 2] = ["learner_rollout_tokens", "trained_tokens"];

/// A number that train steps reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// The column that predicts it.
    pub metric: &'static Metric,
    /// Its mean over the steps, by their tokens where it is a mean over tokens.
    pub value: f64,
    /// What each step reported.
    pub steps: Vec<f64>,
}

/// A recorded run, from the end of its warm-up to the end of its last train step.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What tables call it.
    pub name: String,
    /// Its configuration, as it was at the beginning.
    pub config: Config,
    /// Train steps that made a version, those of the warm-up included.
    pub steps: u32,
    /// How long it took until the last of them had ended.
    pub time: Span,
    /// Its metrics.
    pub summary: Summary,
    /// What it shows of its world, by [`laws::METRICS`].
    pub laws: Vec<Option<f64>>,
    /// What its train steps reported; of a simulated run nothing.
    pub ratios: Vec<Ratio>,
    /// What is to be known of the comparison.
    pub notes: Vec<String>,
}

/// Why a run cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// It cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Its warm-up is all of it.
    #[error("the run made {steps} train steps, and the warm-up takes {}", dropped(*warmup))]
    Short {
        /// Train steps that it made.
        steps: u64,
        /// What is dropped.
        warmup: Warmup,
    },
}

fn dropped(Warmup { steps, time }: Warmup) -> String {
    match (steps, time) {
        (steps, Span::ZERO) => format!("{steps} steps"),
        (0, time) => time.to_string(),
        (steps, time) => format!("{steps} steps and {time}"),
    }
}

/// The end of a train step.
struct Last {
    at: Time,
    steps: u64,
    summary: Summary,
    laws: Vec<Option<f64>>,
}

/// Follows a run, and measures it.
///
/// What comes after its last train step is left out, as a simulation ends with its last step: a run
/// that is stopped still answers, judges, trains what is ready, and waits for a while. An operator's
/// pause that is never resumed is such an end.
///
/// # Errors
/// It cannot be read, or is over before its warm-up.
pub fn measure(source: &dyn RunSource, warmup: Warmup) -> Result<Measured, MeasureError> {
    let config = source.config().clone();
    let before = source.core()?.ledger().steps;
    let mut observer = Observer::new(&config, Span::ZERO);
    let mut laws = Laws::new(warmup);
    let mut warm = laws::is_cold_start(warmup);
    let (mut steps, mut last, mut counted) = (before, None::<Last>, BTreeSet::new());
    // The steps of a pause, which count if it is resumed.
    let (mut is_paused, mut paused) = (false, Vec::new());
    let mut notes = Vec::new();
    let end = follow(source, &mut |now, input, actions, core| {
        observer.observe(now, input, actions, core);
        laws.observe(now, input, actions, core);
        if let Input::Operator(Operator::Reconfigure(_)) = input {
            notes.push(format!("its configuration changed at {now}, which is not simulated"));
        }
        match input {
            Input::Operator(Operator::Pause) => is_paused = true,
            Input::Operator(Operator::Resume) => is_paused = false,
            _ => {}
        }
        let ended = core.ledger().steps;
        if warm
            && ended > steps
            && let Input::StepEnded { step, .. } = input
        {
            let summary = observer.summary(now, core);
            paused.push((*step, Last { at: now, steps: ended, summary, laws: laws.values() }));
        }
        if !is_paused {
            for (step, ended) in paused.drain(..) {
                counted.insert(step);
                last = Some(ended);
            }
        }
        steps = ended;
        if !warm && laws::is_warm(warmup, now, core) {
            warm = true;
            observer.reset(now, core);
        }
    })?;
    let Some(Last { at, steps, summary, laws }) = last else {
        return Err(MeasureError::Short { steps: steps - before, warmup });
    };
    let steps = u32::try_from(steps - before).unwrap_or(u32::MAX);
    let (time, after) = (at.since(Time::ZERO), end.since(at));
    if before > 0 {
        notes.push(format!("its record begins after {before} train steps"));
    }
    if after.as_secs_f64() > 3.0 * time.as_secs_f64() / f64::from(steps) {
        notes.push(format!("it went on for {after} after its last train step, which is left out"));
    }
    let mut reported = source.reported()?;
    reported.retain(|item| item.staleness.is_none() && counted.contains(&item.step));
    let (name, ratios) = (source.name(), ratios(&reported));
    Ok(Measured { name, config, steps, time, summary, laws, ratios, notes })
}

/// The means of what steps reported.
fn ratios(reported: &[Reported]) -> Vec<Ratio> {
    let of = |name: &str| -> BTreeMap<StepId, f64> {
        let named = reported.iter().filter(|item| item.name == name);
        named.map(|item| (item.step, item.value)).collect()
    };
    let tokens = TOKENS.map(of).into_iter().find(|tokens| !tokens.is_empty()).unwrap_or_default();
    let ratio = |(column, name, by_tokens): (&str, &str, bool)| {
        let metric = drift::METRICS.iter().find(|metric| metric.name == column)?;
        let steps = of(name);
        let weight = |step: &StepId| match by_tokens {
            true => tokens.get(step).copied().unwrap_or(if tokens.is_empty() { 1.0 } else { 0.0 }),
            false => 1.0,
        };
        let (sum, whole) = steps.iter().fold((0.0, 0.0), |(sum, whole), (step, value)| {
            (sum + weight(step) * value, whole + weight(step))
        });
        let value = (whole > 0.0).then(|| sum / whole)?;
        Some(Ratio { metric, value, steps: steps.into_values().collect() })
    };
    REPORTED.into_iter().filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(step: u64, name: &str, value: f64) -> Reported {
        Reported { step: StepId(step), name: name.to_owned(), staleness: None, value }
    }

    #[test]
    fn means_over_tokens_weigh_steps_by_their_tokens_and_quantiles_do_not() {
        let said = [
            reported(1, "learner_rollout_tokens", 100.0),
            reported(1, "learner_rollout_p99", 1.1),
            reported(1, "clipped_fraction", 0.0),
            reported(2, "learner_rollout_tokens", 300.0),
            reported(2, "learner_rollout_p99", 1.3),
            reported(2, "clipped_fraction", 0.2),
        ];
        let found = ratios(&said);
        let value = |name: &str| found.iter().find(|ratio| ratio.metric.name == name);
        assert!((value("clipped_fraction").unwrap().value - 0.15).abs() < 1e-12);
        let p99 = value("learner_rollout_step_p99").unwrap();
        assert!((p99.value - 1.2).abs() < 1e-12);
        assert_eq!(p99.steps, [1.1, 1.3]);
        assert_eq!(value("train_rollout_logprob_abs_diff"), None);
        assert_eq!(ratios(&[]), []);
    }
}

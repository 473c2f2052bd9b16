//! Runs a scenario and compares it with its golden, as it goes.

use headway_shared::action::Action;
use headway_shared::core::Scheduler;
use headway_shared::digest::Digest;
use headway_shared::input::Input;
use headway_shared::metrics::{Metric, Summary};
use headway_shared::record::DECISION_VERSION;
use headway_shared::time::Time;
use serde_json::{Map, Value};

use super::difference::{Difference, Divergence, How, Taken, moved};
use super::golden::{FORMAT_VERSION, Golden, Pairs};
use super::log::{BLOCK, Entry, Log, Running, Writer, batch};
use crate::report::number;
use crate::run::{RunFailure, RunOptions, RunResult, simulate};
use crate::scenario::Scenario;
use crate::stats::half_width_of_one_more;

/// How much of a run a golden holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The run is ended after so many inputs; 0: it ends by itself.
    pub max_inputs: u64,
    /// So many inputs are logged with their actions.
    pub log_inputs: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_inputs: 0, log_inputs: 40_000 }
    }
}

/// Where a run is no longer what was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    /// The first input that can be meant, and the last.
    from: u64,
    to: u64,
    how: How,
}

/// Follows a run beside the log of another.
struct Beside<'a> {
    log: &'a Log,
    /// Inputs of the other run.
    total: u64,
    running: Running,
    found: Option<Found>,
}

impl<'a> Beside<'a> {
    fn new(log: &'a Log, total: u64) -> Self {
        Self { log, total, running: Running::default(), found: None }
    }

    fn add(&mut self, at: Time, input: &Input, actions: &[Action], core: &Scheduler) {
        if self.found.is_some() {
            return;
        }
        let index = self.running.inputs;
        let batch = &batch(actions, core)[..];
        let (check, block) = self.running.add(at, input, actions, batch);
        let here = |how| Some(Found { from: index, to: index, how });
        self.found = match self.log.entry(index) {
            Some(old) if old == Entry { check, actions, batch } => None,
            Some(old) if old.check == check => here(How::Decision),
            Some(_) => here(How::World),
            None if index >= self.total => here(How::Longer),
            None => block.and_then(|check| self.compare_block(index, check)),
        };
    }

    fn compare_block(&self, last: u64, check: u32) -> Option<Found> {
        let block = last / BLOCK;
        let from = (block * BLOCK).max(self.log.inputs());
        let differs = self.log.block(block) != Some(check);
        differs.then_some(Found { from, to: last, how: How::Block })
    }

    /// The run has ended.
    fn end(self) -> Option<Found> {
        let Self { total, ref running, found, log } = self;
        let inputs = running.inputs;
        let shorter =
            (inputs < total).then_some(Found { from: inputs, to: inputs, how: How::Shorter });
        let rest = inputs > log.inputs() && !inputs.is_multiple_of(BLOCK);
        let rest = || rest.then(|| self.compare_block(inputs - 1, running.check())).flatten();
        found.or(shorter).or_else(rest)
    }
}

/// What a run gave, whether or not it could go on to its end.
fn given(run: Result<RunResult, RunFailure>) -> Option<RunResult> {
    match run {
        Ok(result) => Some(result),
        Err(RunFailure::Core { result, .. }) => Some(*result),
        // Nothing is recorded.
        Err(RunFailure::Record(_)) => None,
    }
}

/// Runs a scenario as its golden was run, and says what differs; `None`: nothing.
pub(super) fn check(scenario: &Scenario, golden: &Golden, log: &Log) -> Option<Difference> {
    let mut beside = Beside::new(log, golden.inputs);
    let mut watch = |at: Time, input: &Input, actions: &[Action], core: &Scheduler| {
        beside.add(at, input, actions, core);
    };
    let options = RunOptions {
        max_inputs: golden.max_inputs,
        watch: Some(&mut watch),
        ..RunOptions::default()
    };
    let result = given(simulate(scenario, 0, options))?;
    let found = beside.end();
    let moved = moved(golden, &result.summary);
    let digest = result.digest.to_string();
    let same = found.is_none() && digest == golden.digest && result.ended.word() == golden.ended;
    if same && moved.is_empty() {
        return None;
    }
    Some(Difference {
        divergence: found.and_then(|found| explain(scenario, log, found)),
        moved,
        inputs: (golden.inputs, result.inputs),
        digest: (golden.digest.clone(), digest),
        ended: (golden.ended.clone(), result.ended.word().to_owned()),
        seed: (golden.seed, scenario.seed),
        scenario_changed: golden.scenario_digest != scenario.digest().to_string(),
        decision_version: (golden.decision_version, DECISION_VERSION),
    })
}

/// The first `inputs` inputs of a run beside its golden, metrics left out; what differs first.
#[must_use]
pub fn beginning(
    scenario: &Scenario,
    golden: &Golden,
    log: &Log,
    inputs: u64,
) -> Option<Divergence> {
    let inputs = if golden.max_inputs > 0 { inputs.min(golden.max_inputs) } else { inputs };
    let total = golden.inputs.min(inputs);
    let mut beside = Beside::new(log, total);
    let mut watch = |at: Time, input: &Input, actions: &[Action], core: &Scheduler| {
        beside.add(at, input, actions, core);
    };
    let options =
        RunOptions { max_inputs: inputs, watch: Some(&mut watch), ..RunOptions::default() };
    given(simulate(scenario, 0, options))?;
    // The rest of a block cannot be compared: it goes on in the golden.
    let shorter = (beside.running.inputs < total).then_some(beside.running.inputs);
    let shorter = shorter.map(|at| Found { from: at, to: at, how: How::Shorter });
    explain(scenario, log, beside.found.or(shorter)?)
}

/// Runs the scenario once more, to the place of the difference, to see what was around it.
fn explain(scenario: &Scenario, log: &Log, found: Found) -> Option<Divergence> {
    let Found { from, to, how } = found;
    let mut inputs = 0;
    let mut before = None;
    let mut seen = None;
    let mut watch = |at: Time, input: &Input, actions: &[Action], core: &Scheduler| {
        if inputs == from {
            let taken = Taken { actions: actions.to_vec(), batch: batch(actions, core) };
            seen = Some((at, input.clone(), taken));
        }
        inputs += 1;
        if inputs == from {
            before = Some(core.clone());
        }
    };
    let options =
        RunOptions { max_inputs: from + 1, watch: Some(&mut watch), ..RunOptions::default() };
    given(simulate(scenario, 0, options))?;
    let core = before.unwrap_or_else(|| Scheduler::new(scenario.config.clone()));
    let met = match &seen {
        Some((at, Input::Request(request), _)) => core.deliberate(*at, request),
        _ => None,
    };
    let at = seen.as_ref().map_or(core.now(), |(at, _, _)| *at);
    let (input, new) = seen.map_or((None, Taken::default()), |(_, input, new)| (Some(input), new));
    let old = match how {
        How::Decision | How::Shorter => log
            .entry(from)
            .map(|old| Taken { actions: old.actions.to_vec(), batch: old.batch.to_vec() }),
        _ => None,
    };
    Some(Divergence { from, to, how, at, input, old, new, before: core.state(), met })
}

/// Runs a scenario for a golden, whose metrics have no noise yet.
pub(super) fn bless(scenario: &Scenario, limits: Limits) -> Option<(Golden, Log, Summary)> {
    let mut writer = Writer::new(limits.log_inputs);
    let mut watch = |at: Time, input: &Input, actions: &[Action], core: &Scheduler| {
        writer.add(at, input, actions, &batch(actions, core));
    };
    let options = RunOptions {
        max_inputs: limits.max_inputs,
        watch: Some(&mut watch),
        ..RunOptions::default()
    };
    let result = given(simulate(scenario, 0, options))?;
    let log = writer.finish();
    let pair = |(metric, value): (&Metric, _)| {
        (metric.name.to_owned(), Value::Array(vec![number::json(value), Value::Null]))
    };
    let golden = Golden {
        format: FORMAT_VERSION,
        scenario: scenario.name.clone(),
        scenario_digest: scenario.digest().to_string(),
        seed: scenario.seed,
        headway: env!("CARGO_PKG_VERSION").to_owned(),
        decision_version: DECISION_VERSION,
        max_inputs: limits.max_inputs,
        ended: result.ended.word().to_owned(),
        end_sec: result.end.as_secs_f64(),
        inputs: result.inputs,
        actions: result.actions,
        digest: result.digest.to_string(),
        log_inputs: log.inputs(),
        log_digest: Digest::of(&log.to_bytes()).to_string(),
        replications: 1,
        metrics: Pairs(result.summary.values().map(pair).collect::<Map<_, _>>()),
    };
    Some((golden, log, result.summary))
}

/// One more run of a scenario, for the noise of its metrics; `None`: it gave none.
pub(super) fn replicate(scenario: &Scenario, replication: u32, limits: Limits) -> Option<Summary> {
    let options = RunOptions { max_inputs: limits.max_inputs, ..RunOptions::default() };
    Some(given(simulate(scenario, replication, options))?.summary)
}

/// The noise of each metric over some runs: half the width of the interval in which one more run
/// lies, at 95% (Student's t); `None` of fewer than two values.
pub(super) fn noise(runs: &[Summary]) -> Vec<Option<f64>> {
    let metrics = runs.first().map_or(0, |run| run.values().count());
    let of = |place: usize| {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.values().nth(place)?.1).collect();
        half_width_of_one_more(&values, 0.95)
    };
    (0..metrics).map(of).collect()
}

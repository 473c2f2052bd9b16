//! Plans: how to split GPUs over serving replicas, judge replicas and the trainer.
//!
//! ```text
//! every split x what is tried at each ─► estimates ─► the best are simulated ─► neighbours of the
//! best, until none is better ─► front, choice ─► one more unit in each place
//! ```
//!
//! The estimate decides what is simulated first and nothing else: every number of a plan comes from
//! replicated runs, and all of them see the same random numbers.

pub mod constraint;
pub mod estimate;
pub(crate) mod front;
mod marginal;
mod option;
pub mod results;
mod search;
pub mod split;
mod verdict;

use std::ops::Range;

use headway_shared::config::Diagnostics;

use self::constraint::Constraint;
use self::estimate::{Lengths, estimate};
use self::split::{Place, Split, smallest, splits};
use crate::report::results::Kind;
use crate::report::tables::Replicated;
use crate::scenario::{Layout, Scenario};
use crate::stats::Estimate;
use crate::sweep::over::MOST_POINTS;
use crate::sweep::{Axis, Misfit, Outcome, Plan, Planned, Progress, RunError, Trouble, grid};
use crate::world::settings::StepTime;

pub use self::marginal::Gain;
pub use self::option::Candidate;
pub(crate) use self::verdict::setting;

/// Points that are simulated before the search around the best begins.
const FIRST: usize = 16;
/// Rounds of that search.
const ROUNDS: usize = 12;

/// Keys that bound staleness: synchronous layouts have no use for them.
const BOUNDS: [&str; 5] = [
    "policy_training.max_head_off_policyness",
    "policy_training.staleness_threshold",
    "policy_training.async_generation_ratio",
    "policy_training.max_lag_samples",
    "policy_training.publish_interval",
];
/// What stands in place of their values.
const NO_BOUND: &str = "-";

/// What is planned.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    /// The world, and what `[plan]` says.
    pub scenario: &'a Scenario,
    /// GPUs that there are.
    pub gpus: u32,
    /// What is tried at each split.
    pub axes: &'a [Axis],
    /// What a split must keep, beside the scenario's own constraints.
    pub constraints: &'a [Constraint],
    /// Replications of each point; two or more, or nothing has an interval.
    pub replications: u32,
    /// Simulate every split.
    pub exhaustive: bool,
    /// Threads; 0: one per core.
    pub jobs: usize,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The scenario cannot be planned.
    #[error("{0}")]
    Scenario(Diagnostics),
    /// There are too few GPUs.
    #[error("{0}")]
    TooFew(String),
    /// There are too many points.
    #[error(
        "{0} splits would be simulated, and {MOST_POINTS} are the most\n\
         help: leave --exhaustive out, or write a larger `gpus_multiple` in [plan]"
    )]
    TooMany(usize),
    /// The settings of a split do not fit the scenario.
    #[error("with {}:\n{}", .0.set.join(", "), .0.diagnostics)]
    Misfit(Box<Misfit>),
    /// The runs could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A point of a plan that was simulated.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// What it is.
    pub candidate: Candidate,
    /// Its runs, by replication.
    pub runs: Vec<(u32, Replicated)>,
    /// A run of it stalled or failed: it cannot be chosen. What happened.
    pub failed: Option<String>,
    /// Samples with a gradient, trained in an hour.
    pub effective: Option<Estimate>,
    /// The constraints that it breaks, by their places.
    pub breaks: Vec<usize>,
    /// It lies on the front of throughput against staleness.
    pub on_front: bool,
}

/// What a plan gave.
#[derive(Clone, Debug)]
pub struct Planning {
    /// Every point that was simulated, by layout, split and what was tried.
    pub options: Vec<Simulated>,
    /// The chosen one; `None`: none keeps every constraint.
    pub chosen: Option<usize>,
    /// What one more unit brings in each place, for the chosen one.
    pub gains: Vec<Gain>,
    /// All constraints.
    pub constraints: Vec<Constraint>,
    /// How many points there are.
    pub candidates: usize,
    /// Layouts that do not fit the scenario, each with the reason.
    pub left_out: Vec<(Layout, Box<Misfit>)>,
    /// What went wrong in runs, by option.
    pub trouble: Vec<Trouble>,
}

/// Plans.
///
/// # Errors
/// The scenario says too little, there are too few GPUs, or a split does not fit the scenario.
pub fn plan(task: &Task<'_>, progress: &dyn Progress) -> Result<Planning, PlanError> {
    check(task.scenario)?;
    enough(task)?;
    let (mut candidates, left_out) = candidates(task)?;
    let lengths = Lengths::of(task.scenario);
    for candidate in &mut candidates {
        candidate.estimate = Some(estimate(&candidate.planned.scenario, &lengths));
    }
    let mut search = search::Search::new(task, &candidates, progress);
    search.run()?;
    let (mut options, trouble) = search.finish();
    let constraints: Vec<Constraint> =
        task.scenario.plan.constraints.iter().chain(task.constraints).cloned().collect();
    for option in &mut options {
        option.judge(&constraints);
    }
    front::mark(&mut options);
    let chosen = front::choose(&options);
    let mut planning = Planning {
        options,
        chosen,
        gains: Vec::new(),
        constraints,
        candidates: candidates.len(),
        left_out,
        trouble,
    };
    if let Some(chosen) = chosen {
        planning.gains = marginal::gains(task, &planning.options[chosen], progress)?;
    }
    Ok(planning)
}

/// What a scenario must say before GPUs can be split.
fn check(scenario: &Scenario) -> Result<(), PlanError> {
    let refuse = |path: &str, message: &str, help: &str| {
        Err(PlanError::Scenario(scenario.error_at(path, message, help)))
    };
    if let StepTime::Time(time) = &scenario.world.trainer.step {
        let lengths = Lengths::of(scenario);
        let tokens = lengths.tokens_of_batch(scenario).max(1.0);
        let help = format!(
            "write a law instead: `base_sec = 0`, `gpus = 8` and `sec_per_token = {}`, which is \
             the mean of `step` if it was measured on 8 GPUs",
            crate::report::number::text(time.mean() * 8.0 / tokens)
        );
        let message = "a step takes this time on any number of GPUs, so that none can be planned";
        return refuse("world.trainer.step", message, &help);
    }
    if scenario.resources.judge_gpus > 0 && scenario.world.judge.quota == 0 {
        let message = "a judge replica takes GPUs, but nothing says how much it can do";
        let help = "add `quota = 16` to [world.judge]: requests that one replica serves at once";
        return refuse("world.judge.gpus_per_replica", message, help);
    }
    Ok(())
}

fn enough(task: &Task<'_>) -> Result<(), PlanError> {
    if !splits(task.scenario, task.gpus).is_empty() {
        return Ok(());
    }
    let gpus = |count: u32| if count == 1 { "1 GPU".into() } else { format!("{count} GPUs") };
    let there = gpus(task.gpus);
    Err(PlanError::TooFew(match smallest(task.scenario) {
        Some(split) => format!(
            "{there} cannot be split: the smallest plan takes {}: {}\nhelp: write --gpus {} or \
             more",
            gpus(split.used()),
            split.words(),
            split.used()
        ),
        None => format!("{there} cannot be split\nhelp: write --gpus with a larger number"),
    }))
}

type Found = (Vec<Candidate>, Vec<(Layout, Box<Misfit>)>);

/// Every split with everything that is tried at it. A shared layout that does not fit the scenario
/// is left out; where the scenario's own does not fit, that is an error.
fn candidates(task: &Task<'_>) -> Result<Found, PlanError> {
    let all = splits(task.scenario, task.gpus);
    let points =
        all.len().saturating_mul(task.axes.iter().map(|axis| axis.choices.len()).product());
    if points > MOST_POINTS && (task.exhaustive || points > 8 * MOST_POINTS) {
        return Err(PlanError::TooMany(points));
    }
    let mut found = Vec::new();
    let mut left_out: Vec<(Layout, Box<Misfit>)> = Vec::new();
    for split in all {
        if left_out.iter().any(|(layout, _)| *layout == split.layout) {
            continue;
        }
        match of_split(task, split) {
            Ok(candidates) => found.extend(candidates),
            Err(misfit) if split.layout == Layout::Disaggregated => {
                return Err(PlanError::Misfit(misfit));
            }
            Err(misfit) => left_out.push((split.layout, misfit)),
        }
    }
    match left_out.pop() {
        Some((_, misfit)) if found.is_empty() => Err(PlanError::Misfit(misfit)),
        last => {
            left_out.extend(last);
            Ok((found, left_out))
        }
    }
}

/// A split with everything that is tried at it.
fn of_split(task: &Task<'_>, split: Split) -> Result<Vec<Candidate>, Box<Misfit>> {
    let base = split.set(task.scenario);
    let bound =
        |axis: &Axis| split.layout == Layout::TimeShared && BOUNDS.contains(&axis.key.as_str());
    let axes: Vec<Axis> = task.axes.iter().filter(|axis| !bound(axis)).cloned().collect();
    let mut candidates = Vec::new();
    for choices in grid(&axes) {
        let mut labels = choices.iter().map(|choice| choice.label.clone());
        let values: Vec<String> = task
            .axes
            .iter()
            .map(
                |axis| {
                    if bound(axis) { NO_BOUND.into() } else { labels.next().unwrap_or_default() }
                },
            )
            .collect();
        let more = choices.iter().flat_map(|choice| choice.set.iter().cloned());
        let set = base.iter().cloned().chain(more).collect();
        let planned = Planned::new(task.scenario, values.clone(), set).map_err(Box::new)?;
        candidates.push(Candidate { split, values, planned, estimate: None });
    }
    Ok(candidates)
}

/// Runs points, and keeps what a plan needs of them.
fn simulate(
    task: &Task<'_>,
    points: Vec<Planned>,
    progress: &dyn Progress,
) -> Result<Outcome, PlanError> {
    let replications: Range<u32> = 0..task.replications;
    let plan = Plan::of(Kind::Run, task.scenario, Vec::new(), points, replications);
    progress.more(plan.runs());
    Ok(plan.run(task.jobs, None::<std::io::Sink>, progress)?)
}

/// Where the GPUs of a split can be added to.
const PLACES: [Place; 4] = [Place::Serving, Place::Judge, Place::Trainer, Place::Shared];

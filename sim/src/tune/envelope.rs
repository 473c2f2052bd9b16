//! What is predicted of a configuration: its means, and what its windows keep.

use std::cell::RefCell;

use headway_shared::config::{Envelope, Range};
use headway_shared::guard::{WATCHED, Windows};
use headway_shared::metrics::{Kind, METRICS, Metric, Summary};
use headway_shared::time::{Span, Time};

use super::{Candidate, Task, TuneError};
use crate::kernel::math::student_t_quantile;
use crate::report::number;
use crate::run::{RunOptions, simulate};
use crate::stats::{half_width_of_one_more, mean, variance};
use crate::sweep::{Progress, RunError, replicate};
use crate::validate::{FIGURES, Tolerance};

/// Train steps of a window where nobody says how long it is.
const STEPS: f64 = 20.0;
/// Windows that a run has at least, where nobody says how long they are.
const WINDOWS: f64 = 4.0;
/// Lengths that people would choose, in seconds.
const NICE: [u64; 14] = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200];

/// What is predicted of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// Of whole runs: a metric, its mean, and the half-width of the mean's 90% interval.
    pub means: Vec<(&'static Metric, f64, f64)>,
    /// What its windows keep.
    pub envelope: Envelope,
}

/// Runs the replications of a candidate once more, and looks at them window by window.
pub(super) fn predict(
    task: &Task<'_>,
    chosen: &Candidate,
    progress: &dyn Progress,
) -> Result<Predicted, TuneError> {
    let length = task.window.unwrap_or_else(|| length(chosen));
    progress.more(task.replications as usize);
    let work = |_: usize, replication: u32| windows(chosen, replication, length);
    let done = || progress.run_ended();
    let runs = replicate(1, 0..task.replications, task.jobs, work, done);
    let windows: Vec<Summary> =
        runs.map_err(RunError::from)?.into_iter().flatten().flatten().collect();
    if windows.len() < 2 {
        return Err(TuneError::Window(length));
    }
    let age = mean_of("age_seconds_mean", &windows).unwrap_or(0.0);
    let watched =
        WATCHED.iter().filter_map(|name| METRICS.iter().find(|metric| metric.name == *name));
    let ranges = watched
        .filter_map(|metric| {
            let values: Vec<f64> =
                windows.iter().filter_map(|window| window.get(metric.name)).collect();
            Some((metric, range(metric, &values, age)?))
        })
        .collect();
    Ok(Predicted { means: means(task, chosen), envelope: Envelope { window: length, ranges } })
}

/// The windows of a run that lie after its warm-up.
fn windows(chosen: &Candidate, replication: u32, length: Span) -> Vec<Summary> {
    let scenario = &chosen.planned.scenario;
    let warmup = scenario.warmup;
    let state = RefCell::new((Windows::new(&scenario.config, length), false, Vec::new()));
    let mut watch = |now: Time, input: &_, actions: &[_], core: &_| {
        let (windows, warm, found) = &mut *state.borrow_mut();
        let ended = windows.observe(now, input, actions, core);
        let core: &headway_shared::core::Scheduler = core;
        if *warm {
            found.extend(ended);
        } else if core.ledger().steps >= u64::from(warmup.steps)
            && now.since(Time::ZERO) >= warmup.time
        {
            *warm = true;
            windows.restart(now, core);
        }
    };
    let options = RunOptions { watch: Some(&mut watch), ..RunOptions::default() };
    // It has run to its end before, with the same random numbers.
    let _ = simulate(scenario, replication, options);
    state.into_inner().2
}

/// As long as [`STEPS`] train steps take, or as a quarter of a run where that is less, in a number
/// that people would choose.
fn length(chosen: &Candidate) -> Span {
    let of = |metric: &str| chosen.metric(metric).map(|estimate| estimate.mean);
    let run = of("duration_seconds").unwrap_or(0.0);
    let step = of("steps_per_hour").filter(|steps| *steps > 0.0).map(|steps| 3600.0 / steps);
    let most = run / WINDOWS;
    let wanted = step.map_or(most, |step| (STEPS * step).min(most));
    let fits = |seconds: &&u64| **seconds as f64 <= wanted * 1.25;
    let nice = NICE.iter().rev().find(fits);
    nice.map_or_else(
        || Span::from_secs_f64(wanted).unwrap_or(Span::ZERO).max(Span::from_millis(1)),
        |seconds| Span::from_secs(*seconds),
    )
}

/// The mean of a metric over the windows in which it is defined.
fn mean_of(metric: &str, windows: &[Summary]) -> Option<f64> {
    mean(&windows.iter().filter_map(|window| window.get(metric)).collect::<Vec<_>>())
}

/// The 99% prediction interval of one window more, no narrower than what was seen, widened by how
/// far the world may be from the real one, and within what the metric can be; `None` of fewer than
/// two windows in which it is defined. `age` is the mean age of a sample, in seconds.
fn range(metric: &Metric, values: &[f64], age: f64) -> Option<Range> {
    let (middle, half) = (mean(values)?, half_width_of_one_more(values, COVERAGE)?);
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let allowed = allowance(metric, middle, age);
    let most = if metric.kind == Kind::Share { 1.0 } else { f64::INFINITY };
    let low = ((middle - half).min(lowest) - allowed).max(0.0);
    let high = ((middle + half).max(highest) + allowed).min(most);
    Some(Range { low: down(low), high: up(high) })
}

/// How far a prediction may be off although its world is well fitted: what `headway validate`
/// tolerates. It judges no seconds, shares of idle time and percentiles: of a part of a sample's age
/// a quarter, or a twentieth of the age, so that a part that hardly counts is not judged finely; of a
/// share a twentieth; of a percentile in versions, a whole number, the next one.
fn allowance(metric: &Metric, middle: f64, age: f64) -> f64 {
    let figure = FIGURES.iter().find(|figure| figure.name == metric.name);
    match (figure.map(|figure| figure.tolerance), metric.kind) {
        (Some(Tolerance::Relative(share)), _) => share * middle,
        (Some(Tolerance::Absolute(most)), _) => most,
        (_, Kind::Share) => 0.05,
        (_, Kind::Quantile) if metric.unit == "versions" => 1.0,
        _ if metric.unit == "s" => (0.25 * middle).max(0.05 * age),
        _ => 0.0,
    }
}

/// Of the interval of one window more.
const COVERAGE: f64 = 0.99;

/// A digit in the sixth place, by which rounding may have moved a number of six.
const DIGIT: f64 = 1e-5;

/// Rounded for people to read, never into the range.
fn down(value: f64) -> f64 {
    let round_down = round(value);
    if round_down <= value { round_down } else { round(value - DIGIT * value.abs()) }
}

fn up(value: f64) -> f64 {
    let round_up = round(value);
    if round_up >= value { round_up } else { round(value + DIGIT * value.abs()) }
}

fn round(value: f64) -> f64 {
    number::parse(&number::text(value)).unwrap_or(value)
}

/// The means of whole runs: what the aim is about, and what a guard watches.
fn means(task: &Task<'_>, chosen: &Candidate) -> Vec<(&'static Metric, f64, f64)> {
    let about = task.aim.metrics();
    let wanted = |metric: &&Metric| about.contains(&metric.name) || WATCHED.contains(&metric.name);
    let mean = |metric: &'static Metric| {
        let found = chosen.metric(metric.name)?;
        let values: Vec<f64> =
            chosen.values_of(metric.name, usize::MAX).into_iter().flatten().collect();
        let spread = variance(&values)? / f64::from(found.count);
        let half_width = student_t_quantile(0.95, found.count - 1) * spread.sqrt();
        Some((metric, round(found.mean), round(half_width)))
    };
    METRICS.iter().filter(wanted).filter_map(mean).collect()
}

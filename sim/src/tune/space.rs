//! What is searched: the keys that decide, each with values around the present one.

use headway_shared::config::keys::{keys, spelled_out};
use headway_shared::config::{Bound, Choice as _, Config, Diagnostics, GateKind, SyncMode};

use crate::plan::estimate::Lengths;
use crate::report::number;
use crate::scenario::{Loads, Scenario};
use crate::sweep::{Axis, over};

/// A point of the space: the place of a choice for each axis.
pub(super) type Spot = Vec<usize>;

/// The axes of `expressions`, each `KEY=VALUES`; of the default space where there are none.
///
/// # Errors
/// An expression is malformed or names no scheduling key, each with its place.
pub fn axes(scenario: &Scenario, expressions: &[String]) -> Result<Vec<Axis>, Diagnostics> {
    match expressions {
        [] => over::parse_space(&default_space(scenario)),
        given => over::parse_space(given),
    }
}

/// An axis as it is written after `--space`.
#[must_use]
pub fn expression(axis: &Axis) -> String {
    let values: Vec<&str> = axis
        .choices
        .iter()
        .flat_map(|choice| &choice.set)
        .filter_map(|set| Some(set.split_once('=')?.1))
        .collect();
    format!("{}={}", axis.key, values.join(","))
}

/// The default space: the gate's bound, what it binds, how often and how weights are published, the
/// room of the queues, votes at once, and how long a batch is waited for. What has no effect under
/// the scenario's gate, or in its world, is left out.
#[must_use]
pub fn default_space(scenario: &Scenario) -> Vec<String> {
    let Scenario { config, world, .. } = scenario;
    let (training, gate) = (&config.policy_training, config.policy_training.gate);
    let loads = Loads { config, world };
    let mut space: Vec<String> = the_bound(config).into_iter().collect();
    if matches!(gate, GateKind::Headway | GateKind::Skyrl) {
        space.push(axis("policy_training.bound", Bound::ALL.iter().map(|(word, _)| *word)));
    }
    if !matches!(gate, GateKind::Sync | GateKind::OneStepOff) {
        let intervals = around(training.publish_interval, [1, 2, 4]);
        space.push(axis("policy_training.publish_interval", intervals));
    }
    let mode = config.policy_serving.sync_mode;
    // One replica at a time is all of them where there is one.
    let rolls = world.replicas_ever() > 1 || mode == SyncMode::Rolling;
    let modes = SyncMode::ALL.iter().filter(|(_, mode)| rolls || *mode != SyncMode::Rolling);
    space.push(axis("policy_serving.sync_mode", modes.map(|(word, _)| *word)));
    space.extend(queues(config));
    if loads.vote_sec() > 0.0 {
        let votes = config.reward_judging.judge_concurrency;
        let values = around(votes, [(votes / 2).max(1), votes.saturating_mul(2)]);
        space.push(axis("reward_judging.judge_concurrency", values));
    }
    let step = loads.step_sec(Lengths::of(scenario).tokens_of_batch(scenario));
    space.push(axis("policy_training.max_batch_wait_sec", waits(config, step)));
    space
}

fn axis(key: &str, values: impl IntoIterator<Item = impl ToString>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    format!("{key}={}", values.join(","))
}

/// These numbers and the present one, in order.
fn around<const N: usize>(present: u32, values: [u32; N]) -> Vec<u32> {
    let mut values: Vec<u32> = values.into_iter().chain([present]).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// The key by which the gate is told how stale samples may become; `None` where its own rule says
/// it, or nothing does.
fn the_bound(config: &Config) -> Option<String> {
    let training = &config.policy_training;
    let batch = u32::try_from(config.samples_per_batch()).unwrap_or(u32::MAX);
    let ratio = |present: u32, values: [f64; 5]| {
        let mut values: Vec<f64> = values.into_iter().chain([f64::from(present) / 1e6]).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values.into_iter().map(number::text).collect::<Vec<_>>()
    };
    match training.gate {
        GateKind::Headway
        | GateKind::Areal
        | GateKind::Skyrl
        | GateKind::PrimeRl
        | GateKind::NemoRlWindow => {
            let eta = training.max_head_off_policyness;
            let mut values = around(eta, [0, 1, 2, 4, 8]);
            if eta >= 8 {
                values = around(eta, [0, 1, 2, 4, 8, eta / 2, eta.saturating_mul(2)]);
            }
            Some(axis("policy_training.max_head_off_policyness", values))
        }
        GateKind::Verl => {
            let values = ratio(training.staleness_threshold, [0.0, 0.25, 0.5, 1.0, 2.0]);
            Some(axis("policy_training.staleness_threshold", values))
        }
        GateKind::Roll => {
            let values = ratio(training.async_generation_ratio, [0.0, 0.5, 1.0, 2.0, 4.0]);
            Some(axis("policy_training.async_generation_ratio", values))
        }
        GateKind::PipelineRl => {
            let batches = [0, 1, 2, 4].map(|batches| batch.saturating_mul(batches));
            let values = around(training.max_lag_samples, batches);
            Some(axis("policy_training.max_lag_samples", values))
        }
        GateKind::Sync
        | GateKind::OneStepOff
        | GateKind::SlimeTrainAsync
        | GateKind::Openclaw
        | GateKind::None => None,
    }
}

/// Room for one batch, for all that the bound gives places to, and as it is.
fn queues(config: &Config) -> Vec<String> {
    let batch = config.samples_per_batch();
    let places = batch.saturating_mul(u64::from(config.bound_versions()) + 1);
    let room = |samples: u64| u32::try_from(samples).unwrap_or(u32::MAX);
    let values = |present: u32| around(present, [room(batch), room(places)]);
    let (rollout, output) = (config.queue.rollout.max_size, config.queue.output.max_size);
    if rollout == output {
        return vec![axis("queue.max_size", values(output))];
    }
    let one = [("queue.rollout.max_size", rollout), ("queue.output.max_size", output)];
    one.map(|(key, present)| axis(key, values(present))).to_vec()
}

/// For ever, as long as a step takes, four times as long, and as it is.
fn waits(config: &Config, step_sec: f64) -> Vec<String> {
    let present = config.policy_training.max_batch_wait.as_secs_f64();
    let mut values = vec![0.0, present];
    if step_sec.is_finite() && step_sec > 0.0 {
        values.extend([1.0, 4.0].map(|steps| rounded(steps * step_sec)));
    }
    values.sort_by(f64::total_cmp);
    values.dedup();
    values.into_iter().map(number::text).collect()
}

/// Two significant digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.1e}").parse().unwrap_or(value)
}

/// The point where the scenario is now, and whether it is exactly there: for each axis the choice
/// that changes nothing, else the one whose number is nearest to the present one, else the first.
pub(super) fn present(scenario: &Scenario, axes: &[Axis]) -> (Spot, bool) {
    let mut exact = true;
    let place = |axis: &Axis| {
        let same = |set: &[String]| {
            scenario.with_sets(set).is_ok_and(|(with, _)| with.config == scenario.config)
        };
        if let Some(place) = axis.choices.iter().position(|choice| same(&choice.set)) {
            return place;
        }
        exact = false;
        nearest(scenario, axis).unwrap_or(0)
    };
    let spot = axes.iter().map(place).collect();
    (spot, exact)
}

fn nearest(scenario: &Scenario, axis: &Axis) -> Option<usize> {
    let now = number::parse(&value_of(&scenario.config, &axis.key))?;
    let far = |label: &str| number::parse(label).map(|value| (value - now).abs());
    let distances = axis.choices.iter().enumerate();
    let distances = distances.filter_map(|(place, choice)| Some((place, far(&choice.label)?)));
    distances.reduce(|best, next| if next.1 < best.1 { next } else { best }).map(|(place, _)| place)
}

/// What a configuration has for a key, as a table shows it; empty where the key is absent.
pub(super) fn value_of(config: &Config, path: &str) -> String {
    let path = spelled_out(path).into_iter().next().unwrap_or(path);
    let key = keys().iter().find(|key| key.path() == path);
    let value = key.and_then(|key| key.describe(config).value).unwrap_or_default();
    value.trim_matches('"').to_owned()
}

/// Whether the values of an axis are numbers, so that those beside one are its neighbours.
pub(super) fn is_ordered(axis: &Axis) -> bool {
    axis.choices.iter().all(|choice| number::parse(&choice.label).is_some())
}

/// How many points there are.
pub(super) fn size(axes: &[Axis]) -> u64 {
    axes.iter().fold(1, |size: u64, axis| size.saturating_mul(axis.choices.len() as u64))
}

//! What the page is told.

use std::path::Path;

use headway_shared::core::QueueState;
use serde_json::{Map, Value, json};

use super::super::admin;
use super::refusals::{Refusals, refused};
use crate::driver::{Look, Status, StepSummary};
use crate::store;

/// So many steps of the record are shown.
const MOST_STEPS: u32 = 512;
/// The metrics that the page shows.
const METRICS: [&str; 12] = [
    "serving_idle_share",
    "judge_idle_share",
    "trainer_idle_share",
    "generated_tokens_per_second",
    "trained_samples_per_hour",
    "steps_per_hour",
    "staleness_head_mean",
    "staleness_head_p95",
    "staleness_head_max",
    "age_seconds_mean",
    "publish_lag_mean",
    "closed_share",
];

/// The steps of the record, and the number of the last.
pub(super) fn history(record: &Path) -> (Value, Option<u64>) {
    // A record that cannot be read now shows no history; the run says what is wrong with it.
    let steps = store::past_steps(record, MOST_STEPS).unwrap_or_default();
    let last = steps.last().map(|step| step.step);
    let steps = steps.iter().map(|step| {
        json!({
            "step": step.step,
            "time_sec": step.at.as_secs_f64(),
            "learner_version": step.version,
            "samples": step.samples,
            "staleness_head_mean": step.staleness_mean,
            "staleness_head_max": step.staleness_max,
            "reward_mean": step.reward_mean,
        })
    });
    (json!({"steps": steps.collect::<Vec<_>>()}), last)
}

/// The run now; of its steps, those after `seen`, which are seen then.
pub(super) fn of(
    status: &Status,
    look: &Look,
    refusals: &Refusals,
    seen: &mut Option<u64>,
) -> Value {
    let Look { summary, state, steps } = look;
    let new: Vec<&StepSummary> =
        steps.iter().filter(|step| step.ok && seen.is_none_or(|seen| step.step.0 > seen)).collect();
    let steps: Vec<Value> = new.iter().map(|step| admin::step(step)).collect();
    *seen = new.last().map(|step| step.step.0).or(*seen);
    let metric = |name: &&str| ((*name).to_owned(), json!(summary.get(name)));
    let metrics: Map<String, Value> = METRICS.iter().map(metric).collect();
    let replicas = state.replicas.iter().map(|replica| {
        json!({
            "replica": replica.replica.0,
            "version": replica.deploy.number(),
            "up": replica.up,
            "open": replica.open,
            "syncing": replica.syncing,
            "running": replica.running,
        })
    });
    json!({
        "state": admin::state_of(status),
        "paused": state.paused,
        "replicas": replicas.collect::<Vec<_>>(),
        "environments": state.environments,
        "votes_max": state.max_votes,
        "rollout_queue": queue(&state.rollout_queue),
        "output_queue": queue(&state.output_queue),
        "in_step": state.in_step,
        "refused": {"429": refused(status, 429), "503": refused(status, 503)},
        "refusals": refusals.shown(status),
        "admitted": status.ledger.admitted,
        "trained": status.ledger.trained,
        "discarded": status.ledger.discarded_total(),
        "steps_total": status.ledger.steps,
        "metrics": metrics,
        "staleness": summary.staleness().iter().map(|(value, count)| json!([value, count])).collect::<Vec<_>>(),
        "steps": steps,
    })
}

fn queue(queue: &QueueState) -> Value {
    json!({"samples": queue.samples, "max_size": queue.max_size})
}

//! What an operator sees and does. Off unless a token is set.

mod config;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use headway_shared::action::{Discard, OperatorReply, Refusal};
use headway_shared::core::{Ledger, SampleState};
use headway_shared::guard::{Found, Reading, Report};
use headway_shared::input::Operator;
use serde_json::{Map, Value, json};

use super::Gate;
use super::error::ApiError;
use crate::driver::{LOGPROB_DIFF, Status, StepSummary};

pub(super) use config::{config, reconfigure};

type Answer = Result<Json<Value>, ApiError>;

/// `GET /admin/state`
pub(super) async fn state(State(gate): State<Arc<Gate>>, headers: HeaderMap) -> Answer {
    gate.admit_operator(&headers)?;
    Ok(Json(state_of(&gate.driver.status())))
}

/// How the run is.
pub(super) fn state_of(status: &Status) -> Value {
    let gauges = status.gauges;
    json!({
        "time_sec": status.now.as_secs_f64(),
        "learner_version": status.learner.number(),
        "inputs": status.inputs,
        "committed": status.committed,
        "publication_wished": status.publication_wished,
        "waits_for": status.waits_for,
        "error": status.error,
        "ending": status.ending,
        "closed": gauges.closed,
        "training": gauges.training,
        "running": gauges.running,
        "held": gauges.held,
        "rollout_queue": gauges.rollout_queue,
        "output_queue": gauges.output_queue,
        "votes": gauges.votes,
        "outstanding": gauges.outstanding,
        "parked": gauges.parked,
        "replicas_up": gauges.replicas_up,
        "replicas_busy": gauges.replicas_busy,
        "publish_lag_sum": gauges.publish_lag_sum,
        "bound": gauges.bound,
        "bound_last_move": status.bound_move.map(|moved| json!({
            "learner_version": moved.at.number(),
            "from": moved.from,
            "to": moved.to,
            "signal": f64::from(moved.signal) / 1e6,
        })),
        "strays": status.strays,
        "guard": status.guard.as_deref().map(guard),
        "kept": {
            "turns": status.kept.turns,
            "requests": status.kept.requests,
            "samples": status.kept.samples,
            "awaiting": status.kept.awaiting,
            "votes": status.kept.votes,
            "sessions": status.kept.sessions,
            "effects": status.kept.effects,
            "rows": status.kept.rows,
        },
    })
}

fn guard(found: &Found) -> Value {
    let Found { judged, outside, deviations, deviating, last, deviation, rolled_back } = found;
    json!({
        "windows": judged,
        "windows_outside": outside,
        "deviations": deviations,
        "deviating": deviating,
        "rolled_back": rolled_back,
        "last": last.as_ref().map(window),
        "deviation": deviation.as_ref().map(window),
    })
}

fn window(report: &Report) -> Value {
    let readings = report.readings.iter().map(|reading| {
        let Reading { metric, value, range, outside } = reading;
        json!({
            "metric": metric.name,
            "value": value,
            "low": range.low,
            "high": range.high,
            "windows_outside": outside,
        })
    });
    json!({
        "time_sec": report.at.as_secs_f64(),
        "verdict": report.verdict.word(),
        "readings": readings.collect::<Vec<_>>(),
    })
}

/// `GET /admin/ledger`
pub(super) async fn ledger(State(gate): State<Arc<Gate>>, headers: HeaderMap) -> Answer {
    gate.admit_operator(&headers)?;
    let ledger = gate.driver.status().ledger;
    Ok(Json(json!({
        "offered": ledger.offered,
        "admitted": ledger.admitted,
        "refused": refused(&ledger),
        "held": ledger.held,
        "left_while_held": ledger.left_while_held,
        "served_only": ledger.served_only,
        "side_offered": ledger.side_offered,
        "side_refused": ledger.side_refused,
        "trained": ledger.trained,
        "trained_above_bound": ledger.trained_above_bound,
        "bound_raised": ledger.bound_raised,
        "bound_lowered": ledger.bound_lowered,
        "discarded": discarded(&ledger),
        "in_state": in_state(&ledger),
        "outstanding": ledger.outstanding(),
        "parked": ledger.parked(),
        "ignored": ledger.ignored,
        "steps": ledger.steps,
        "short_steps": ledger.short_steps,
        "failed_steps": ledger.failed_steps,
        "publications": ledger.publications,
        "failed_publications": ledger.failed_publications,
        "votes": ledger.votes,
    })))
}

/// `POST /admin/pause`
pub(super) async fn pause(State(gate): State<Arc<Gate>>, headers: HeaderMap) -> Answer {
    operate(&gate, &headers, Operator::Pause).await
}

/// `POST /admin/resume`
pub(super) async fn resume(State(gate): State<Arc<Gate>>, headers: HeaderMap) -> Answer {
    operate(&gate, &headers, Operator::Resume).await
}

/// `POST /admin/publish`
pub(super) async fn publish(State(gate): State<Arc<Gate>>, headers: HeaderMap) -> Answer {
    operate(&gate, &headers, Operator::Publish).await
}

/// `GET /admin/steps`
pub(super) async fn steps(State(gate): State<Arc<Gate>>, headers: HeaderMap) -> Answer {
    gate.admit_operator(&headers)?;
    let steps = gate.driver.steps().await.ok_or_else(ApiError::ending)?;
    Ok(Json(json!({"steps": steps.iter().map(step).collect::<Vec<_>>()})))
}

/// A finished attempt of a step.
pub(super) fn step(step: &StepSummary) -> Value {
    json!({
        "step": step.step.0,
        "time_sec": step.at.as_secs_f64(),
        "ok": step.ok,
        "learner_version": step.version,
        "samples": step.samples,
        "staleness_head_mean": step.staleness_mean,
        "staleness_head_max": step.staleness_max,
        "reward_mean": step.reward_mean,
        LOGPROB_DIFF: step.logprob_diff,
    })
}

async fn operate(gate: &Gate, headers: &HeaderMap, operator: Operator) -> Answer {
    gate.admit_operator(headers)?;
    match gate.driver.operate(operator).await {
        Some(OperatorReply::Done) => Ok(Json(json!({"ok": true}))),
        Some(OperatorReply::Rejected) => Err(ApiError::bad_request("the core rejects this")),
        None => Err(ApiError::ending()),
    }
}

/// Refused main requests by reason.
pub(super) fn refused(ledger: &Ledger) -> Map<String, Value> {
    let count = |reason: &Refusal| json!(ledger.refused[reason.index()]);
    Refusal::ALL.iter().map(|reason| (reason.name().to_owned(), count(reason))).collect()
}

/// Discarded samples by reason.
pub(super) fn discarded(ledger: &Ledger) -> Map<String, Value> {
    let count = |reason: &Discard| json!(ledger.discarded[reason.index()]);
    Discard::ALL.iter().map(|reason| (reason.name().to_owned(), count(reason))).collect()
}

fn in_state(ledger: &Ledger) -> Map<String, Value> {
    let name = |state: &SampleState| match serde_json::to_value(state) {
        Ok(Value::String(name)) => name,
        _ => format!("{state:?}"),
    };
    let count = |state: &SampleState| json!(ledger.in_state[*state as usize]);
    SampleState::ALL.iter().map(|state| (name(state), count(state))).collect()
}

//! The API of an external trainer: it pulls a batch, reports the step, and says where its weights
//! are.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use headway_shared::time::Span;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Gate;
use super::error::ApiError;
use crate::trainer::StepMetric;
use crate::trainer::external::{Pull, Report, Written};

/// The longest that a pull waits, so that proxies in between do not cut it.
const LONGEST_WAIT_SEC: f64 = 60.0;
/// The most numbers of one report.
const MOST_METRICS: usize = 256;
/// The longest name of a trainer or a number.
const LONGEST_NAME: usize = 128;

type Body = Result<Bytes, BytesRejection>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PullBody {
    trainer: String,
    version: Option<u32>,
    #[serde(default)]
    wait_sec: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeartbeatBody {
    lease: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportBody {
    version: u32,
    batch: String,
    lease: Option<String>,
    #[serde(default = "yes")]
    ok: bool,
    #[serde(default)]
    metrics: BTreeMap<String, f64>,
    weights: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightsBody {
    version: u32,
    path: Option<String>,
}

const fn yes() -> bool {
    true
}

fn read<T: DeserializeOwned>(body: Body) -> Result<T, ApiError> {
    let bytes = body.map_err(|error| ApiError::body(error.status(), &error.body_text()))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| ApiError::bad_request(&format!("the body is wrong: {error}")))
}

/// `POST /trainer/pull`
pub(super) async fn pull(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let desk = gate.admit_trainer(&headers)?;
    let PullBody { trainer, version, wait_sec } = read(body)?;
    if trainer.is_empty() || trainer.len() > LONGEST_NAME {
        return Err(ApiError::bad_request("trainer must be a name of 1 to 128 bytes"));
    }
    if !(0.0..=LONGEST_WAIT_SEC).contains(&wait_sec) {
        return Err(ApiError::bad_request("wait_sec must be between 0 and 60"));
    }
    let wait = Span::from_nanos((wait_sec * 1e9) as u64);
    let task = desk.pull(Pull { trainer, version, wait }).await;
    Ok(match task.map_err(|denied| ApiError::denied(&denied))? {
        Some(task) => {
            ([(header::CONTENT_TYPE, "application/json")], task.to_string()).into_response()
        }
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// `POST /trainer/heartbeat`
pub(super) async fn heartbeat(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let desk = gate.admit_trainer(&headers)?;
    let HeartbeatBody { lease } = read(body)?;
    let span = desk.extend(lease).await.map_err(|denied| ApiError::denied(&denied))?;
    Ok(Json(json!({"lease_sec": span.as_secs_f64()})))
}

/// `POST /trainer/report`
pub(super) async fn report(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let desk = gate.admit_trainer(&headers)?;
    let ReportBody { version, batch, lease, ok, metrics, weights } = read(body)?;
    let name_fits = |name: &String| !name.is_empty() && name.len() <= LONGEST_NAME;
    if metrics.len() > MOST_METRICS || !metrics.keys().all(name_fits) {
        return Err(ApiError::bad_request("metrics must be up to 256 numbers with short names"));
    }
    let metrics = metrics
        .into_iter()
        .map(|(name, value)| StepMetric { name: name.into(), staleness: None, value })
        .collect();
    let weights = weights.map(path).transpose()?;
    let report = Report { version, batch, lease, ok, metrics, weights };
    let counted = desk.report(report).await.map_err(|denied| ApiError::denied(&denied))?;
    let version = if ok { version.saturating_add(1) } else { version };
    Ok(Json(json!({"counted": counted, "version": version})))
}

/// `POST /trainer/weights`
pub(super) async fn weights(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let desk = gate.admit_trainer(&headers)?;
    let WeightsBody { version, path: given } = read(body)?;
    let written = Written { version, path: given.map(path).transpose()? };
    let published = desk.written(written).await.map_err(|denied| ApiError::denied(&denied))?;
    Ok(Json(json!({"published": published})))
}

/// `GET /trainer/state`
pub(super) async fn state(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    let desk = gate.admit_trainer(&headers)?;
    let standing = desk.standing().await.map_err(|denied| ApiError::denied(&denied))?;
    let weights = standing.weights.map(|(version, path)| json!({"version": version, "path": path}));
    let lease = standing.leased.map(|(lease, trainer)| json!({"lease": lease, "trainer": trainer}));
    Ok(Json(json!({
        "version": standing.version,
        "weights": weights,
        "step": standing.step,
        "leased": lease,
    })))
}

/// A directory that engines on other machines and in other folders find, too.
fn path(given: String) -> Result<String, ApiError> {
    if given.starts_with('/') {
        Ok(given)
    } else {
        Err(ApiError::bad_request(
            "the directory of weights must be given from the root, as the engines see it",
        ))
    }
}

/// Adds these paths to the description of the gateway.
pub(super) fn describe(description: &mut Value) {
    let response = |about: &str| json!({"description": about});
    let call = |about: &str, fields: Value, required: &[&str], ok: &str| {
        json!({"post": {
            "summary": about,
            "security": [{"trainer_token": []}],
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "object", "properties": fields, "required": required,
                "additionalProperties": false,
            }}}},
            "responses": {
                "200": response(ok),
                "400": response("The request is wrong."),
                "401": response("No token, or a wrong one."),
                "409": response("Not so any more: the message says why, and what to do."),
            },
        }})
    };
    let (text, number, whole) =
        (json!({"type": "string"}), json!({"type": "number"}), json!({"type": "integer"}));
    let mut pull = call(
        "Something to do: a step to train, or weights to write.",
        json!({"trainer": text, "version": whole, "wait_sec": number}),
        &["trainer"],
        "A task, leased for lease_sec.",
    );
    pull["post"]["responses"]["204"] = response("Nothing within wait_sec.");
    let paths = &mut description["paths"];
    paths["/trainer/pull"] = pull;
    paths["/trainer/heartbeat"] =
        call("More time for a lease.", json!({"lease": text}), &["lease"], "The lease goes on.");
    paths["/trainer/report"] = call(
        "A step has ended. The same batch counts once, however often it is reported.",
        json!({
            "version": whole, "batch": text, "lease": text, "ok": {"type": "boolean"},
            "metrics": {"type": "object", "additionalProperties": number}, "weights": text,
        }),
        &["version", "batch"],
        "It is kept; counted is false where it was known.",
    );
    paths["/trainer/weights"] = call(
        "Weights are written; without a path, they could not be.",
        json!({"version": whole, "path": text}),
        &["version"],
        "It is kept; published is false where nobody waits for them.",
    );
    paths["/trainer/state"] = json!({"get": {
        "summary": "The version that training has reached, and where the newest weights are.",
        "security": [{"trainer_token": []}],
        "responses": {"200": response("Done."), "401": response("No token, or a wrong one.")},
    }});
    description["components"]["securitySchemes"]["trainer_token"] =
        json!({"type": "http", "scheme": "bearer"});
}

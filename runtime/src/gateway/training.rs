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

//! A server that speaks SGLang's protocol, as `docs/engines.md` has it, with its quirks: a flush is
//! refused while anything runs, `rid` aborts everything that begins with it, an abort answers 200
//! with what there is, a pause holds new requests, a failed load keeps the old weights and their
//! label. It dies with all its connections, and comes back on the same port without a label.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_core::Stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::scripted::{Life, remember};

type Shared = super::scripted::Shared<Inner>;

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trouble {
    #[default]
    None,
    /// Loads are refused, whole.
    BadCheckpoint,
    /// Loads never end.
    HungLoad,
    /// Loads say that they worked, and did nothing.
    SilentLoad,
    /// Pieces carry no label.
    NoLabel,
    /// A log-probability is missing.
    ShortLogprobs,
    /// Pieces are no JSON.
    Garbage,
}

#[derive(Default)]
struct Inner {
    label: String,
    model: String,
    paused: Option<String>,
    running: BTreeMap<String, usize>,
    aborted: BTreeSet<String>,
    /// So many tokens of each turn may be generated, then none; `None`: no limit.
    limit: Option<usize>,
    incremental: bool,
    strangers: usize,
    trouble: Trouble,
}

/// The server.
pub(crate) struct SglangServer {
    shared: Arc<Shared>,
    life: Life,
}

impl SglangServer {
    /// A server of the model in a directory.
    pub(crate) fn start(
        model: &Path,
        answer: impl Fn(&[u32]) -> Vec<u32> + Send + Sync + 'static,
    ) -> Self {
        let inner = Inner { model: model.display().to_string(), ..Inner::default() };
        let shared = Shared::new(inner, Box::new(answer));
        let mut server = Self { shared, life: Life::new() };
        server.revive();
        server
    }

    pub(crate) fn url(&self) -> String {
        self.life.url()
    }

    /// It dies with everything that runs on it.
    pub(crate) fn die(&mut self) {
        self.life.die();
    }

    /// It starts, again with its first weights and without a label.
    pub(crate) fn revive(&mut self) {
        self.die();
        self.shared.change(|inner| {
            inner.label = "default".to_owned();
            inner.paused = None;
            inner.running.clear();
            inner.aborted.clear();
        });
        self.life.begin(router(self.shared.clone()));
    }

    /// Generates nothing after so many tokens of each turn; `None`: no limit.
    pub(crate) fn limit(&self, limit: Option<usize>) {
        self.shared.change(|inner| inner.limit = limit);
    }

    /// Pieces hold the new tokens alone.
    pub(crate) fn incremental(&self) {
        self.shared.change(|inner| inner.incremental = true);
    }

    pub(crate) fn trouble(&self, trouble: Trouble) {
        self.shared.change(|inner| inner.trouble = trouble);
    }

    /// Somebody else's turn runs, until the guard is dropped.
    pub(crate) fn occupy(&self) -> Occupied {
        self.shared.change(|inner| inner.strangers += 1);
        Occupied(self.shared.clone())
    }

    pub(crate) fn set_label(&self, label: &str) {
        self.shared.change(|inner| inner.label = label.to_owned());
    }

    pub(crate) fn label(&self) -> String {
        self.shared.change(|inner| inner.label.clone())
    }

    /// Waits until so many turns have so many tokens.
    pub(crate) async fn until_generated(&self, turns: usize, tokens: usize) {
        let has = |inner: &mut Inner| {
            let running: Vec<usize> = inner.running.values().copied().collect();
            (running.len() == turns && running.iter().all(|&n| n >= tokens)).then_some(())
        };
        self.shared.until(has).await;
    }

    /// The calls of a path, in order.
    pub(crate) fn calls(&self, path: &str) -> Vec<Value> {
        self.shared.calls(path)
    }

    /// Waits for the n-th call of a path.
    pub(crate) async fn until_called(&self, path: &str, times: usize) {
        self.shared.until_called(path, times).await;
    }
}

/// See [`SglangServer::occupy`].
pub(crate) struct Occupied(Arc<Shared>);

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.change(|inner| inner.strangers -= 1);
    }
}

type Server = State<Arc<Shared>>;

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/health", get(async || StatusCode::OK))
        .route("/get_model_info", get(model))
        .route("/get_weight_version", get(version))
        .route("/update_weight_version", post(set_version))
        .route("/v1/chat/completions", post(judge))
        .route("/generate", post(generate))
        .route("/abort_request", post(abort))
        .route("/pause_generation", post(pause))
        .route("/continue_generation", post(go_on))
        .route("/flush_cache", get(flush))
        .route("/update_weights_from_disk", post(load))
        .layer(from_fn_with_state(shared.clone(), remember))
        .with_state(shared)
}

async fn model(State(shared): Server) -> Json<Value> {
    Json(shared.change(|inner| json!({"model_path": inner.model, "is_generation": true})))
}

async fn version(State(shared): Server) -> Json<Value> {
    Json(shared.change(|inner| json!({"weight_version": inner.label})))
}

/// The same endpoint judges: every turn helped.
async fn judge() -> Json<Value> {
    Json(json!({"choices": [{"message": {"role": "assistant", "content": "\\boxed{1}"}}]}))
}

async fn set_version(State(shared): Server, Json(body): Json<Value>) -> Json<Value> {
    shared.change(|inner| {
        inner.label = body["new_version"].as_str().unwrap().to_owned();
        // The default of some forks.
        if body["abort_all_requests"].as_bool().unwrap_or(true) {
            inner.aborted.extend(inner.running.keys().cloned().collect::<Vec<_>>());
        }
    });
    Json(json!({"success": true}))
}

async fn abort(State(shared): Server, Json(body): Json<Value>) -> StatusCode {
    let (rid, all) = (body["rid"].as_str().unwrap_or_default(), body["abort_all"] == true);
    shared.change(|inner| {
        let hit: Vec<String> =
            inner.running.keys().filter(|name| all || name.starts_with(rid)).cloned().collect();
        inner.aborted.extend(hit);
    });
    StatusCode::OK
}

async fn pause(State(shared): Server, Json(body): Json<Value>) -> Json<Value> {
    let mode = body["mode"].as_str().unwrap_or("abort").to_owned();
    shared.change(|inner| {
        if mode == "abort" {
            inner.aborted.extend(inner.running.keys().cloned().collect::<Vec<_>>());
        }
        inner.paused = Some(mode);
    });
    Json(json!({"status": "ok"}))
}

async fn go_on(State(shared): Server) -> Json<Value> {
    shared.change(|inner| inner.paused = None);
    Json(json!({"status": "ok"}))
}

async fn flush(State(shared): Server) -> StatusCode {
    let idle = shared.change(|inner| {
        let empty = inner.running.is_empty() || inner.paused.as_deref() == Some("retract");
        empty && inner.strangers == 0
    });
    if idle { StatusCode::OK } else { StatusCode::BAD_REQUEST }
}

async fn load(State(shared): Server, Json(body): Json<Value>) -> Response {
    let trouble = shared.change(|inner| inner.trouble);
    if trouble == Trouble::HungLoad {
        std::future::pending::<()>().await;
    }
    // Without a pause, an update waits for everything that runs.
    shared.until(|inner| (inner.running.is_empty() || inner.paused.is_some()).then_some(())).await;
    let path = body["model_path"].as_str().unwrap().to_owned();
    if trouble == Trouble::BadCheckpoint || !Path::new(&path).is_dir() {
        let message = format!("Failed to load {path}. Rolling back to original weights.");
        let body = json!({"success": false, "message": message, "num_paused_requests": 0});
        return (StatusCode::BAD_REQUEST, Json(body)).into_response();
    }
    if trouble != Trouble::SilentLoad {
        let label = body["weight_version"].as_str().unwrap().to_owned();
        shared.change(|inner| inner.label = label);
    }
    Json(json!({"success": true, "message": "done", "num_paused_requests": 0})).into_response()
}

struct Pieces(mpsc::UnboundedReceiver<String>);

impl Stream for Pieces {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Bytes::from(piece))))
    }
}

async fn generate(State(shared): Server, Json(body): Json<Value>) -> Response {
    let (pieces, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        turn(&shared, &body, &pieces).await;
        let rid = body["rid"].as_str().unwrap();
        shared.change(|inner| {
            inner.running.remove(rid);
            inner.aborted.remove(rid);
        });
    });
    Response::new(Body::from_stream(Pieces(receiver)))
}

/// One turn, token by token.
async fn turn(shared: &Shared, body: &Value, pieces: &mpsc::UnboundedSender<String>) {
    let rid = body["rid"].as_str().unwrap().to_owned();
    let list = |value: &Value| -> Vec<u32> {
        let items = value.as_array().into_iter().flatten();
        items.map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
    };
    let prompt = list(&body["input_ids"]);
    let stops = list(&body["sampling_params"]["stop_token_ids"]);
    let most = body["sampling_params"]["max_new_tokens"].as_u64().unwrap() as usize;
    assert_eq!((&body["return_logprob"], &body["stream"]), (&json!(true), &json!(true)));
    let mut rest = (shared.answer)(&prompt).into_iter();
    let mut made: Vec<u32> = Vec::new();
    // A turn that comes during a pause waits before the scheduler: it runs only afterwards.
    let begins = |inner: &mut Inner| {
        inner.paused.is_none().then(|| inner.running.insert(rid.clone(), 0)).map(drop)
    };
    shared.until(begins).await;
    // For whoever waits for it to run.
    shared.change(|_| ());
    loop {
        // What may happen next: a token, or the end.
        let aborted = shared
            .until(|inner| {
                let stands = inner.paused.is_some() || inner.limit.is_some_and(|n| made.len() >= n);
                let aborted = inner.aborted.contains(&rid);
                (aborted || !stands).then_some(aborted)
            })
            .await;
        let next = if aborted { None } else { rest.next() };
        made.extend(next);
        let stopped = next.is_none_or(|id| stops.contains(&id));
        let finish = match (aborted, stopped, made.len() >= most) {
            (true, ..) => Some("abort"),
            (_, true, _) => Some("stop"),
            (.., true) => Some("length"),
            _ => None,
        };
        let piece = shared.change(|inner| {
            inner.running.insert(rid.clone(), made.len());
            piece(inner, &made, usize::from(next.is_some()), finish)
        });
        // Nobody reads any more: a server ends the turn.
        if pieces.send(piece).is_err() {
            return;
        }
        if finish.is_some() {
            let _ = pieces.send("data: [DONE]\n\n".to_owned());
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn piece(inner: &Inner, made: &[u32], fresh: usize, finish: Option<&str>) -> String {
    if inner.trouble == Trouble::Garbage {
        return "data: {\"text\": \"\n\n".to_owned();
    }
    let shown = if inner.incremental { &made[made.len() - fresh..] } else { made };
    let mut logprobs: Vec<Value> =
        shown.iter().map(|id| json!([-f64::from(id % 7 + 1) / 8.0, id, null])).collect();
    if inner.trouble == Trouble::ShortLogprobs {
        logprobs.pop();
    }
    let mut meta = json!({
        "finish_reason": finish.map(|kind| json!({"type": kind})),
        "prompt_tokens": 1,
        "completion_tokens": made.len(),
        "output_token_logprobs": logprobs,
        "weight_version": inner.label,
    });
    if inner.trouble == Trouble::NoLabel {
        meta.as_object_mut().unwrap().remove("weight_version");
    }
    format!("data: {}\n\n", json!({"text": "", "meta_info": meta}))
}

//! A server that speaks vLLM's protocol, as `docs/engines.md` has it, with its quirks: labels come at a
//! turn's end alone, outputs that nobody has read yet come together, a pause holds new requests, `wait`
//! answers when all turns have ended, `keep` when they stand still (and what they made before may
//! come after that answer), a reload overwrites weights in place. It dies with all its connections, and
//! comes back on the same port without a label.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
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
    /// Loads end half-way.
    BadCheckpoint,
    /// Loads never end.
    HungLoad,
    /// The last piece has no labels.
    NoLabel,
    /// The labels are of fewer tokens than there are.
    ShortLabels,
    /// A log-probability is missing.
    ShortLogprobs,
    /// Pieces are no JSON.
    Garbage,
}

#[derive(Default)]
pub(crate) struct Inner {
    label: String,
    model: String,
    logprobs_mode: String,
    scale_out: bool,
    paused: Option<String>,
    running: BTreeMap<String, usize>,
    aborted: BTreeSet<String>,
    /// So many tokens of each turn may be generated, then none; `None`: no limit.
    limit: Option<usize>,
    /// What was generated is kept back, but for the first so many tokens of each turn.
    shown: Option<usize>,
    strangers: usize,
    trouble: Trouble,
}

/// The server.
pub(crate) struct VllmServer {
    shared: Arc<Shared>,
    life: Life,
}

impl VllmServer {
    /// A server of the model in a directory.
    pub(crate) fn start(
        model: &Path,
        answer: impl Fn(&[u32]) -> Vec<u32> + Send + Sync + 'static,
    ) -> Self {
        let inner = Inner {
            model: model.display().to_string(),
            logprobs_mode: "processed_logprobs".to_owned(),
            scale_out: true,
            ..Inner::default()
        };
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

    /// Sends only so many tokens of each turn for now; `None`: all.
    pub(crate) fn show(&self, shown: Option<usize>) {
        self.shared.change(|inner| inner.shown = shown);
    }

    pub(crate) fn trouble(&self, trouble: Trouble) {
        self.shared.change(|inner| inner.trouble = trouble);
    }

    /// Started otherwise: with this mode of log-probabilities, with or without `--enable-scale-out`.
    pub(crate) fn started_with(&self, logprobs_mode: &str, scale_out: bool) {
        self.shared.change(|inner| {
            inner.logprobs_mode = logprobs_mode.to_owned();
            inner.scale_out = scale_out;
        });
    }

    /// Somebody else's turn runs (1), or has ended (0).
    pub(crate) fn strangers(&self, count: usize) {
        self.shared.change(|inner| inner.strangers = count);
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

type Server = State<Arc<Shared>>;

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/health", get(async || StatusCode::OK))
        .route("/v1/models", get(models))
        .route("/server_info", get(info))
        .route("/weight_info", get(version))
        .route("/update_weight_version", post(set_version))
        .route("/inference/v1/generate", post(generate))
        .route("/inference/v1/abort_requests", post(abort))
        .route("/pause", post(pause))
        .route("/resume", post(go_on))
        .route("/reset_prefix_cache", post(async || Json(json!({"success": true}))))
        .route("/collective_rpc", post(load))
        .layer(from_fn_with_state(shared.clone(), remember))
        .with_state(shared)
}

async fn models(State(shared): Server) -> Json<Value> {
    Json(shared.change(|inner| json!({"data": [{"id": "policy", "root": inner.model}]})))
}

async fn info(State(shared): Server) -> Json<Value> {
    let mode = shared.change(|inner| inner.logprobs_mode.clone());
    Json(json!({"vllm_config": {"model_config": {"logprobs_mode": mode}}}))
}

async fn version(State(shared): Server) -> Json<Value> {
    Json(shared.change(|inner| json!({"weight_version": inner.label})))
}

async fn set_version(State(shared): Server, Json(body): Json<Value>) -> Json<Value> {
    let label = body["new_version"].as_str().unwrap().to_owned();
    shared.change(|inner| inner.label.clone_from(&label));
    Json(json!({"success": true, "new_version": label}))
}

async fn abort(State(shared): Server, Json(body): Json<Value>) -> Response {
    let names = body["request_ids"].as_array().unwrap();
    shared.change(|inner| {
        if !inner.scale_out {
            let error = json!({"error": {"message": "Scale-out endpoints are disabled."}});
            return (StatusCode::FORBIDDEN, Json(error)).into_response();
        }
        inner.aborted.extend(names.iter().map(|name| name.as_str().unwrap().to_owned()));
        StatusCode::OK.into_response()
    })
}

async fn pause(State(shared): Server, uri: Uri) -> Json<Value> {
    let mode = uri.query().and_then(|query| query.strip_prefix("mode=")).unwrap().to_owned();
    shared.change(|inner| inner.paused = Some(mode.clone()));
    if mode == "wait" {
        let idle =
            |inner: &mut Inner| (inner.running.is_empty() && inner.strangers == 0).then_some(());
        shared.until(idle).await;
    }
    Json(json!({"status": "paused"}))
}

async fn go_on(State(shared): Server) -> Json<Value> {
    shared.change(|inner| inner.paused = None);
    Json(json!({"status": "resumed"}))
}

async fn load(State(shared): Server, Json(body): Json<Value>) -> Response {
    assert_eq!(body["method"], "reload_weights");
    let trouble = shared.change(|inner| inner.trouble);
    if trouble == Trouble::HungLoad {
        shared.until(|inner| (inner.trouble != Trouble::HungLoad).then_some(())).await;
    }
    let path = body["kwargs"]["weights_path"].as_str().unwrap();
    if trouble == Trouble::BadCheckpoint || !Path::new(path).is_dir() {
        let error = json!({"error": {"message": "Call to collective_rpc method failed"}});
        return (StatusCode::INTERNAL_SERVER_ERROR, Json(error)).into_response();
    }
    Json(json!({"results": [null]})).into_response()
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
        let name = format!("generate-tokens-{}", body["request_id"].as_str().unwrap());
        turn(&shared, &body, &name, &pieces).await;
        shared.change(|inner| {
            inner.running.remove(&name);
            inner.aborted.remove(&name);
        });
    });
    Response::new(Body::from_stream(Pieces(receiver)))
}

/// What a turn does next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Generate,
    /// It sends what it has kept back.
    Show,
    Abort,
}

/// One turn, token by token.
async fn turn(shared: &Shared, body: &Value, name: &str, pieces: &mpsc::UnboundedSender<String>) {
    let list = |value: &Value| -> Vec<u32> {
        let items = value.as_array().into_iter().flatten();
        items.map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
    };
    let sampling = &body["sampling_params"];
    let stops = list(&sampling["stop_token_ids"]);
    let most = sampling["max_tokens"].as_u64().unwrap() as usize;
    assert_eq!((&sampling["logprobs"], &body["stream"]), (&json!(0), &json!(true)));
    let mut rest = (shared.answer)(&list(&body["token_ids"])).into_iter();
    // Each token with its label, and how many of them were sent.
    let (mut made, mut sent): (Vec<(u32, String)>, usize) = (Vec::new(), 0);
    // A request that comes into a pause waits for its end.
    shared.until(|inner| inner.paused.is_none().then_some(())).await;
    shared.change(|inner| inner.running.insert(name.to_owned(), 0));
    loop {
        let act = shared
            .until(|inner| {
                let frozen = inner.paused.as_deref() == Some("keep");
                if inner.aborted.contains(name) {
                    Some(Act::Abort)
                } else if made.len() > sent && inner.shown.is_none_or(|shown| shown > sent) {
                    Some(Act::Show)
                } else if frozen || inner.limit.is_some_and(|limit| made.len() >= limit) {
                    None
                } else {
                    Some(Act::Generate)
                }
            })
            .await;
        let next = if act == Act::Generate { rest.next() } else { None };
        let label = shared.change(|inner| inner.label.clone());
        made.extend(next.map(|id| (id, label)));
        let finish = match act {
            Act::Abort => Some("abort"),
            Act::Show => None,
            Act::Generate if next.is_none_or(|id| stops.contains(&id)) => Some("stop"),
            Act::Generate => (made.len() >= most).then_some("length"),
        };
        if finish.is_some() {
            shared.until(|inner| inner.shown.is_none().then_some(())).await;
        }
        let piece = shared.change(|inner| {
            inner.running.insert(name.to_owned(), made.len());
            let until = inner.shown.unwrap_or(made.len()).clamp(sent, made.len());
            let piece = piece(inner, &made, sent..until, finish);
            sent = until;
            piece
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

fn piece(
    inner: &Inner,
    made: &[(u32, String)],
    shown: std::ops::Range<usize>,
    finish: Option<&str>,
) -> String {
    if inner.trouble == Trouble::Garbage {
        return "data: {\"choices\": \"\n\n".to_owned();
    }
    let ids: Vec<u32> = made[shown].iter().map(|(id, _)| *id).collect();
    let entry = |id: &u32| json!({"token_id": id, "logprob": -f64::from(id % 7 + 1) / 8.0});
    let mut content: Vec<Value> = ids.iter().map(entry).collect();
    if inner.trouble == Trouble::ShortLogprobs {
        content.pop();
    }
    let mut spans: Vec<Value> = Vec::new();
    for run in made.chunk_by(|one, next| one.1 == next.1) {
        let start = spans.last().map_or(0, |span| span["end"].as_u64().unwrap());
        spans.push(json!({"version": run[0].1, "start": start, "end": start + run.len() as u64}));
    }
    if inner.trouble == Trouble::ShortLabels {
        spans.pop();
    }
    let labelled = finish.is_some() && inner.trouble != Trouble::NoLabel;
    let choice = json!({
        "index": 0, "finish_reason": finish, "token_ids": ids, "logprobs": {"content": content},
        "weight_versions": labelled.then_some(spans),
    });
    format!("data: {}\n\n", json!({"request_id": "r", "choices": [choice]}))
}

//! The HTTP server in front of the driver: OpenAI's chat completions and Anthropic's messages, with
//! the headers and fields that agents of OpenClaw-RL send.
//!
//! It decides nothing: a request becomes an input, and is answered as the core says. Who leaves is
//! told to the driver. Neither keys nor prompts are ever logged.

mod admin;
mod ask;
mod calls;
mod chat;
mod conversation;
mod dashboard;
mod error;
mod messages;
mod metrics;
mod openapi;
mod request;
mod sse;
mod stamp;
mod text;
mod training;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::driver::DriverHandle;
use crate::secret::Secret;
use crate::tokenizer::Tokenizer;
use crate::trainer::external::Desk;
use error::ApiError;

pub use dashboard::Dashboard;

/// How the gateway answers.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the policy in `/v1/models` and in answers.
    pub model: String,
    /// Requests need this key; `None`: none.
    pub api_key: Option<Secret>,
    /// The admin API needs this token; `None`: there is no admin API.
    pub admin_token: Option<Secret>,
    /// Where an external trainer pulls its batches; `None`: there is none.
    pub training: Option<Training>,
    /// The page that shows the run; `None`, or without an admin token: there is none.
    pub dashboard: Option<Dashboard>,
    /// The longest body, in bytes.
    pub max_body: usize,
    /// The longest answer, in tokens, also where a request asks for more or does not say.
    pub max_tokens: u32,
    /// The temperature that turns are sampled with unless a request says another; one that trains cannot, for the
    /// trainer scores its tokens at this one. Above 0, to 2.
    pub temperature: f64,
}

/// The API of an external trainer.
#[derive(Clone, Debug)]
pub struct Training {
    /// What there is to train.
    pub desk: Desk,
    /// Trainers need this token.
    pub token: Secret,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            model: "policy".to_owned(),
            api_key: None,
            admin_token: None,
            training: None,
            dashboard: None,
            max_body: 8 << 20,
            max_tokens: 4096,
            temperature: 1.0,
        }
    }
}

/// What every handler has.
pub(crate) struct Gate {
    pub(crate) driver: DriverHandle,
    pub(crate) tokenizer: Arc<dyn Tokenizer>,
    pub(crate) options: Options,
}

/// What a run may have or not.
#[derive(Clone, Copy, Debug, Default)]
struct Has {
    admin: bool,
    trainer: bool,
    dashboard: bool,
    /// Tools can be offered to the policy.
    tools: bool,
}

/// Paths with what answers there.
struct Routes(Vec<(&'static str, MethodRouter<Arc<Gate>>)>);

/// The routes of a run, all of which `/openapi.json` describes.
fn routes(has: Has) -> Routes {
    let described = async move || Json(openapi::description(has));
    let mut routes = vec![
        ("/v1/chat/completions", post(chat::completions)),
        ("/v1/messages", post(messages::create).fallback(messages::wrong_method)),
        (
            "/v1/messages/count_tokens",
            post(messages::count_tokens).fallback(messages::wrong_method),
        ),
        ("/v1/models", get(models)),
        ("/healthz", get(healthz)),
        ("/readyz", get(readyz)),
        ("/metrics", get(metrics::metrics)),
        ("/openapi.json", get(described)),
    ];
    if has.admin {
        routes.extend([
            ("/admin/state", get(admin::state)),
            ("/admin/ledger", get(admin::ledger)),
            ("/admin/steps", get(admin::steps)),
            ("/admin/config", get(admin::config).post(admin::reconfigure)),
            ("/admin/publish", post(admin::publish)),
            ("/admin/pause", post(admin::pause)),
            ("/admin/resume", post(admin::resume)),
        ]);
    }
    if has.trainer {
        routes.extend([
            ("/trainer/pull", post(training::pull)),
            ("/trainer/heartbeat", post(training::heartbeat)),
            ("/trainer/report", post(training::report)),
            ("/trainer/weights", post(training::weights)),
            ("/trainer/state", get(training::state)),
        ]);
    }
    if has.dashboard {
        routes.extend([
            ("/dashboard", get(dashboard::page)),
            ("/dashboard/style.css", get(dashboard::style)),
            ("/dashboard/script.js", get(dashboard::script)),
            ("/dashboard/events", get(dashboard::events)),
        ]);
    }
    Routes(routes)
}

/// What answers requests. Where there is a dashboard, it is called within a runtime of tokio.
pub fn router(driver: DriverHandle, tokenizer: Arc<dyn Tokenizer>, options: Options) -> Router {
    let max_body = options.max_body;
    let has = Has {
        admin: options.admin_token.is_some(),
        trainer: options.training.is_some(),
        dashboard: options.dashboard.is_some() && options.admin_token.is_some(),
        tools: tokenizer.takes_tools().is_ok(),
    };
    if let Some(dashboard) = options.dashboard.as_ref().filter(|_| has.dashboard) {
        dashboard.follow(driver.watched());
    }
    let Routes(routes) = routes(has);
    routes
        .into_iter()
        .fold(Router::new(), |router, (path, methods)| router.route(path, methods))
        .fallback(async || ApiError::unknown_path())
        .method_not_allowed_fallback(async || ApiError::wrong_method())
        .layer(DefaultBodyLimit::max(max_body))
        .with_state(Arc::new(Gate { driver, tokenizer, options }))
}

/// Serves on a listener until `stop` is ready; answers under way are finished.
///
/// # Errors
/// What the listener says.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}

/// A gateway that serves, in a task of its own.
#[derive(Debug)]
pub struct Serving {
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Serving {
    /// Starts to serve.
    #[must_use]
    pub fn start(listener: TcpListener, router: Router) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(serve(listener, router, async { drop(stopped.await) }));
        Self { stop, served }
    }

    /// Takes no more connections, finishes answers under way, and gives up after this time: a
    /// client that does not read must not keep a process alive.
    pub async fn close(self, within: Duration) {
        drop(self.stop);
        let task = self.served.abort_handle();
        if tokio::time::timeout(within, self.served).await.is_err() {
            task.abort();
        }
    }
}

/// Listens on the host and port of `[policy_serving]`: loopback, unless the configuration says
/// otherwise.
///
/// # Errors
/// What the operating system says, such as that the port is taken.
pub async fn listen(host: &str, port: u16) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((host, port)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

impl Gate {
    /// The caller may use the API.
    fn admit(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        check(self.options.api_key.as_ref(), headers)
    }

    /// The caller may use the API; the key may stand where Anthropic's clients have it, too.
    fn admit_either(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let given = headers.get("x-api-key").and_then(|value| value.to_str().ok());
        match (&self.options.api_key, given) {
            (Some(key), Some(given)) if key.is(given.trim()) => Ok(()),
            (Some(_), Some(_)) if !headers.contains_key(header::AUTHORIZATION) => {
                Err(ApiError::unauthorized("invalid api key"))
            }
            _ => self.admit(headers),
        }
    }

    /// The caller may operate the run.
    fn admit_operator(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        match &self.options.admin_token {
            Some(token) => check(Some(token), headers),
            None => Err(ApiError::unknown_path()),
        }
    }
}

impl Gate {
    /// The caller may train.
    fn admit_trainer(&self, headers: &HeaderMap) -> Result<&Desk, ApiError> {
        let training = self.options.training.as_ref().ok_or_else(ApiError::unknown_path)?;
        check(Some(&training.token), headers)?;
        Ok(&training.desk)
    }
}

fn check(secret: Option<&Secret>, headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(secret) = secret else { return Ok(()) };
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = given.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    match token {
        None => Err(ApiError::unauthorized("missing bearer token")),
        Some(token) if secret.is(token) => Ok(()),
        Some(_) => Err(ApiError::unauthorized("invalid api key")),
    }
}

async fn models(State(gate): State<Arc<Gate>>, headers: HeaderMap) -> Result<Response, ApiError> {
    gate.admit(&headers)?;
    let model = json!({
        "id": gate.options.model,
        "object": "model",
        "created": 0,
        "owned_by": "headway",
        "policy_version": gate.driver.status().learner.number(),
    });
    Ok(Json(json!({"object": "list", "data": [model]})).into_response())
}

/// The process answers.
async fn healthz() -> Response {
    Json(json!({"ok": true})).into_response()
}

/// How long the driver may take to answer before it counts as blocked.
const PATIENCE: Duration = Duration::from_secs(2);

/// Requests would be served now; if not, why.
async fn readyz(State(gate): State<Arc<Gate>>) -> Response {
    let answers = tokio::time::timeout(PATIENCE, gate.driver.summary()).await;
    let status = gate.driver.status();
    let reason = match answers {
        Ok(Some(_)) => status.unready(),
        Ok(None) => Some("the run is over".to_owned()),
        Err(_) => Some("the driver does not answer".to_owned()),
    };
    let code = if reason.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({"ready": reason.is_none(), "reason": reason, "waits_for": status.waits_for});
    (code, Json(body)).into_response()
}

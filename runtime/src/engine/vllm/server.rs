//! The calls of a server.

use std::sync::Arc;

use headway_shared::action::InFlight;
use headway_shared::config::KvOnSync;
use headway_shared::version::DeployVersion;
use reqwest::Response;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::chunk::Reader;
use crate::engine::Generate;
use crate::engine::remote::calls::{self, CallError, Calls, SHORT};
use crate::engine::remote::{Loaded, Order, Protocol, Standing, Sync, label};
use crate::secret::Secret;

/// The path of turns.
const GENERATE: &str = "/inference/v1/generate";
/// The path that ends them. It is there where that of turns is.
const ABORT: &str = "/inference/v1/abort_requests";
/// The path of the label.
const LABEL: &str = "/weight_info";
/// The label while weights are loaded: who finds it knows that they may be halves of two versions.
const LOADING: &str = "headway-loading";
/// How log-probabilities must be: those of the distribution that was sampled from.
const MODE: &str = "processed_logprobs";

/// What is asked of it for a turn, beside its ids.
#[derive(Serialize)]
struct Turn<'t> {
    request_id: &'t str,
    sampling_params: Value,
    stream: bool,
}

/// A server.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Server {
    calls: Calls,
    /// One load at a time, also where one is no longer waited for: labels must not overtake weights.
    loading: Arc<Mutex<()>>,
}

impl Server {
    async fn label(&self, text: &str) -> Result<(), CallError> {
        let body = json!({"new_version": text});
        self.calls.call("/update_weight_version", Some(&body), Some(SHORT)).await.map(drop)
    }

    /// Loads a checkpoint, and labels it. Takes as long as it takes.
    async fn update(&self, order: &Order) -> Result<(), CallError> {
        self.label(LOADING).await?;
        let body = json!({"method": "reload_weights", "kwargs": {"weights_path": order.path}});
        self.calls.call("/collective_rpc", Some(&body), None).await?;
        if order.sync.in_flight == InFlight::Drained || order.sync.kv == KvOnSync::Recompute {
            self.reset().await?;
        }
        self.label(&label(order.version)).await
    }

    /// Throws the cache away, that of turns in flight too, which compute theirs again.
    async fn reset(&self) -> Result<(), CallError> {
        let path = "/reset_prefix_cache?reset_running_requests=true";
        let text = self.calls.call(path, Some(&json!({})), Some(SHORT)).await?;
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        match answer["success"].as_bool() {
            Some(true) => Ok(()),
            _ => Err(CallError::Garbage { path, what: "the cache was not thrown away" }),
        }
    }
}

impl Protocol for Server {
    type Reader = Reader;

    const BROKEN: Option<&'static str> = Some(LOADING);
    const CONFIRMS: bool = true;

    fn connect(url: &str, key: Option<Secret>) -> Result<Self, reqwest::Error> {
        Ok(Self { calls: Calls::new(url, key, GENERATE)?, loading: Arc::default() })
    }

    async fn model(&self) -> Result<String, CallError> {
        let path = "/v1/models";
        let answer = self.calls.ask(path).await?;
        let what = "the answer names no `root` of a model";
        let root = answer["data"][0]["root"].as_str();
        root.map(str::to_owned).ok_or(CallError::Garbage { path, what })
    }

    fn calls(&self) -> &Calls {
        &self.calls
    }

    async fn probe(&self) -> Result<String, CallError> {
        self.calls.call("/health", None, Some(SHORT)).await?;
        match self.calls.label(LABEL).await {
            Err(CallError::Refused { path, status: 404, .. }) => Err(CallError::Garbage {
                path,
                what: "there is no such call: start the server with VLLM_SERVER_DEV_MODE=1",
            }),
            answer => answer,
        }
    }

    async fn usable(&self) -> Result<(), String> {
        let none = json!({"request_ids": []});
        self.calls.call(ABORT, Some(&none), Some(SHORT)).await.map_err(|error| {
            format!("turns cannot be sent to it: start it with --enable-scale-out ({error})")
        })?;
        let path = "/server_info?config_format=json";
        let answer = self.calls.ask(path).await.map_err(|error| error.to_string())?;
        let mode = answer["vllm_config"]["model_config"]["logprobs_mode"].as_str();
        match mode.unwrap_or("not known") {
            MODE => Ok(()),
            other => Err(format!(
                "its log-probabilities are {other}, not those of the distribution that is sampled \
                 from: start it with --logprobs-mode {MODE}"
            )),
        }
    }

    async fn name(&self, version: DeployVersion) -> Result<(), CallError> {
        self.label(&label(version)).await
    }

    async fn generate(&self, generate: &Generate, rid: &str) -> Result<Response, CallError> {
        let mut sampling = calls::sampling(generate);
        // What is not said here, a checkpoint's `generation_config.json` says.
        sampling["top_k"] = json!(0);
        sampling["min_p"] = json!(0.0);
        sampling["repetition_penalty"] = json!(1.0);
        sampling["presence_penalty"] = json!(0.0);
        sampling["frequency_penalty"] = json!(0.0);
        sampling["logprobs"] = json!(0);
        sampling["max_tokens"] = json!(calls::left(generate));
        // A turn that goes on must not draw again what it drew at its beginning.
        let seed = generate.sampling.seed.wrapping_add(generate.resume.len() as u64);
        sampling["seed"] = json!(seed & (u64::MAX >> 1));
        let body = Turn { request_id: rid, sampling_params: sampling, stream: true };
        self.calls.turn("token_ids", generate, &body).await
    }

    fn reader(&self, standing: Standing) -> Reader {
        Reader::new(standing)
    }

    async fn abort(&self, rid: &str) -> Result<(), CallError> {
        let body = json!({"request_ids": [format!("generate-tokens-{rid}")]});
        self.calls.call(ABORT, Some(&body), Some(SHORT)).await.map(drop)
    }

    /// Pauses the server. Where the core has let its turns end, those of others may end, too: a judge
    /// can share the server.
    async fn prepare(&self, sync: Sync) -> Result<(), String> {
        let path = match sync.in_flight {
            InFlight::Drained => "/pause?mode=wait",
            InFlight::Frozen | InFlight::Running => "/pause?mode=keep",
        };
        let paused = self.calls.call(path, Some(&json!({})), None).await;
        paused.map(drop).map_err(|error| error.to_string())
    }

    /// The load goes on where it is no longer waited for: its label must say what the server holds.
    async fn load(&self, order: Order) -> Loaded {
        let server = self.clone();
        let alone = self.loading.clone().lock_owned().await;
        let task = tokio::spawn(async move {
            let _alone = alone;
            let failed = server.update(&order).await.err();
            let now = server.calls.label(LABEL).await;
            match (failed, now) {
                (None, Ok(now)) if now == label(order.version) => Loaded::Whole,
                (None, now) => {
                    let now = now.unwrap_or_else(|error| error.to_string());
                    let why = format!("after the load its label is {now}");
                    Loaded::Failed { intact: false, why }
                }
                // Weights are overwritten in place: until it was told to load, it holds its old ones.
                (Some(error), now) => {
                    let before = order.before.map(label);
                    let intact = before.is_some_and(|before| now.is_ok_and(|now| now == before));
                    Loaded::Failed { intact, why: error.to_string() }
                }
            }
        });
        let broken = |why: String| Loaded::Failed { intact: false, why };
        task.await.unwrap_or_else(|error| broken(error.to_string()))
    }

    async fn go_on(&self) -> Result<(), CallError> {
        self.calls.call("/resume", Some(&json!({})), Some(SHORT)).await.map(drop)
    }
}

//! The calls of a server.

use std::time::Duration;

use headway_shared::version::DeployVersion;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use super::label;
use crate::engine::Generate;
use crate::http;
use crate::secret::Secret;

/// How long a call that changes little may take.
const SHORT: Duration = Duration::from_secs(10);
/// So many letters of what a server says are shown.
const MOST_SHOWN: usize = 300;
/// The path of turns.
const GENERATE: &str = "/generate";
/// A longer answer to a call is none.
const MOST_BYTES: usize = 1 << 20;

/// What a server did not do.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// It cannot be reached, or broke off.
    #[error("{path}: {error}")]
    Unreachable { path: &'static str, error: reqwest::Error },
    /// It says no.
    #[error("{path}: status {status}: {said}")]
    Refused { path: &'static str, status: u16, said: String },
    /// It says something that is none of its answers.
    #[error("{path}: {what}")]
    Garbage { path: &'static str, what: &'static str },
}

/// What a server does with the turns in flight while it loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// It ends them.
    Abort,
    /// It puts them back into its queue and computes their cache again afterwards.
    Retract,
    /// They stand still and keep their cache.
    InPlace,
}

/// A server.
#[derive(Clone, Debug)]
pub(super) struct Server {
    client: Client,
    url: String,
    key: Option<Secret>,
}

impl Server {
    pub(super) fn new(url: &str, key: Option<Secret>) -> Result<Self, reqwest::Error> {
        let client = http::client().connect_timeout(SHORT).build()?;
        Ok(Self { client, url: url.to_owned(), key })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    fn with_key(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.key {
            Some(key) => request.bearer_auth(key.reveal()),
            None => request,
        }
    }

    async fn send(
        &self,
        path: &'static str,
        body: Option<&Value>,
        within: Option<Duration>,
    ) -> Result<Response, CallError> {
        let url = format!("{}{path}", self.url);
        let request = match body {
            Some(body) => self.client.post(url).json(body),
            None => self.client.get(url),
        };
        let request = within.into_iter().fold(self.with_key(request), RequestBuilder::timeout);
        let response = request.send().await;
        let response = response.map_err(|error| CallError::Unreachable { path, error })?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        // What it says of a turn can hold the prompt, which nobody may read in a log.
        let said = if path == GENERATE {
            "(what it says is not shown)".to_owned()
        } else {
            text(path, response).await.unwrap_or_default().chars().take(MOST_SHOWN).collect()
        };
        Err(CallError::Refused { path, status, said })
    }

    async fn call(
        &self,
        path: &'static str,
        body: Option<&Value>,
        within: Option<Duration>,
    ) -> Result<String, CallError> {
        text(path, self.send(path, body, within).await?).await
    }

    /// It is there, and holds weights with this label.
    pub(super) async fn probe(&self) -> Result<String, CallError> {
        self.call("/health", None, Some(SHORT)).await?;
        let path = "/get_weight_version";
        let text = self.call(path, None, Some(SHORT)).await?;
        let answer: Option<Value> = serde_json::from_str(&text).ok();
        let label = answer.as_ref().and_then(|answer| answer["weight_version"].as_str());
        let what = "the answer has no text `weight_version`";
        label.map(str::to_owned).ok_or(CallError::Garbage { path, what })
    }

    /// The directory of the model it was started with, as its own file system has it.
    pub(super) async fn model(&self) -> Result<String, CallError> {
        let path = "/get_model_info";
        let text = self.call(path, None, Some(SHORT)).await?;
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        let named =
            ["tokenizer_path", "model_path"].into_iter().find_map(|key| answer[key].as_str());
        let what = "the answer has no text `model_path`";
        named.map(str::to_owned).ok_or(CallError::Garbage { path, what })
    }

    /// Labels the weights it holds; turns go on.
    pub(super) async fn name(&self, version: DeployVersion) -> Result<(), CallError> {
        let body = json!({"new_version": label(version), "abort_all_requests": false});
        self.call("/update_weight_version", Some(&body), Some(SHORT)).await.map(drop)
    }

    /// Begins a turn. The answer is a stream of server-sent events.
    pub(super) async fn generate(
        &self,
        generate: &Generate,
        rid: &str,
    ) -> Result<Response, CallError> {
        let resumed = generate.resume.iter().map(|token| token.id);
        let ids: Vec<u32> = generate.prompt.iter().copied().chain(resumed).collect();
        let how = &generate.sampling;
        let left = (how.max_tokens as usize).saturating_sub(generate.resume.len());
        let one = how.stop.iter().filter(|stop| stop.len() == 1).flatten();
        let mut sampling = json!({
            "temperature": how.temperature,
            "top_p": 1.0,
            "top_k": -1,
            "max_new_tokens": left,
            "stop_token_ids": one.copied().collect::<Vec<u32>>(),
            "skip_special_tokens": false,
            // SGLang's seeds have 31 bits to spare on every backend.
            "sampling_seed": (how.seed ^ how.seed >> 32) & 0x7fff_ffff,
        });
        if !how.stop_texts.is_empty() {
            sampling["stop"] = json!(&*how.stop_texts);
        }
        let body = json!({
            "rid": rid,
            "input_ids": ids,
            "sampling_params": sampling,
            "return_logprob": true,
            "stream": true,
        });
        self.send(GENERATE, Some(&body), None).await
    }

    pub(super) async fn abort(&self, rid: &str) -> Result<(), CallError> {
        let body = json!({"rid": rid, "abort_all": false});
        self.call("/abort_request", Some(&body), Some(SHORT)).await.map(drop)
    }

    pub(super) async fn pause(&self, pause: Pause) -> Result<(), CallError> {
        let mode = match pause {
            Pause::Abort => "abort",
            Pause::Retract => "retract",
            Pause::InPlace => "in_place",
        };
        let body = json!({"mode": mode});
        self.call("/pause_generation", Some(&body), Some(SHORT)).await.map(drop)
    }

    pub(super) async fn go_on(&self) -> Result<(), CallError> {
        self.call("/continue_generation", Some(&json!({})), Some(SHORT)).await.map(drop)
    }

    /// Empties its cache; refused while anything runs.
    pub(super) async fn flush(&self) -> Result<(), CallError> {
        self.call("/flush_cache", None, Some(SHORT)).await.map(drop)
    }

    /// Loads a checkpoint, and labels it. Takes as long as it takes.
    pub(super) async fn load(
        &self,
        path: &str,
        version: DeployVersion,
        flush: bool,
    ) -> Result<(), CallError> {
        let body = json!({
            "model_path": path,
            "weight_version": label(version),
            "abort_all_requests": false,
            "flush_cache": flush,
        });
        let path = "/update_weights_from_disk";
        let text = self.call(path, Some(&body), None).await?;
        let answer: Option<Value> = serde_json::from_str(&text).ok();
        match answer.as_ref().and_then(|answer| answer["success"].as_bool()) {
            Some(true) => Ok(()),
            Some(false) => {
                let said = text.chars().take(MOST_SHOWN).collect();
                Err(CallError::Refused { path, status: 200, said })
            }
            None => Err(CallError::Garbage { path, what: "the answer does not say `success`" }),
        }
    }
}

async fn text(path: &'static str, mut response: Response) -> Result<String, CallError> {
    let mut bytes = Vec::new();
    let broken = |error| CallError::Unreachable { path, error };
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if bytes.len() + chunk.len() > MOST_BYTES {
            return Err(CallError::Garbage { path, what: "the answer is too long" });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

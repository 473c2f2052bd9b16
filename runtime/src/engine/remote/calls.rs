//! Calls of a server.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, Url};
use serde::Serialize;
use serde_json::{Value, json};

use crate::engine::Generate;
use crate::http;
use crate::json;
use crate::secret::Secret;
use crate::utf8;

/// How long a call that changes little may take.
pub(in crate::engine) const SHORT: Duration = Duration::from_secs(10);
/// So many letters of what a server says are shown.
pub(in crate::engine) const MOST_SHOWN: usize = 300;
/// A longer answer to a call is none.
const MOST_BYTES: usize = 1 << 20;

/// What a server did not do.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum CallError {
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

/// How a server is reached.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Calls {
    client: Client,
    url: String,
    key: Option<Secret>,
    /// The path of turns: what a server says of one can hold the prompt, which nobody may read in a
    /// log.
    turns: &'static str,
    /// Where turns are asked for, read once; none: what is wrong with it, a call says.
    turns_url: Option<Url>,
}

impl Calls {
    pub(in crate::engine) fn new(
        url: &str,
        key: Option<Secret>,
        turns: &'static str,
    ) -> Result<Self, reqwest::Error> {
        let client = http::client().connect_timeout(SHORT).build()?;
        let url = url.trim_end_matches('/').to_owned();
        let turns_url = Url::parse(&format!("{url}{turns}")).ok();
        Ok(Self { client, url, key, turns, turns_url })
    }

    pub(in crate::engine) fn url(&self) -> &str {
        &self.url
    }

    fn with_key(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.key {
            Some(key) => request.bearer_auth(key.reveal()),
            None => request,
        }
    }

    pub(in crate::engine) async fn send(
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
        self.sent(path, within.into_iter().fold(request, RequestBuilder::timeout)).await
    }

    /// Begins a turn: `ids` names the ids that it begins or goes on after, and `rest` is the rest of what
    /// is asked.
    pub(in crate::engine) async fn turn(
        &self,
        ids: &str,
        generate: &Generate,
        rest: &impl Serialize,
    ) -> Result<Response, CallError> {
        let resumed = generate.resume.iter().map(|token| token.id);
        let mut body = format!("{{\"{ids}\":").into_bytes();
        json::put_ids(&mut body, generate.prompt.iter().copied().chain(resumed));
        let opens = body.len();
        let what = "the turn cannot be written as JSON";
        serde_json::to_writer(&mut body, rest)
            .map_err(|_| CallError::Garbage { path: self.turns, what })?;
        // The brace that opens the rest.
        body[opens] = b',';
        let request = match &self.turns_url {
            Some(url) => self.client.post(url.clone()),
            None => self.client.post(format!("{}{}", self.url, self.turns)),
        };
        let kind = HeaderValue::from_static("application/json");
        self.sent(self.turns, request.header(CONTENT_TYPE, kind).body(body)).await
    }

    async fn sent(
        &self,
        path: &'static str,
        request: RequestBuilder,
    ) -> Result<Response, CallError> {
        let response = self.with_key(request).send().await;
        let response = response.map_err(|error| CallError::Unreachable { path, error })?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let said = if path == self.turns {
            "(what it says is not shown)".to_owned()
        } else {
            text(path, response).await.unwrap_or_default().chars().take(MOST_SHOWN).collect()
        };
        Err(CallError::Refused { path, status, said })
    }

    pub(in crate::engine) async fn call(
        &self,
        path: &'static str,
        body: Option<&Value>,
        within: Option<Duration>,
    ) -> Result<String, CallError> {
        text(path, self.send(path, body, within).await?).await
    }

    /// The JSON that is answered; null where it is none.
    pub(in crate::engine) async fn ask(&self, path: &'static str) -> Result<Value, CallError> {
        let text = self.call(path, None, Some(SHORT)).await?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// The label of the weights, in an answer's `weight_version`.
    pub(in crate::engine) async fn label(&self, path: &'static str) -> Result<String, CallError> {
        let answer = self.ask(path).await?;
        let what = "the answer has no text `weight_version`";
        let label = answer["weight_version"].as_str();
        label.map(str::to_owned).ok_or(CallError::Garbage { path, what })
    }
}

/// What all servers call alike: how a turn is sampled, and where it ends.
pub(in crate::engine) fn sampling(generate: &Generate) -> Value {
    let how = &generate.sampling;
    let one = how.stop.iter().filter(|stop| stop.len() == 1).flatten();
    let mut sampling = json!({
        "temperature": how.temperature,
        "top_p": 1.0,
        "stop_token_ids": one.copied().collect::<Vec<u32>>(),
        "skip_special_tokens": false,
    });
    if !how.stop_texts.is_empty() {
        sampling["stop"] = json!(&*how.stop_texts);
    }
    sampling
}

/// How many tokens a turn may still have.
pub(in crate::engine) fn left(generate: &Generate) -> usize {
    (generate.sampling.max_tokens as usize).saturating_sub(generate.resume.len())
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
    Ok(utf8::lossy(bytes))
}

//! One request for a turn, with the retries of an official OpenAI client.

use std::time::Duration;

use headway_shared::backoff::Backoff;
use headway_shared::digest::mix;
use headway_shared::time::Span;
use reqwest::{Client, RequestBuilder, Response, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;

use super::host::Counters;
use crate::http::Completion;
use crate::secret::Secret;

/// A longer answer is none.
const MOST_BYTES: u64 = 1 << 24;

/// Sends requests to a gateway.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) client: Client,
    /// Of the chat completions.
    pub(super) url: String,
    pub(super) key: Option<Secret>,
    pub(super) backoff: Backoff,
    pub(super) max_retries: u32,
}

/// One turn's request.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) session: &'a str,
    pub(super) group: Option<&'a str>,
    /// It may train.
    pub(super) main: bool,
    pub(super) last: bool,
    pub(super) body: &'a Value,
    /// For the jitter of its waits.
    pub(super) luck: u64,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// Its group takes no member any more.
    GroupClosed,
    /// It is refused for good, or was tried too often.
    GivenUp(String),
}

#[derive(Deserialize)]
struct Refusal {
    error: RefusalError,
}

#[derive(Deserialize)]
struct RefusalError {
    message: String,
    code: Option<String>,
}

/// How a try ended.
enum Tried {
    Said(String),
    /// Again, at the earliest after this time; zero: nothing was said of it.
    Later(Span, String),
    Never(NoAnswer),
}

impl Agent {
    /// What the policy answers.
    pub(super) async fn ask(&self, ask: &Ask<'_>, seen: &Counters) -> Result<String, NoAnswer> {
        let mut tries = 0;
        loop {
            tries += 1;
            let (after, why) = match self.attempt(ask, seen).await {
                Tried::Said(text) => return Ok(text),
                Tried::Never(why) => return Err(why),
                Tried::Later(after, why) => (after, why),
            };
            if tries > self.max_retries {
                return Err(NoAnswer::GivenUp(why));
            }
            seen.change(|counts| counts.retries += 1);
            let random = unit(mix(ask.luck ^ u64::from(tries)));
            let wait = self.backoff.delay(tries, after, random);
            tokio::time::sleep(Duration::from_nanos(wait.as_nanos())).await;
        }
    }

    async fn attempt(&self, ask: &Ask<'_>, seen: &Counters) -> Tried {
        let response = match self.request(ask).send().await {
            Ok(response) => response,
            Err(error) => {
                seen.change(|counts| counts.unreachable += 1);
                return Tried::Later(Span::ZERO, error.to_string());
            }
        };
        let status = response.status();
        seen.count(status.as_u16());
        let after = retry_after(&response);
        let bytes = match read(response).await {
            Ok(bytes) => bytes,
            Err(why) => return Tried::Later(Span::ZERO, why),
        };
        if status.is_success() {
            return said(&bytes);
        }
        let refusal = serde_json::from_slice::<Refusal>(&bytes).ok().map(|refusal| refusal.error);
        let closed = |error: &RefusalError| error.code.as_deref() == Some("bad_group");
        if status == StatusCode::BAD_REQUEST && refusal.as_ref().is_some_and(closed) {
            return Tried::Never(NoAnswer::GroupClosed);
        }
        let why = refusal.map_or_else(String::new, |error| format!(": {}", error.message));
        let why = format!("{status}{why}");
        match Backoff::retries(status.as_u16()) {
            true => Tried::Later(after, why),
            false => Tried::Never(NoAnswer::GivenUp(why)),
        }
    }

    fn request(&self, ask: &Ask<'_>) -> RequestBuilder {
        let turn = if ask.main { "main" } else { "side" };
        let mut request = self.client.post(&self.url).json(ask.body);
        request = request.header("X-Session-Id", ask.session).header("X-Turn-Type", turn);
        if ask.last {
            request = request.header("X-Session-Done", "1");
        }
        if let Some(group) = ask.group {
            request = request.header("X-Group-Id", group);
        }
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.reveal());
        }
        request
    }
}

fn said(bytes: &[u8]) -> Tried {
    let completion = serde_json::from_slice::<Completion>(bytes).ok();
    match completion.as_ref().and_then(Completion::text) {
        Some(text) => Tried::Said(text.to_owned()),
        None => Tried::Later(Span::ZERO, "an answer without a choice".to_owned()),
    }
}

async fn read(mut response: Response) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > MOST_BYTES {
            return Err("an answer that is too long".to_owned());
        }
    }
    Ok(bytes)
}

fn retry_after(response: &Response) -> Span {
    let value = response.headers().get(header::RETRY_AFTER);
    let seconds = value.and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok());
    seconds.and_then(Span::from_secs_f64).unwrap_or(Span::ZERO)
}

/// Uniform in [0, 1).
fn unit(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

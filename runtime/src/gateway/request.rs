//! What a client asks for.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use headway_shared::input::TurnType;
use serde::Deserialize;
use serde_json::Value;

use super::error::ApiError;
use crate::tokenizer::Message;

/// Most choices of one request.
const MOST_CHOICES: u32 = 128;
/// Most stop texts, as OpenAI has it.
const MOST_STOPS: usize = 4;

/// A chat completion, checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChatRequest {
    pub(super) messages: Vec<Message>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) max_tokens: Option<u32>,
    pub(super) temperature: f32,
    pub(super) seed: Option<u64>,
    pub(super) stop: Vec<String>,
    pub(super) n: u32,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) logprobs: bool,
    pub(super) token_ids: bool,
    pub(super) session: Option<String>,
    pub(super) group: Option<String>,
    pub(super) turn: TurnType,
    pub(super) last: bool,
}

/// The body, as it comes.
#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    messages: Value,
    metadata: Option<BTreeMap<String, String>>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    temperature: Option<f32>,
    seed: Option<i64>,
    stop: Option<Stop>,
    n: Option<u32>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    logprobs: Option<bool>,
    return_token_ids: Option<bool>,
    session_id: Option<String>,
    group_id: Option<String>,
    turn_type: Option<String>,
    session_done: Option<Value>,
    top_p: Option<f32>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    logit_bias: Option<BTreeMap<String, Value>>,
    tools: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

impl ChatRequest {
    /// Reads a body and the headers that belong to it; a header wins over its field.
    pub(super) fn read(headers: &HeaderMap, bytes: &[u8]) -> Result<Self, ApiError> {
        let body: Body = serde_json::from_slice(bytes)
            .map_err(|error| ApiError::bad_request(&format!("the body is wrong: {error}")))?;
        body.check()?;
        let stop = match body.stop {
            None => Vec::new(),
            Some(Stop::One(text)) => vec![text],
            Some(Stop::Many(texts)) => texts,
        };
        if stop.len() > MOST_STOPS || stop.iter().any(String::is_empty) {
            return Err(ApiError::bad_request("stop must be up to 4 texts that are not empty"));
        }
        let named = |name, field: Option<String>| {
            let text = header(headers, name)?.map(str::to_owned).or(field);
            Ok(text.filter(|text| !text.is_empty()))
        };
        let done = match body.session_done {
            None | Some(Value::Null) => false,
            Some(Value::Bool(done)) => done,
            Some(Value::String(text)) => says_yes(&text),
            Some(Value::Number(number)) => number.as_u64() == Some(1),
            Some(_) => return Err(ApiError::bad_request("session_done must be true or false")),
        };
        Ok(Self {
            messages: messages(&body.messages)?,
            metadata: body.metadata.unwrap_or_default(),
            max_tokens: body.max_completion_tokens.or(body.max_tokens),
            temperature: body.temperature.unwrap_or(1.0),
            seed: body.seed.map(i64::cast_unsigned),
            stop,
            n: body.n.unwrap_or(1),
            stream: body.stream == Some(true),
            include_usage: body.stream_options.and_then(|options| options.include_usage)
                == Some(true),
            logprobs: body.logprobs == Some(true),
            token_ids: body.return_token_ids == Some(true),
            session: named("x-session-id", body.session_id)?,
            group: named("x-group-id", body.group_id)?,
            turn: turn(named("x-turn-type", body.turn_type)?.as_deref())?,
            last: header(headers, "x-session-done")?.map_or(done, says_yes),
        })
    }

    /// The last message, where it says what followed the session's turn before.
    pub(super) fn next_state(&self) -> Option<&str> {
        let last = self.messages.last()?;
        matches!(last.role.as_str(), "user" | "tool").then_some(last.content.as_str())
    }
}

impl Body {
    /// What would be sampled from another distribution than the recorded one, or answered
    /// otherwise than asked, is refused rather than ignored.
    fn check(&self) -> Result<(), ApiError> {
        let refuse = |message| Err(ApiError::bad_request(message));
        let range = 0.0..=2.0;
        if self.temperature.is_some_and(|temperature| !range.contains(&temperature)) {
            return refuse("temperature must be between 0 and 2");
        }
        if self.n.is_some_and(|n| n == 0 || n > MOST_CHOICES) {
            return refuse("n must be between 1 and 128");
        }
        if [self.max_completion_tokens, self.max_tokens].contains(&Some(0)) {
            return refuse("max_tokens must be at least 1");
        }
        if self.top_p.is_some_and(|top_p| top_p != 1.0) {
            return refuse("top_p other than 1 is not supported: it changes what is sampled from");
        }
        let penalised = |penalty: Option<f32>| penalty.is_some_and(|penalty| penalty != 0.0);
        if penalised(self.frequency_penalty) || penalised(self.presence_penalty) {
            return refuse("penalties are not supported: they change what is sampled from");
        }
        if self.logit_bias.as_ref().is_some_and(|bias| !bias.is_empty()) {
            return refuse("logit_bias is not supported: it changes what is sampled from");
        }
        if self.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
            return refuse("tools are not supported: describe them in a message");
        }
        // Also where a header wins over it.
        turn(self.turn_type.as_deref().filter(|name| !name.is_empty())).map(|_| ())
    }
}

/// A header as text. One that is none is refused: without it the turn would be another session's.
fn header<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, ApiError> {
    let text = headers.get(name).map(|value| value.to_str()).transpose();
    text.map_err(|_| ApiError::bad_request(&format!("the header {name} must be ASCII text")))
}

fn says_yes(text: &str) -> bool {
    ["1", "true", "yes", "on"].iter().any(|yes| text.trim().eq_ignore_ascii_case(yes))
}

fn turn(named: Option<&str>) -> Result<TurnType, ApiError> {
    match named.map(str::trim) {
        None => Ok(TurnType::Side),
        Some(name) if name.eq_ignore_ascii_case("main") => Ok(TurnType::Main),
        Some(name) if name.eq_ignore_ascii_case("side") => Ok(TurnType::Side),
        Some(_) => Err(ApiError::bad_request("the turn type must be \"main\" or \"side\"")),
    }
}

fn messages(value: &Value) -> Result<Vec<Message>, ApiError> {
    let list = value.as_array().filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| ApiError::bad_request("messages must be a non-empty list"))?;
    list.iter().map(message).collect()
}

fn message(value: &Value) -> Result<Message, ApiError> {
    let role = value.get("role").and_then(Value::as_str);
    let role = role.ok_or_else(|| ApiError::bad_request("each message must have a role"))?;
    let content = match value.get("content") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(part).collect::<Result<_, _>>()?,
        Some(_) => return Err(ApiError::bad_request("content must be a text or a list of texts")),
    };
    Ok(Message { role: role.to_owned(), content })
}

fn part(value: &Value) -> Result<&str, ApiError> {
    let text = value.get("text").and_then(Value::as_str);
    text.ok_or_else(|| ApiError::bad_request("content can only have parts of type \"text\""))
}

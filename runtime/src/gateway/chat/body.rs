//! What a client of chat completions asks for.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::conversation::Conversation;
use super::super::error::ApiError;
use super::super::request::{self, Place, PlaceBody, TurnRequest};
use crate::tokenizer::{Entry, ToolCall};

/// Most choices of one request.
const MOST_CHOICES: u32 = 128;
/// Most stop texts, as OpenAI has it.
const MOST_STOPS: usize = 4;

/// A chat completion, checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChatRequest {
    pub(super) turn: TurnRequest,
    pub(super) include_usage: bool,
    pub(super) logprobs: bool,
    pub(super) token_ids: bool,
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
    #[serde(flatten)]
    place: PlaceBody,
    top_p: Option<f32>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    logit_bias: Option<BTreeMap<String, Value>>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
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
    /// Reads a body and the headers that belong to it.
    pub(super) fn read(headers: &HeaderMap, bytes: &[u8]) -> Result<Self, ApiError> {
        let body: Body = request::json(bytes)?;
        body.check()?;
        let stop = match body.stop {
            None => Vec::new(),
            Some(Stop::One(text)) => vec![text],
            Some(Stop::Many(texts)) => texts,
        };
        let entries = messages(&body.messages)?;
        let next_state = next_state(&entries);
        let mut conversation = Conversation { entries, ..Conversation::default() };
        if chooses(body.tool_choice.as_ref(), body.parallel_tool_calls)? {
            body.tools.iter().flatten().try_for_each(|given| tool(&mut conversation, given))?;
        }
        let turn = TurnRequest {
            conversation,
            next_state,
            metadata: body.metadata.unwrap_or_default(),
            max_tokens: body.max_completion_tokens.or(body.max_tokens),
            temperature: request::temperature(body.temperature)?,
            seed: body.seed.map(i64::cast_unsigned),
            stop: request::stops(stop, "stop", MOST_STOPS)?,
            n: body.n.unwrap_or(1),
            stream: body.stream == Some(true),
            place: Place::read(headers, body.place)?,
        };
        let include_usage = body.stream_options.and_then(|options| options.include_usage);
        Ok(Self {
            turn,
            include_usage: include_usage == Some(true),
            logprobs: body.logprobs == Some(true),
            token_ids: body.return_token_ids == Some(true),
        })
    }
}

impl Body {
    /// What would be sampled from another distribution than the recorded one, or answered
    /// otherwise than asked, is refused rather than ignored.
    fn check(&self) -> Result<(), ApiError> {
        let refuse = |message| Err(ApiError::bad_request(message));
        if self.n.is_some_and(|n| n == 0 || n > MOST_CHOICES) {
            return refuse("n must be between 1 and 128");
        }
        if [self.max_completion_tokens, self.max_tokens].contains(&Some(0)) {
            return refuse("max_tokens must be at least 1");
        }
        request::top_p(self.top_p)?;
        let penalised = |penalty: Option<f32>| penalty.is_some_and(|penalty| penalty != 0.0);
        if penalised(self.frequency_penalty) || penalised(self.presence_penalty) {
            return refuse("penalties are not supported: they change what is sampled from");
        }
        if self.logit_bias.as_ref().is_some_and(|bias| !bias.is_empty()) {
            return refuse("logit_bias is not supported: it changes what is sampled from");
        }
        Ok(())
    }
}

/// Whether tools are offered. That one must be called, or no second one, cannot be had without
/// changing what is sampled from.
fn chooses(choice: Option<&Value>, parallel: Option<bool>) -> Result<bool, ApiError> {
    if parallel == Some(false) {
        return Err(ApiError::bad_request(
            "parallel_tool_calls other than true is not supported: it changes what is sampled from",
        ));
    }
    match choice {
        None | Some(Value::Null) => Ok(true),
        Some(choice) if choice == "auto" => Ok(true),
        Some(choice) if choice == "none" => Ok(false),
        Some(_) => Err(ApiError::bad_request(
            "tool_choice other than \"auto\" and \"none\" is not supported: it changes what is \
             sampled from",
        )),
    }
}

fn tool(conversation: &mut Conversation, given: &Value) -> Result<(), ApiError> {
    let function = &given["function"];
    let (Some("function"), Some(name)) = (given["type"].as_str(), function["name"].as_str()) else {
        let message = "each tool must have type \"function\" and a function with a name";
        return Err(ApiError::bad_request(message));
    };
    if !matches!(function["description"], Value::Null | Value::String(_))
        || !matches!(function["parameters"], Value::Null | Value::Object(_))
    {
        let message = "a tool's description must be a text, and its parameters a JSON schema";
        return Err(ApiError::bad_request(message));
    }
    if !matches!(function["strict"], Value::Null | Value::Bool(false)) {
        let message = "strict tools are not supported: they change what is sampled from";
        return Err(ApiError::bad_request(message));
    }
    conversation.offer(name, given.clone())
}

/// The last message, where it says what followed the session's turn before; of tools, all that
/// answer its calls.
fn next_state(entries: &[Entry]) -> Option<String> {
    let text = |entry: &Entry| entry.message.content.clone();
    let last = entries.last()?;
    match last.message.role.as_str() {
        "user" => Some(text(last)),
        "tool" => {
            let from = entries.iter().rposition(|entry| entry.message.role != "tool");
            let answers: Vec<String> =
                entries[from.map_or(0, |at| at + 1)..].iter().map(text).collect();
            Some(answers.join("\n"))
        }
        _ => None,
    }
}

fn messages(value: &Value) -> Result<Vec<Entry>, ApiError> {
    let list = value.as_array().filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| ApiError::bad_request("messages must be a non-empty list"))?;
    list.iter().map(message).collect()
}

fn message(value: &Value) -> Result<Entry, ApiError> {
    let role = value.get("role").and_then(Value::as_str);
    let role = role.ok_or_else(|| ApiError::bad_request("each message must have a role"))?;
    let content = match value.get("content") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(part).collect::<Result<_, _>>()?,
        Some(_) => return Err(ApiError::bad_request("content must be a text or a list of texts")),
    };
    let mut entry = Entry::new(role.to_owned(), content);
    match value.get("tool_calls") {
        None | Some(Value::Null) => {}
        Some(Value::Array(calls)) => {
            entry.calls = calls.iter().map(call).collect::<Result<_, _>>()?;
        }
        Some(_) => return Err(ApiError::bad_request("tool_calls must be a list")),
    }
    entry.answers = match value.get("tool_call_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id.clone()),
        Some(_) => return Err(ApiError::bad_request("tool_call_id must be a text")),
    };
    Ok(entry)
}

fn part(value: &Value) -> Result<&str, ApiError> {
    let text = value.get("text").and_then(Value::as_str);
    text.ok_or_else(|| ApiError::bad_request("content can only have parts of type \"text\""))
}

fn call(value: &Value) -> Result<ToolCall, ApiError> {
    let function = &value["function"];
    let (id, name) = (value["id"].as_str(), function["name"].as_str());
    let arguments = function["arguments"].as_str();
    let arguments = arguments.and_then(|text| match text {
        // As some agents write it where there are none.
        "" => Some(Map::new()),
        text => serde_json::from_str(text).ok(),
    });
    match (id, name, arguments) {
        (Some(id), Some(name), Some(arguments)) => {
            Ok(ToolCall { id: id.to_owned(), name: name.to_owned(), arguments })
        }
        _ => Err(ApiError::bad_request(
            "each of tool_calls must have an id and a function with its name and its arguments, a \
             JSON object as a text",
        )),
    }
}

/// A call in OpenAI's form.
pub(super) fn told(call: &ToolCall) -> Value {
    let ToolCall { id, name, arguments } = call;
    let arguments = Value::Object(arguments.clone()).to_string();
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

//! What a client of messages asks for.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::conversation::{Conversation, function};
use super::super::error::ApiError;
use super::super::request::{self, Place, PlaceBody, TurnRequest};
use crate::tokenizer::{Entry, ToolCall};

/// Most stop texts.
const MOST_STOPS: usize = 16;

/// The body, as it comes. Its `model` is not read: there is one policy.
#[derive(Deserialize)]
struct Body {
    max_tokens: u32,
    metadata: Option<BTreeMap<String, Option<String>>>,
    temperature: Option<f32>,
    seed: Option<i64>,
    stop_sequences: Option<Vec<String>>,
    stream: Option<bool>,
    top_p: Option<f32>,
    top_k: Option<Value>,
    output_format: Option<Value>,
    #[serde(flatten)]
    prompt: Prompt,
    #[serde(flatten)]
    place: PlaceBody,
}

/// What makes a prompt.
#[derive(Deserialize)]
pub(super) struct Prompt {
    #[serde(default)]
    messages: Value,
    system: Option<Value>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    mcp_servers: Option<Vec<Value>>,
}

/// Reads a body and the headers that belong to it.
pub(super) fn read(headers: &HeaderMap, bytes: &[u8]) -> Result<TurnRequest, ApiError> {
    let body: Body = request::json(bytes)?;
    let conversation = conversation(body.prompt)?;
    let refuse = |message| Err(ApiError::bad_request(message));
    if body.max_tokens == 0 {
        return refuse("max_tokens must be at least 1");
    }
    request::top_p(body.top_p)?;
    if body.top_k.is_some() {
        return refuse("top_k is not supported: it changes what is sampled from");
    }
    if body.output_format.is_some() {
        return refuse("output_format is not supported: it changes what is sampled from");
    }
    let stops = body.stop_sequences.unwrap_or_default();
    let metadata = body.metadata.unwrap_or_default().into_iter();
    Ok(TurnRequest {
        next_state: next_state(&conversation.entries),
        conversation,
        metadata: metadata.filter_map(|(key, value)| Some((key, value?))).collect(),
        max_tokens: Some(body.max_tokens),
        temperature: request::temperature(body.temperature)?,
        seed: body.seed.map(i64::cast_unsigned),
        stop: request::stops(stops, "stop_sequences", MOST_STOPS)?,
        n: 1,
        stream: body.stream == Some(true),
        place: Place::read(headers, body.place)?,
    })
}

/// The conversation that a prompt is made of.
pub(super) fn conversation(prompt: Prompt) -> Result<Conversation, ApiError> {
    let Prompt { messages, system, tools, tool_choice, mcp_servers } = prompt;
    let refuse = |message| Err(ApiError::bad_request(message));
    if mcp_servers.is_some_and(|servers| !servers.is_empty()) {
        return refuse("mcp_servers are not supported: the client has to call its tools itself");
    }
    let mut conversation = Conversation::default();
    if let Some(system) = system {
        let text = content(&system, "system")?;
        conversation.entries.push(Entry::new("system".to_owned(), text));
    }
    let list = messages.as_array().filter(|list| !list.is_empty());
    let Some(list) = list else { return refuse("messages must be a non-empty list") };
    for given in list {
        message(given, &mut conversation.entries)?;
    }
    if conversation.entries.last().is_some_and(|last| last.message.role == "assistant") {
        return refuse(
            "messages must end with one of the user: an answer that was begun is not gone on with",
        );
    }
    if tool_choice.as_ref().map_or(Ok(true), chooses)? {
        tools.iter().flatten().try_for_each(|given| tool(&mut conversation, given))?;
    }
    Ok(conversation)
}

/// Whether tools are offered. That one must be called, or no second one, cannot be had without
/// changing what is sampled from.
fn chooses(choice: &Value) -> Result<bool, ApiError> {
    let alone = choice.get("disable_parallel_tool_use").unwrap_or(&Value::Null);
    if !matches!(alone, Value::Null | Value::Bool(false)) {
        return Err(ApiError::bad_request(
            "disable_parallel_tool_use is not supported: it changes what is sampled from",
        ));
    }
    match choice["type"].as_str() {
        Some("auto") => Ok(true),
        Some("none") => Ok(false),
        _ => Err(ApiError::bad_request(
            "tool_choice other than auto and none is not supported: it changes what is sampled from",
        )),
    }
}

fn tool(conversation: &mut Conversation, given: &Value) -> Result<(), ApiError> {
    let refuse = |message| Err(ApiError::bad_request(message));
    if !given["type"].is_null() && given["type"] != "custom" {
        return refuse("only tools of the client are supported: name, description, input_schema");
    }
    if !matches!(given["strict"], Value::Null | Value::Bool(false)) {
        return refuse("strict tools are not supported: they change what is sampled from");
    }
    let (name, schema) = (given["name"].as_str(), &given["input_schema"]);
    let description = match &given["description"] {
        Value::Null => None,
        Value::String(text) => Some(text.as_str()),
        _ => return refuse("the description of a tool must be a text"),
    };
    match name {
        Some(name) if schema.is_object() => {
            conversation.offer(name, function(name, description, schema))
        }
        _ => refuse("each tool must have a name and an input_schema"),
    }
}

/// A message, which may be several: each result of a tool is one of the tool.
fn message(given: &Value, entries: &mut Vec<Entry>) -> Result<(), ApiError> {
    let content = given.get("content").unwrap_or(&Value::Null);
    let role = given.get("role").and_then(Value::as_str).unwrap_or_default();
    let (user, blocks) = match (role, content) {
        ("user" | "assistant", Value::String(text)) => {
            entries.push(Entry::new(role.to_owned(), text.clone()));
            return Ok(());
        }
        ("user" | "assistant", Value::Array(blocks)) => (role == "user", blocks),
        ("user" | "assistant", _) => {
            return Err(ApiError::bad_request("content must be a text or a list of blocks"));
        }
        _ => {
            let message = "each message must have the role user or assistant; what the system \
                           says stands in system";
            return Err(ApiError::bad_request(message));
        }
    };
    let mut said = Entry::new(role.to_owned(), String::new());
    let mut texts = 0_usize;
    for block in blocks {
        match block["type"].as_str() {
            Some("text") => {
                said.message.content.push_str(text(block)?);
                texts += 1;
            }
            Some("tool_use") if !user => said.calls.push(call(block)?),
            Some("tool_result") if user => entries.push(result(block)?),
            // The policy's own thinking is text: only another model's can come like this.
            Some("thinking" | "redacted_thinking") if !user => {}
            _ => {
                let known = if user { "text and tool_result" } else { "text and tool_use" };
                let message =
                    format!("a message of the {role} can only have blocks of type {known}");
                return Err(ApiError::bad_request(&message));
            }
        }
    }
    let results = user && texts == 0 && !blocks.is_empty();
    if !results {
        entries.push(said);
    }
    Ok(())
}

/// What followed the turn before: the last message, whatever it is made of.
fn next_state(entries: &[Entry]) -> Option<String> {
    let from = entries.iter().rposition(|entry| entry.message.role == "assistant");
    let last = &entries[from.map_or(0, |at| at + 1)..];
    let tools = last.iter().rev().skip(1).take_while(|entry| entry.message.role == "tool").count();
    let said = &last[last.len().saturating_sub(tools + 1)..];
    let texts: Vec<&str> = said.iter().map(|entry| entry.message.content.as_str()).collect();
    Some(texts.join("\n"))
}

fn result(block: &Value) -> Result<Entry, ApiError> {
    let id = block["tool_use_id"].as_str();
    let id = id.ok_or_else(|| ApiError::bad_request("a tool_result must have a tool_use_id"))?;
    let text = match &block["content"] {
        Value::Null => String::new(),
        given => content(given, "the content of a tool_result")?,
    };
    let mut entry = Entry::new("tool".to_owned(), text);
    entry.answers = Some(id.to_owned());
    Ok(entry)
}

fn call(block: &Value) -> Result<ToolCall, ApiError> {
    let (id, name) = (block["id"].as_str(), block["name"].as_str());
    let arguments: Option<&Map<String, Value>> = block["input"].as_object();
    match (id, name, arguments) {
        (Some(id), Some(name), Some(arguments)) => {
            Ok(ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.clone() })
        }
        _ => Err(ApiError::bad_request("a tool_use must have an id, a name and an input")),
    }
}

/// A text, or blocks of text.
fn content(given: &Value, what: &str) -> Result<String, ApiError> {
    match given {
        Value::String(text) => Ok(text.clone()),
        Value::Array(blocks) => blocks.iter().map(text).collect(),
        _ => Err(ApiError::bad_request(&format!("{what} must be a text or a list of text blocks"))),
    }
}

fn text(block: &Value) -> Result<&str, ApiError> {
    let text = block["text"].as_str().filter(|_| block["type"] == "text");
    text.ok_or_else(|| ApiError::bad_request("a block must be of type text, with its text"))
}

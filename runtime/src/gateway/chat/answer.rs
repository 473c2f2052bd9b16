//! Answers in OpenAI's form.

use axum::Json;
use axum::response::{IntoResponse, Response};
use headway_shared::id::RequestId;
use headway_shared::input::Finish;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::Gate;
use super::super::ask::Asked;
use super::super::calls::{Reader, split};
use super::super::stamp;
use super::body::{ChatRequest, told};
use crate::clock::wall_millis;
use crate::driver::Answer;
use crate::engine::Token;
use crate::tokenizer::Tokenizer;

/// A whole answer, as its clients read it.
#[derive(Serialize)]
struct Completion<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    choices: Vec<Said>,
    usage: Usage,
    policy_versions: Vec<Vec<(u32, u32)>>,
    sample_id: Option<u64>,
}

#[derive(Serialize)]
struct Said {
    index: usize,
    message: Spoken,
    finish_reason: &'static str,
    logprobs: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_ids: Option<Vec<u32>>,
}

#[derive(Serialize)]
struct Spoken {
    role: &'static str,
    /// None of an answer that is calls alone, as official clients expect it.
    content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
}

/// A whole answer.
pub(super) fn respond(
    gate: &Gate,
    request: &ChatRequest,
    asked: &Asked,
    answers: &[Answer],
) -> Response {
    let tokenizer = &*gate.tokenizer;
    let said = |(index, answer): (usize, &Answer)| {
        let mut reader = reader(request, asked.id, index);
        let tokens = answer.tokens.iter().map(|token| token.id);
        let mut pieces = reader.push_all(tokens, tokenizer);
        pieces.extend(reader.finish(tokenizer));
        let (content, calls) = split(pieces);
        let content = Some(content).filter(|text| calls.is_empty() || !text.is_empty());
        let tool_calls = calls.iter().map(told).collect();
        Said {
            index,
            message: Spoken { role: "assistant", content, tool_calls },
            finish_reason: finish_reason(answer.finish, calls.len()),
            logprobs: logprobs(request, &answer.tokens, tokenizer),
            token_ids: request.token_ids.then(|| ids(&answer.tokens)),
        }
    };
    let generated = answers.iter().map(|answer| answer.tokens.len()).sum();
    let body = Completion {
        head: head(gate, "chat.completion", asked.id, &asked.session),
        choices: answers.iter().enumerate().map(said).collect(),
        usage: usage(asked.prompt, generated),
        policy_versions: answers.iter().map(|answer| stamp::pairs(&answer.tokens)).collect(),
        sample_id: answers.first().and_then(|answer| answer.sample).map(|sample| sample.0),
    };
    let mut response = Json(body).into_response();
    stamp::put(response.headers_mut(), answers);
    response
}

/// Reads one choice.
pub(super) fn reader(request: &ChatRequest, id: RequestId, index: usize) -> Reader {
    let prefix = format!("call_{}_{index}", id.0);
    Reader::new(&request.turn.stop, &request.turn.conversation.names, prefix)
}

/// What every object of an answer begins with.
#[derive(Serialize)]
pub(super) struct Head<'a> {
    id: String,
    object: &'static str,
    created: i64,
    model: &'a str,
    session_id: &'a str,
}

pub(super) fn head<'a>(
    gate: &'a Gate,
    object: &'static str,
    id: RequestId,
    session: &'a str,
) -> Head<'a> {
    Head {
        id: format!("chatcmpl-{}", id.0),
        object,
        created: wall_millis() / 1000,
        model: &gate.options.model,
        session_id: session,
    }
}

/// Tokens of a request and its answers.
#[derive(Serialize)]
pub(super) struct Usage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
}

pub(super) const fn usage(prompt: usize, generated: usize) -> Usage {
    Usage { prompt_tokens: prompt, completion_tokens: generated, total_tokens: prompt + generated }
}

pub(super) const fn finish_reason(finish: Finish, calls: usize) -> &'static str {
    match finish {
        Finish::Stop if calls > 0 => "tool_calls",
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Aborted | Finish::Failed => "abort",
    }
}

/// The log-probabilities of tokens, as they were sampled; `null` where nobody asked. What else
/// could have been sampled is not known, so that `top_logprobs` is empty.
pub(super) fn logprobs(
    request: &ChatRequest,
    tokens: &[Token],
    tokenizer: &dyn Tokenizer,
) -> Value {
    if !request.logprobs {
        return Value::Null;
    }
    let content: Vec<Value> = tokens
        .iter()
        .map(|token| {
            let text = tokenizer.decode(&[token.id]);
            json!({"token": text, "logprob": token.logprob, "bytes": null, "top_logprobs": []})
        })
        .collect();
    json!({"content": content, "refusal": null})
}

/// Fields that are there only where they were asked for.
pub(super) fn extras(request: &ChatRequest, tokens: &[Token]) -> Option<(&'static str, Value)> {
    request.token_ids.then(|| ("token_ids", json!(ids(tokens))))
}

fn ids(tokens: &[Token]) -> Vec<u32> {
    tokens.iter().map(|token| token.id).collect()
}

pub(super) fn extend(object: &mut Value, extra: Option<(&'static str, Value)>) {
    if let (Value::Object(map), Some((key, value))) = (object, extra) {
        map.insert(key.to_owned(), value);
    }
}

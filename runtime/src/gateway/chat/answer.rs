//! Answers in OpenAI's form.

use axum::Json;
use axum::response::{IntoResponse, Response};
use headway_shared::id::RequestId;
use headway_shared::input::Finish;
use serde_json::{Map, Value, json};

use super::super::Gate;
use super::super::ask::Asked;
use super::super::calls::{Reader, split};
use super::super::stamp;
use super::body::{ChatRequest, told};
use crate::clock::wall_millis;
use crate::driver::Answer;
use crate::engine::Token;
use crate::tokenizer::Tokenizer;

/// A whole answer.
pub(super) fn respond(
    gate: &Gate,
    request: &ChatRequest,
    asked: &Asked,
    answers: &[Answer],
) -> Response {
    let tokenizer = &*gate.tokenizer;
    let mut choices = Vec::new();
    let mut generated = 0;
    for (index, answer) in answers.iter().enumerate() {
        let mut reader = reader(request, asked.id, index);
        let mut pieces: Vec<_> =
            answer.tokens.iter().flat_map(|token| reader.push(token.id, tokenizer)).collect();
        pieces.extend(reader.finish(tokenizer));
        let (content, calls) = split(pieces);
        generated += answer.tokens.len();
        let mut message = json!({"role": "assistant", "content": content});
        if !calls.is_empty() {
            message["tool_calls"] = calls.iter().map(told).collect();
            // As official clients expect it of an answer that is calls alone.
            message["content"] = Some(content).filter(|text| !text.is_empty()).into();
        }
        let mut choice = json!({
            "index": index,
            "message": message,
            "finish_reason": finish_reason(answer.finish, calls.len()),
            "logprobs": logprobs(request, &answer.tokens, tokenizer),
        });
        extend(&mut choice, extras(request, &answer.tokens));
        choices.push(choice);
    }
    let mut body = head(gate, "chat.completion", asked.id, &asked.session);
    body.insert("choices".to_owned(), Value::Array(choices));
    body.insert("usage".to_owned(), usage(asked.prompt, generated));
    let versions = answers.iter().map(|answer| stamp::versions(&answer.tokens)).collect();
    body.insert("policy_versions".to_owned(), versions);
    let sample = answers.first().and_then(|answer| answer.sample);
    body.insert("sample_id".to_owned(), json!(sample.map(|sample| sample.0)));
    let mut response = Json(Value::Object(body)).into_response();
    stamp::put(response.headers_mut(), answers);
    response
}

/// Reads one choice.
pub(super) fn reader(request: &ChatRequest, id: RequestId, index: usize) -> Reader {
    let prefix = format!("call_{}_{index}", id.0);
    Reader::new(&request.turn.stop, &request.turn.conversation.names, prefix)
}

/// What every object of an answer begins with.
pub(super) fn head(gate: &Gate, object: &str, id: RequestId, session: &str) -> Map<String, Value> {
    let value = json!({
        "id": format!("chatcmpl-{}", id.0),
        "object": object,
        "created": wall_millis() / 1000,
        "model": gate.options.model,
        "session_id": session,
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

pub(super) fn usage(prompt: usize, generated: usize) -> Value {
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "total_tokens": prompt + generated,
    })
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
    let ids: Vec<u32> = tokens.iter().map(|token| token.id).collect();
    request.token_ids.then(|| ("token_ids", json!(ids)))
}

pub(super) fn extend(object: &mut Value, extra: Option<(&'static str, Value)>) {
    if let (Value::Object(map), Some((key, value))) = (object, extra) {
        map.insert(key.to_owned(), value);
    }
}

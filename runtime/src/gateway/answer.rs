//! Answers in OpenAI's form.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use headway_shared::id::RequestId;
use headway_shared::input::{Finish, Segments};
use serde_json::{Map, Value, json};

use super::Gate;
use super::request::ChatRequest;
use super::text::TextStream;
use crate::clock::wall_millis;
use crate::driver::Answer;
use crate::engine::{Token, segments};
use crate::tokenizer::Tokenizer;

/// The versions of an answer: `version:tokens`, in the order in which they were generated; the
/// choices of an answer are separated by `;`.
const VERSIONS: &str = "x-policy-versions";
/// The version of the first token, where an answer is streamed.
const FIRST_VERSION: &str = "x-policy-version";
/// The sample that the first choice became.
const SAMPLE: &str = "x-sample-id";

/// A whole answer.
pub(super) fn respond(
    gate: &Gate,
    request: &ChatRequest,
    id: RequestId,
    session: &str,
    prompt: usize,
    answers: &[Answer],
) -> Response {
    let tokenizer = &*gate.tokenizer;
    let mut choices = Vec::new();
    let mut generated = 0;
    for (index, answer) in answers.iter().enumerate() {
        let mut text = TextStream::new(&request.stop);
        let mut content: String =
            answer.tokens.iter().map(|token| text.push(token.id, tokenizer)).collect();
        content.push_str(&text.finish(tokenizer));
        generated += answer.tokens.len();
        let mut choice = json!({
            "index": index,
            "message": {"role": "assistant", "content": content},
            "finish_reason": finish_reason(answer.finish),
            "logprobs": logprobs(request, &answer.tokens, tokenizer),
        });
        extend(&mut choice, extras(request, &answer.tokens));
        choices.push(choice);
    }
    let mut body = head(gate, "chat.completion", id, session);
    body.insert("choices".to_owned(), Value::Array(choices));
    body.insert("usage".to_owned(), usage(prompt, generated));
    body.insert("policy_versions".to_owned(), versions_of(answers));
    let sample = answers.first().and_then(|answer| answer.sample);
    body.insert("sample_id".to_owned(), json!(sample.map(|sample| sample.0)));
    let mut response = Json(Value::Object(body)).into_response();
    let lists: Vec<String> = answers.iter().map(|answer| list(&segments(&answer.tokens))).collect();
    put(response.headers_mut(), VERSIONS, &lists.join(";"));
    if let Some(sample) = sample {
        put(response.headers_mut(), SAMPLE, &sample.0.to_string());
    }
    response
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

pub(super) const fn finish_reason(finish: Finish) -> &'static str {
    match finish {
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

/// One list of `[version, tokens]` for each choice.
pub(super) fn versions_of(answers: &[Answer]) -> Value {
    answers.iter().map(|answer| versions(&answer.tokens)).collect()
}

pub(super) fn versions(tokens: &[Token]) -> Value {
    let pair = |segment: &headway_shared::input::Segment| {
        json!([segment.version.number(), segment.tokens])
    };
    segments(tokens).iter().map(pair).collect()
}

fn list(segments: &Segments) -> String {
    let pairs: Vec<String> = segments
        .iter()
        .map(|segment| format!("{}:{}", segment.version.number(), segment.tokens))
        .collect();
    pairs.join(",")
}

/// The header of a streamed answer.
pub(super) fn put_first_version(headers: &mut HeaderMap, token: Token) {
    put(headers, FIRST_VERSION, &token.version.number().to_string());
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

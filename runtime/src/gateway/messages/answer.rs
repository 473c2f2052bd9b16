//! Answers in Anthropic's form.

use axum::Json;
use axum::response::{IntoResponse, Response};
use headway_shared::id::RequestId;
use headway_shared::input::Finish;
use serde_json::{Value, json};

use super::super::Gate;
use super::super::ask::Asked;
use super::super::calls::{Piece, Reader};
use super::super::request::TurnRequest;
use super::super::stamp;
use crate::driver::Answer;

/// A whole answer.
pub(super) fn respond(
    gate: &Gate,
    request: &TurnRequest,
    asked: &Asked,
    answer: &Answer,
) -> Response {
    let mut reader = reader(request, asked.id);
    let mut blocks: Vec<Value> = Vec::new();
    let tokenizer = &*gate.tokenizer;
    for token in &*answer.tokens {
        reader.push(token.id, tokenizer).into_iter().for_each(|piece| add(&mut blocks, piece));
    }
    reader.finish(tokenizer).into_iter().for_each(|piece| add(&mut blocks, piece));
    let (reason, sequence) = stop_reason(answer.finish, &reader);
    let mut message = head(gate, asked, answer.tokens.len());
    message["content"] = blocks.into();
    message["stop_reason"] = json!(reason);
    message["stop_sequence"] = json!(sequence);
    message["policy_versions"] = stamp::versions(&answer.tokens);
    message["sample_id"] = json!(answer.sample.map(|sample| sample.0));
    let mut response = Json(message).into_response();
    stamp::put(response.headers_mut(), std::slice::from_ref(answer));
    response
}

/// Text that comes in pieces is one block.
fn add(blocks: &mut Vec<Value>, piece: Piece) {
    match (blocks.last_mut().and_then(|last| last.get_mut("text")), piece) {
        (Some(Value::String(text)), Piece::Text(more)) => text.push_str(&more),
        (_, Piece::Text(text)) => blocks.push(json!({"type": "text", "text": text})),
        (_, Piece::Call(call)) => blocks.push(json!({
            "type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments,
        })),
    }
}

pub(super) fn reader(request: &TurnRequest, id: RequestId) -> Reader {
    Reader::new(&request.stop, &request.conversation.names, format!("toolu_{}", id.0))
}

/// A message of which nothing is known but what was asked.
pub(super) fn head(gate: &Gate, asked: &Asked, generated: usize) -> Value {
    json!({
        "id": format!("msg_{}", asked.id.0),
        "type": "message",
        "role": "assistant",
        "model": gate.options.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {"input_tokens": asked.prompt, "output_tokens": generated},
        "session_id": asked.session,
    })
}

/// Why an answer ended, and the stop text that did it. One that a weight update cut short is as
/// unfinished as one that became too long.
pub(super) fn stop_reason(finish: Finish, reader: &Reader) -> (&'static str, Option<&str>) {
    match finish {
        Finish::Length | Finish::Aborted | Finish::Failed => ("max_tokens", None),
        Finish::Stop if reader.stopped().is_some() => ("stop_sequence", reader.stopped()),
        Finish::Stop if reader.calls() > 0 => ("tool_use", None),
        Finish::Stop => ("end_turn", None),
    }
}

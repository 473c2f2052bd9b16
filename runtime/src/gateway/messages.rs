//! `POST /v1/messages` and `/v1/messages/count_tokens`: the same turns in Anthropic's form.

mod answer;
mod body;
mod error;
mod stream;

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};

use super::Gate;
use super::ask::ask;
use super::error::ApiError;
use super::request;
use error::MessagesError;

type Body = Result<Bytes, BytesRejection>;

/// Handles a message, streamed or not.
pub(super) async fn create(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, MessagesError> {
    let bytes = open(&gate, &headers, body)?;
    let request = body::read(&headers, &bytes)?;
    let mut asked = ask(&gate, &request).await?;
    let choice = asked.choices.pop().ok_or_else(ApiError::ending)?;
    if request.stream {
        return Ok(stream::respond(&gate, &request, asked, choice).await?);
    }
    let answer = choice.answer().await?;
    Ok(answer::respond(&gate, &request, &asked, &answer))
}

/// Says how long the prompt of a message would be.
pub(super) async fn count_tokens(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, MessagesError> {
    let bytes = open(&gate, &headers, body)?;
    let prompt = body::conversation(request::json(&bytes)?)?.prompt(&*gate.tokenizer)?;
    Ok(Json(json!({"input_tokens": prompt.len()})))
}

/// There is no such method here.
pub(super) async fn wrong_method() -> MessagesError {
    ApiError::wrong_method().into()
}

fn open(gate: &Gate, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    gate.admit_either(headers)?;
    body.map_err(|error| ApiError::body(error.status(), &error.body_text()))
}

//! `POST /v1/chat/completions`

mod answer;
mod body;
mod stream;

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::HeaderMap;
use axum::response::Response;

use super::Gate;
use super::ask::ask;
use super::error::ApiError;
use body::ChatRequest;

/// Handles a chat completion, streamed or not.
pub(super) async fn completions(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    gate.admit(&headers)?;
    let bytes = body.map_err(|error| ApiError::body(error.status(), &error.body_text()))?;
    let request = ChatRequest::read(&headers, &bytes)?;
    let mut asked = ask(&gate, &request.turn).await?;
    if request.turn.stream {
        return stream::respond(&gate, request, asked).await;
    }
    let mut answers = Vec::with_capacity(asked.choices.len());
    for choice in std::mem::take(&mut asked.choices) {
        answers.push(choice.answer().await?);
    }
    Ok(answer::respond(&gate, &request, &asked, &answers))
}

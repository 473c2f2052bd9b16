//! Errors as Anthropic's clients understand them.

use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::super::error::ApiError;

/// An error for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) struct MessagesError(ApiError);

impl From<ApiError> for MessagesError {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

/// The whole object. `code` is ours: it tells a weight update from a pause.
pub(super) fn object(error: &ApiError) -> Value {
    let kind = match error.status().as_u16() {
        401 => "authentication_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    let error = json!({"type": kind, "message": error.message(), "code": error.code()});
    json!({"type": "error", "error": error})
}

impl IntoResponse for MessagesError {
    fn into_response(self) -> Response {
        let body = object(&self.0);
        self.0.respond(&body)
    }
}

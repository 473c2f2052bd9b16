//! Errors as OpenAI's clients understand them.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use headway_shared::action::Refusal;
use headway_shared::time::Span;
use serde_json::{Value, json};

use crate::trainer::external::Denied;

/// An error for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    code: &'static str,
    message: String,
    /// Seconds until the client may try again.
    retry_after: Option<u64>,
}

/// When a client may try again where nothing better is known.
const SOON: u64 = 1;

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, code: &'static str, message: &str) -> Self {
        Self { status, kind, code, message: message.to_owned(), retry_after: None }
    }

    pub(crate) fn bad_request(message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", "bad_request", message)
    }

    pub(crate) fn body(status: StatusCode, message: &str) -> Self {
        Self::new(status, "invalid_request_error", "bad_body", message)
    }

    pub(crate) fn unauthorized(message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "authentication_error", "unauthorized", message)
    }

    pub(crate) fn unknown_path() -> Self {
        let message = "there is nothing at this path; /openapi.json describes what there is";
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", "unknown_path", message)
    }

    pub(crate) fn wrong_method() -> Self {
        let message = "this path has no such method; /openapi.json describes it";
        let status = StatusCode::METHOD_NOT_ALLOWED;
        Self::new(status, "invalid_request_error", "wrong_method", message)
    }

    /// The generation failed.
    pub(crate) fn failed() -> Self {
        let message = "the turn could not be generated; nothing of it is trained on";
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self::new(status, "server_error", "generation_failed", message)
    }

    /// The record could not be written.
    pub(crate) fn unrecorded() -> Self {
        let message = "the run's record could not be written; the run ends";
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self::new(status, "server_error", "unrecorded", message)
    }

    /// A trainer is told no.
    pub(crate) fn denied(denied: &Denied) -> Self {
        let (status, kind, code) = match denied {
            Denied::LeaseLost(_) => (StatusCode::CONFLICT, "conflict_error", "lease_lost"),
            Denied::OtherBatch(_) => (StatusCode::CONFLICT, "conflict_error", "other_batch"),
            Denied::OtherVersion(_) => (StatusCode::CONFLICT, "conflict_error", "other_version"),
            Denied::Unkept(_) => (StatusCode::INTERNAL_SERVER_ERROR, "server_error", "unkept"),
            Denied::Over => return Self::ending(),
        };
        Self::new(status, kind, code, &denied.to_string())
    }

    /// So many pages look already.
    pub(crate) fn too_many_streams() -> Self {
        let message = "too many dashboards are open: close one";
        let status = StatusCode::TOO_MANY_REQUESTS;
        let error = Self::new(status, "rate_limit_error", "too_many_streams", message);
        Self { retry_after: Some(SOON), ..error }
    }

    /// The run is ending, or over.
    pub(crate) fn ending() -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let error = Self::new(status, "server_error", "ended", "the run is ending");
        Self { retry_after: Some(SOON), ..error }
    }

    /// The core refuses.
    pub(crate) fn refused(reason: Refusal, retry_after: Span) -> Self {
        let status = StatusCode::from_u16(reason.status()).unwrap_or(StatusCode::BAD_REQUEST);
        let kind = match reason.status() {
            429 => "rate_limit_error",
            503 => "server_error",
            _ => "invalid_request_error",
        };
        let seconds = retry_after.as_nanos().div_ceil(1_000_000_000);
        let error = Self::new(status, kind, reason.name(), explain(reason));
        Self { retry_after: (seconds > 0).then_some(seconds), ..error }
    }
}

/// What a client is told of a refusal.
const fn explain(reason: Refusal) -> &'static str {
    match reason {
        Refusal::Stale => {
            "the policy would have moved on too far before this turn is trained on \
             (max_head_off_policyness)"
        }
        Refusal::QueueFull => "a queue has no room for this turn (queue.max_size)",
        Refusal::Concurrency => "too many rollouts are running (max_concurrent_rollouts)",
        Refusal::HoldExpired => "no place became free in time (hold_sec)",
        Refusal::WeightSync => "submission paused for weight update",
        Refusal::NoReplica => "no replica of the policy serves now",
        Refusal::Paused => "submission paused by an operator",
        Refusal::Ended => "the run has ended",
        Refusal::BadGroup => {
            "group_size is above 1: name the turn's group in X-Group-Id, and ask for no more \
             members than it has"
        }
    }
}

impl ApiError {
    /// As it stands under `error`.
    pub(crate) fn object(&self) -> Value {
        let Self { kind, code, message, .. } = self;
        json!({"message": message, "type": kind, "param": null, "code": code})
    }
}

impl ApiError {
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) const fn code(&self) -> &'static str {
        self.code
    }

    /// The response, with this body.
    pub(super) fn respond(self, body: &Value) -> Response {
        // Not its message, which can quote the request.
        let (status, code) = (self.status.as_u16(), self.code);
        tracing::debug!(target: "headway", status, code, "a request is answered with an error");
        let mut response = (self.status, Json(body)).into_response();
        let Self { status, retry_after, .. } = self;
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({"error": self.object()});
        self.respond(&body)
    }
}

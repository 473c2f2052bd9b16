//! Answers as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use axum::response::Response;
use futures_core::Stream;
use headway_shared::id::RequestId;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::Gate;
use super::super::ask::{Asked, Choice, Leave, ended, first_token};
use super::super::calls::{Piece, Reader, split};
use super::super::error::ApiError;
use super::super::sse;
use super::super::stamp;
use super::answer::{self, Head, Usage, extend, extras, finish_reason, logprobs, usage};
use super::body::{ChatRequest, told};
use crate::driver::{Answer, TurnEvent};
use crate::engine::Token;

/// Answers once the first token of every choice is there, or a choice is over: until then a
/// refusal can still be an error of its own.
pub(super) async fn respond(
    gate: &Arc<Gate>,
    request: ChatRequest,
    asked: Asked,
) -> Result<Response, ApiError> {
    let mut lines = Vec::new();
    for (index, mut choice) in asked.choices.into_iter().enumerate() {
        let first = Some(choice.first().await?);
        let text = answer::reader(&request, asked.id, index);
        lines.push(Line { choice: Some(choice), first, text, begun: false });
    }
    let first = lines.first().and_then(|line| first_token(line.first.as_ref()?));
    let stream = Chunks {
        gate: gate.clone(),
        request,
        id: asked.id,
        session: asked.session,
        prompt: asked.prompt,
        generated: 0,
        lines,
        ready: VecDeque::new(),
        over: false,
    };
    let mut response = sse::respond(stream);
    if let Some(token) = first {
        stamp::put_first_version(response.headers_mut(), token);
    }
    Ok(response)
}

/// One choice of a streamed answer.
struct Line {
    /// `None`: it is over.
    choice: Option<Choice>,
    /// Its first event, until it is sent.
    first: Option<TurnEvent>,
    text: Reader,
    begun: bool,
}

impl Line {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<TurnEvent>> {
        match (self.first.take(), &mut self.choice) {
            (Some(first), _) => Poll::Ready(Some(first)),
            (None, Some(choice)) => choice.events.poll_recv(context),
            (None, None) => Poll::Pending,
        }
    }

    /// What pieces add to the message: text, then calls, each whole.
    fn delta(&mut self, pieces: Vec<Piece>) -> Value {
        let (text, calls) = split(pieces);
        let before = self.text.calls() - calls.len();
        let begun = std::mem::replace(&mut self.begun, true);
        let mut delta = if begun { json!({}) } else { json!({"role": "assistant"}) };
        if calls.is_empty() || !text.is_empty() {
            delta["content"] = json!(text);
        }
        if !calls.is_empty() {
            let with_index = |(place, call)| {
                let mut told = told(call);
                told["index"] = json!(before + place);
                told
            };
            delta["tool_calls"] = calls.iter().enumerate().map(with_index).collect();
        }
        delta
    }
}

/// One event.
#[derive(Serialize)]
struct Chunk<'c> {
    #[serde(flatten)]
    head: Head<'c>,
    choices: &'c Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

/// The events of a streamed answer.
struct Chunks {
    gate: Arc<Gate>,
    request: ChatRequest,
    id: RequestId,
    session: String,
    prompt: usize,
    generated: usize,
    lines: Vec<Line>,
    ready: VecDeque<Bytes>,
    over: bool,
}

impl Stream for Chunks {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            if self.over {
                return Poll::Ready(None);
            }
            let mut moved = false;
            for index in 0..self.lines.len() {
                while self.lines[index].choice.is_some()
                    && let Poll::Ready(event) = self.lines[index].poll(context)
                {
                    self.take(index, event);
                    moved = true;
                }
            }
            if self.lines.iter().all(|line| line.choice.is_none()) {
                self.close();
            } else if !moved {
                return Poll::Pending;
            }
        }
    }
}

impl Chunks {
    fn take(&mut self, index: usize, event: Option<TurnEvent>) {
        match event {
            Some(TurnEvent::Tokens(tokens)) => self.tokens(index, &tokens),
            Some(last) => {
                if let Some(Choice { leave, .. }) = &mut self.lines[index].choice {
                    Leave::answered(leave);
                }
                match ended(last) {
                    Ok(answer) => self.finish(index, &answer),
                    Err(error) => self.fail(index, &error),
                }
            }
            None => self.fail(index, &ApiError::ending()),
        }
    }

    fn tokens(&mut self, index: usize, tokens: &[Token]) {
        self.generated += tokens.len();
        let line = &mut self.lines[index];
        let tokenizer = &*self.gate.tokenizer;
        let pieces: Vec<Piece> =
            tokens.iter().flat_map(|token| line.text.push(token.id, tokenizer)).collect();
        let wanted = self.request.logprobs || self.request.token_ids;
        if pieces.is_empty() && !wanted && line.begun {
            return;
        }
        let delta = line.delta(pieces);
        let logprobs = logprobs(&self.request, tokens, tokenizer);
        let mut choice =
            json!({"index": index, "delta": delta, "finish_reason": null, "logprobs": logprobs});
        extend(&mut choice, extras(&self.request, tokens));
        self.send(&json!([choice]), None);
    }

    fn finish(&mut self, index: usize, answer: &Answer) {
        let line = &mut self.lines[index];
        let pieces = line.text.finish(&*self.gate.tokenizer);
        let delta = if pieces.is_empty() { json!({}) } else { line.delta(pieces) };
        line.choice = None;
        let reason = finish_reason(answer.finish, line.text.calls());
        let choice = json!({
            "index": index, "delta": delta, "finish_reason": reason, "logprobs": null,
            "policy_versions": stamp::versions(&answer.tokens),
            "sample_id": answer.sample.map(|sample| sample.0),
        });
        self.send(&json!([choice]), None);
    }

    /// An error in the middle of an answer: the status is long sent.
    fn fail(&mut self, index: usize, error: &ApiError) {
        self.lines[index].choice = None;
        self.ready.push_back(sse::data(&json!({"error": error.object()})));
    }

    fn close(&mut self) {
        if self.request.include_usage {
            self.send(&json!([]), Some(usage(self.prompt, self.generated)));
        }
        self.ready.push_back(Bytes::from_static(b"data: [DONE]\n\n"));
        self.over = true;
    }

    fn send(&mut self, choices: &Value, usage: Option<Usage>) {
        let head = answer::head(&self.gate, "chat.completion.chunk", self.id, &self.session);
        self.ready.push_back(sse::data(&Chunk { head, choices, usage }));
    }
}

//! Answers as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_core::Stream;
use headway_shared::id::RequestId;
use serde_json::{Value, json};

use super::Gate;
use super::answer::{self, extend, extras, finish_reason, logprobs, usage, versions};
use super::chat::{Asked, Choice, Leave, ended};
use super::error::ApiError;
use super::request::ChatRequest;
use super::text::TextStream;
use crate::driver::{Answer, TurnEvent};
use crate::engine::Token;

/// Answers once the first token of every choice is there, or a choice is over: until then a
/// refusal can still be an error of its own.
pub(super) async fn respond(
    gate: &Arc<Gate>,
    request: &ChatRequest,
    asked: Asked,
) -> Result<Response, ApiError> {
    let mut lines = Vec::new();
    for choice in asked.choices {
        lines.push(Line::begin(choice, request).await?);
    }
    let first = lines.first().and_then(|line| line.first_token());
    let stream = Chunks {
        gate: gate.clone(),
        request: request.clone(),
        id: asked.id,
        session: asked.session,
        prompt: asked.prompt,
        generated: 0,
        lines,
        ready: VecDeque::new(),
        over: false,
    };
    let mut response = Response::new(Body::from_stream(stream));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Some(token) = first {
        answer::put_first_version(headers, token);
    }
    Ok(response)
}

/// One choice of a streamed answer.
struct Line {
    /// `None`: it is over.
    choice: Option<Choice>,
    /// Its first event, until it is sent.
    first: Option<TurnEvent>,
    text: TextStream,
    begun: bool,
}

impl Line {
    async fn begin(mut choice: Choice, request: &ChatRequest) -> Result<Self, ApiError> {
        let first = choice.events.recv().await.ok_or_else(ApiError::ending);
        let first = match first {
            Ok(tokens @ TurnEvent::Tokens(_)) => tokens,
            Ok(last) => {
                choice.leave.answered();
                TurnEvent::Ended(ended(last)?)
            }
            Err(error) => return Err(error),
        };
        let text = TextStream::new(&request.stop);
        Ok(Self { choice: Some(choice), first: Some(first), text, begun: false })
    }

    fn first_token(&self) -> Option<Token> {
        match self.first.as_ref()? {
            TurnEvent::Tokens(tokens) => tokens.first().copied(),
            TurnEvent::Ended(answer) => answer.tokens.first().copied(),
            _ => None,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<TurnEvent>> {
        match (self.first.take(), &mut self.choice) {
            (Some(first), _) => Poll::Ready(Some(first)),
            (None, Some(choice)) => choice.events.poll_recv(context),
            (None, None) => Poll::Pending,
        }
    }
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
        let text: String = tokens.iter().map(|token| line.text.push(token.id, tokenizer)).collect();
        let wanted = self.request.logprobs || self.request.token_ids;
        if text.is_empty() && !wanted && line.begun {
            return;
        }
        let delta = match std::mem::replace(&mut line.begun, true) {
            false => json!({"role": "assistant", "content": text}),
            true => json!({"content": text}),
        };
        let logprobs = logprobs(&self.request, tokens, tokenizer);
        let mut choice =
            json!({"index": index, "delta": delta, "finish_reason": null, "logprobs": logprobs});
        extend(&mut choice, extras(&self.request, tokens));
        self.send(&json!([choice]), None);
    }

    fn finish(&mut self, index: usize, answer: &Answer) {
        let line = &mut self.lines[index];
        let text = line.text.finish(&*self.gate.tokenizer);
        let delta = if text.is_empty() { json!({}) } else { json!({"content": text}) };
        line.choice = None;
        let reason = finish_reason(answer.finish);
        let choice = json!({
            "index": index, "delta": delta, "finish_reason": reason, "logprobs": null,
            "policy_versions": versions(&answer.tokens),
            "sample_id": answer.sample.map(|sample| sample.0),
        });
        self.send(&json!([choice]), None);
    }

    /// An error in the middle of an answer: the status is long sent.
    fn fail(&mut self, index: usize, error: &ApiError) {
        self.lines[index].choice = None;
        self.event(&json!({"error": error.object()}));
    }

    fn close(&mut self) {
        if self.request.include_usage {
            self.send(&json!([]), Some(usage(self.prompt, self.generated)));
        }
        self.ready.push_back(Bytes::from_static(b"data: [DONE]\n\n"));
        self.over = true;
    }

    fn send(&mut self, choices: &Value, usage: Option<Value>) {
        let mut chunk = answer::head(&self.gate, "chat.completion.chunk", self.id, &self.session);
        chunk.insert("choices".to_owned(), choices.clone());
        if let Some(usage) = usage {
            chunk.insert("usage".to_owned(), usage);
        }
        self.event(&Value::Object(chunk));
    }

    fn event(&mut self, value: &Value) {
        self.ready.push_back(Bytes::from(format!("data: {value}\n\n")));
    }
}

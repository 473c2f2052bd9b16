//! Messages as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use axum::response::Response;
use futures_core::Stream;
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior};

use super::super::Gate;
use super::super::ask::{Asked, Choice, ended, first_token};
use super::super::calls::{Piece, Reader};
use super::super::error::ApiError;
use super::super::request::TurnRequest;
use super::super::{sse, stamp};
use super::answer::{head, reader, stop_reason};
use super::error;
use crate::driver::{Answer, TurnEvent};

/// So often at least something is said, also while weights are updated: whoever stands between
/// does not close the connection.
const PING: Duration = Duration::from_secs(15);

/// Answers once the first token is there, or the turn is over: until then a refusal can still be an
/// error of its own.
pub(super) async fn respond(
    gate: &Arc<Gate>,
    request: &TurnRequest,
    asked: Asked,
    mut choice: Choice,
) -> Result<Response, ApiError> {
    let first = choice.first().await?;
    let token = first_token(&first);
    let mut pings = tokio::time::interval_at(tokio::time::Instant::now() + PING, PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut events = Events {
        gate: gate.clone(),
        reader: reader(request, asked.id),
        prompt: asked.prompt,
        choice: Some(choice),
        open: None,
        blocks: 0,
        pings,
        ready: VecDeque::new(),
    };
    events.say("message_start", json!({"message": head(gate, &asked, 0)}));
    events.say("ping", json!({}));
    events.take(Some(first));
    let mut response = sse::respond(events);
    if let Some(token) = token {
        stamp::put_first_version(response.headers_mut(), token);
    }
    Ok(response)
}

/// The events of a streamed message.
struct Events {
    gate: Arc<Gate>,
    reader: Reader,
    prompt: usize,
    /// `None`: it is over.
    choice: Option<Choice>,
    /// The block of text that is open.
    open: Option<usize>,
    /// Blocks that were begun.
    blocks: usize,
    pings: Interval,
    ready: VecDeque<Bytes>,
}

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            let Some(choice) = &mut self.choice else { return Poll::Ready(None) };
            match choice.events.poll_recv(context) {
                Poll::Ready(event) => self.take(event),
                Poll::Pending if self.pings.poll_tick(context).is_ready() => {
                    self.say("ping", json!({}));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Events {
    fn take(&mut self, event: Option<TurnEvent>) {
        let last = match event {
            Some(TurnEvent::Tokens(tokens)) => {
                let gate = self.gate.clone();
                for token in tokens {
                    let pieces = self.reader.push(token.id, &*gate.tokenizer);
                    self.add(pieces);
                }
                return;
            }
            Some(last) => {
                if let Some(choice) = &mut self.choice {
                    choice.leave.answered();
                }
                ended(last)
            }
            None => Err(ApiError::ending()),
        };
        self.choice = None;
        match last {
            Ok(answer) => self.finish(&answer),
            // In the middle of an answer: the status is long sent.
            Err(error) => self.ready.push_back(sse::event("error", &error::object(&error))),
        }
    }

    fn add(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => {
                    let index = match self.open {
                        Some(index) => index,
                        None => {
                            let index = self.begin(&json!({"type": "text", "text": ""}));
                            self.open = Some(index);
                            index
                        }
                    };
                    let delta = json!({"type": "text_delta", "text": text});
                    self.say("content_block_delta", json!({"index": index, "delta": delta}));
                }
                Piece::Call(call) => {
                    self.close_text();
                    let block = json!({
                        "type": "tool_use", "id": call.id, "name": call.name, "input": {},
                    });
                    let index = self.begin(&block);
                    let input = Value::Object(call.arguments).to_string();
                    let delta = json!({"type": "input_json_delta", "partial_json": input});
                    self.say("content_block_delta", json!({"index": index, "delta": delta}));
                    self.say("content_block_stop", json!({"index": index}));
                }
            }
        }
    }

    fn begin(&mut self, block: &Value) -> usize {
        let index = self.blocks;
        self.blocks += 1;
        self.say("content_block_start", json!({"index": index, "content_block": block}));
        index
    }

    fn close_text(&mut self) {
        if let Some(index) = self.open.take() {
            self.say("content_block_stop", json!({"index": index}));
        }
    }

    fn finish(&mut self, answer: &Answer) {
        let gate = self.gate.clone();
        let pieces = self.reader.finish(&*gate.tokenizer);
        self.add(pieces);
        self.close_text();
        let (reason, sequence) = stop_reason(answer.finish, &self.reader);
        let event = json!({
            "delta": {"stop_reason": reason, "stop_sequence": sequence},
            "usage": {"input_tokens": self.prompt, "output_tokens": answer.tokens.len()},
            "policy_versions": stamp::versions(&answer.tokens),
            "sample_id": answer.sample.map(|sample| sample.0),
        });
        self.say("message_delta", event);
        self.say("message_stop", json!({}));
    }

    /// An event, whose data begin with its name.
    fn say(&mut self, name: &str, fields: Value) {
        let mut data = json!({"type": name});
        if let (Value::Object(data), Value::Object(fields)) = (&mut data, fields) {
            data.extend(fields);
        }
        self.ready.push_back(sse::event(name, &data));
    }
}

//! Payloads: what the core never sees.

use std::sync::Arc;

use headway_shared::core::Sample;
use headway_shared::id::{ReplicaId, SampleId, SessionId};
use headway_shared::input::Finish;
use headway_shared::time::Time;
use tokio::sync::mpsc;

use super::message::TurnEvent;
use crate::engine::{Sampling, Token};
use crate::store::{LiveSample, Question};
use crate::trainer::TrainSample;

/// A request, from its arrival until it is answered and runs no more.
pub(super) struct Turn {
    pub(super) session: SessionId,
    pub(super) question: Arc<Question>,
    pub(super) sampling: Sampling,
    pub(super) streamed: bool,
    /// Where the answer goes; `None`: it is answered, or its client has left.
    pub(super) events: Option<mpsc::UnboundedSender<TurnEvent>>,
    pub(super) attempt: u32,
    pub(super) replica: Option<ReplicaId>,
    pub(super) sample: Option<SampleId>,
    /// What counts of all its attempts.
    pub(super) tokens: Vec<Token>,
    pub(super) first_token: Option<Time>,
    pub(super) finish: Finish,
}

/// A sample, from its admission until it is resolved.
pub(super) struct Payload {
    pub(super) question: Arc<Question>,
    pub(super) tokens: Arc<[Token]>,
    pub(super) response: Arc<str>,
    pub(super) next_state: Option<Arc<str>>,
}

impl Payload {
    pub(super) fn new(question: Arc<Question>) -> Self {
        Self { question, tokens: Arc::from([]), response: Arc::from(""), next_state: None }
    }

    /// As the trainer sees it.
    pub(super) fn train_sample(&self, sample: &Sample) -> TrainSample {
        let (prompt, tokens) = (&self.question.prompt, &self.tokens);
        let pad = prompt.len();
        let generated = |before, of: fn(&Token) -> _| {
            std::iter::repeat_n(before, pad).chain(tokens.iter().map(of)).collect()
        };
        let versions = std::iter::repeat_n(sample.head, pad);
        let versions = versions.chain(tokens.iter().map(|token| token.version)).collect();
        TrainSample {
            id: sample.id,
            group: sample.group,
            tokens: prompt.iter().copied().chain(tokens.iter().map(|token| token.id)).collect(),
            loss_mask: (0..pad + tokens.len()).map(|place| place >= pad).collect(),
            rollout_logprobs: generated(0.0, |token| token.logprob),
            versions,
            reward: f64::from(sample.score) / 1e6,
            masked: sample.masked,
        }
    }
}

impl From<LiveSample> for Payload {
    fn from(sample: LiveSample) -> Self {
        Self {
            question: sample.question,
            tokens: sample.tokens.into(),
            response: sample.response,
            next_state: sample.next_state,
        }
    }
}

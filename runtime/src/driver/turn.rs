//! Payloads: what the core never sees.

use std::sync::Arc;

use headway_shared::id::{ReplicaId, SampleId, SessionId};
use headway_shared::input::Finish;
use headway_shared::time::Time;
use tokio::sync::mpsc;

use super::message::TurnEvent;
use crate::engine::{Sampling, Token};
use crate::judge::Case;
use crate::store::{LiveSample, Question};
use crate::trajectory::Part;

/// A request, from its arrival until it is answered and runs no more.
pub(super) struct Turn {
    pub(super) session: SessionId,
    pub(super) question: Arc<Question>,
    pub(super) sampling: Sampling,
    pub(super) streamed: bool,
    /// The last turn of a trajectory: its session's name is free when the core has ended it.
    pub(super) last: bool,
    /// Where the answer goes; `None`: it is answered, or its client has left.
    pub(super) events: Option<mpsc::UnboundedSender<TurnEvent>>,
    pub(super) attempt: u32,
    pub(super) replica: Option<ReplicaId>,
    pub(super) sample: Option<SampleId>,
    /// What counts of all its attempts.
    pub(super) tokens: Vec<Token>,
    pub(super) first_token: Option<Time>,
    /// The engine said something of it that cannot be, such as a log-probability that is no number.
    pub(super) broken: bool,
    pub(super) finish: Finish,
}

/// A sample, from its admission until it is resolved.
pub(super) struct Payload {
    /// What its judge sees as asked: of its last turn.
    pub(super) question: Arc<Question>,
    /// What was generated: at most one turn, unless a sample is a session.
    pub(super) parts: Vec<Part>,
}

impl Payload {
    pub(super) fn new(question: Arc<Question>) -> Self {
        Self { question, parts: Vec::new() }
    }

    /// A turn of it has ended. What its requests said about themselves is kept together; where two
    /// say it differently, the later counts.
    pub(super) fn add(&mut self, question: &Arc<Question>, part: Part) {
        let said = question.metadata.iter().map(|(key, value)| (key.clone(), value.clone()));
        let metadata = self.question.metadata.clone().into_iter().chain(said).collect();
        let Question { messages, prompt, .. } = &**question;
        let (messages, prompt) = (messages.clone(), prompt.clone());
        self.question = Arc::new(Question { messages, metadata, prompt });
        self.parts.push(part);
    }

    /// What is judged: the conversation up to its last turn, that turn, and what followed it.
    pub(super) fn case(&self) -> Case {
        let last = self.parts.last();
        Case {
            question: self.question.clone(),
            response: last.map_or_else(|| Arc::from(""), |part| part.response.clone()),
            next_state: last.and_then(|part| part.next_state.clone()),
        }
    }
}

impl From<LiveSample> for Payload {
    fn from(sample: LiveSample) -> Self {
        Self { question: sample.question, parts: sample.parts }
    }
}

//! What a transaction writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use headway_shared::core::Sample;
use headway_shared::digest::Digest;
use headway_shared::id::{GroupId, RequestId, SampleId, SessionId, StepId, VoteId};
use headway_shared::input::{Finish, Input, VoteOutcome};
use headway_shared::time::Time;
use headway_shared::version::LearnerVersion;

use crate::engine::Token;
use crate::tokenizer::Message;
use crate::trainer::StepMetric;
use crate::trajectory::Part;

/// What is known of a turn before it is generated.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The conversation.
    pub messages: Vec<Message>,
    /// What the request said about itself, such as the expected answer.
    pub metadata: BTreeMap<String, String>,
    /// Its prompt.
    pub prompt: Arc<[u32]>,
}

/// One row, in the order in which its input caused it.
#[derive(Clone, Debug)]
pub enum Row {
    /// The core handled an input.
    Input {
        /// Its number.
        seq: u64,
        /// When.
        at: Time,
        /// What.
        input: Box<Input>,
        /// The digest of its actions.
        actions: Digest,
    },
    /// A session has a name.
    SessionNamed {
        /// Its number.
        id: SessionId,
        /// Its name.
        name: String,
    },
    /// A session is over; its name may come again.
    SessionEnded {
        /// Its number.
        id: SessionId,
    },
    /// A group has a name.
    GroupNamed {
        /// Its number.
        id: GroupId,
        /// Its name.
        name: String,
    },
    /// A turn was admitted, as a sample or as the first of one.
    Admitted {
        /// The sample it becomes.
        sample: SampleId,
        /// Its request.
        request: RequestId,
        /// Its session.
        session: SessionId,
        /// Its group.
        group: Option<GroupId>,
        /// The input that admitted it.
        seq: u64,
        /// What was asked.
        question: Arc<Question>,
    },
    /// A turn was generated, which is a sample.
    Generated {
        /// The sample.
        sample: SampleId,
        /// What was generated.
        tokens: Arc<[Token]>,
        /// How it ended.
        finish: Finish,
        /// Its text.
        response: Arc<str>,
    },
    /// A turn of a trajectory was generated.
    Turn {
        /// The sample.
        sample: SampleId,
        /// Which of its turns, from 0.
        turn: usize,
        /// Its request.
        request: RequestId,
        /// The input that ended it.
        seq: u64,
        /// What its judge sees as asked from here on.
        question: Arc<Question>,
        /// What was generated.
        part: Box<Part>,
        /// How it ended.
        finish: Finish,
    },
    /// The next state of a turn arrived.
    NextState {
        /// The sample.
        sample: SampleId,
        /// Which of its turns, where it is a trajectory.
        turn: Option<usize>,
        /// What followed it.
        text: Arc<str>,
    },
    /// A vote started.
    VoteStarted {
        /// The vote.
        vote: VoteId,
        /// The sample.
        sample: SampleId,
        /// The input that started it.
        seq: u64,
    },
    /// A vote ended.
    VoteEnded {
        /// The vote.
        vote: VoteId,
        /// The input that ended it.
        seq: u64,
        /// What it said.
        outcome: VoteOutcome,
        /// Tokens that the judge read and wrote.
        tokens: u32,
        /// The judge's version.
        judge_version: u32,
    },
    /// A sample left the ledger.
    Resolved {
        /// The sample, as the core had it.
        sample: Box<Sample>,
        /// The step that trained it; `None`: it was discarded.
        step: Option<StepId>,
        /// `trained`, or why it was discarded.
        fate: &'static str,
        /// The input that resolved it.
        seq: u64,
    },
    /// A train step started.
    StepStarted {
        /// The step.
        step: StepId,
        /// The version it starts from.
        learner: LearnerVersion,
        /// Its samples.
        samples: Vec<SampleId>,
        /// The input that started it.
        seq: u64,
    },
    /// A train step ended.
    StepEnded {
        /// The step.
        step: StepId,
        /// Whether it made a version.
        ok: bool,
        /// What the trainer measured.
        metrics: Vec<StepMetric>,
        /// The input that ended it.
        seq: u64,
    },
    /// The state after so many inputs.
    Snapshot {
        /// How many inputs precede it.
        inputs: u64,
        /// The core.
        core: Vec<u8>,
        /// What the driver knows of work in flight.
        book: Vec<u8>,
    },
}

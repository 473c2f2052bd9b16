//! Facts from outside: everything the core may read.
//!
//! An input holds every fact that a decision reads (token counts, segments, finish reasons, scores
//! in millionths) and never text, tokens or log-probabilities: those are payloads that a driver
//! stores under the [`SampleId`](crate::id::SampleId).
//!
//! Inputs may come late, twice, out of order, or for something long gone: they are counted and
//! ignored. Every action that starts work has exactly one terminal input; when a replica goes
//! [down](Input::ReplicaDown), that is the terminal input of everything that ran on it.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::config::{Config, Signal};
use crate::id::{GroupId, PublicationId, ReplicaId, RequestId, SessionId, StepId, VoteId};
use crate::time::Time;
use crate::version::{DeployVersion, LearnerVersion, RolloutVersion};

/// A score in millionths: `1_000_000` is a reward of 1.
pub type Score = i32;

/// A run of tokens that one version generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Stamped by the engine that generated the tokens.
    pub version: RolloutVersion,
    /// How many tokens, at least 1.
    pub tokens: u32,
}

/// The segments of a turn, oldest first. Neighbours have different versions.
pub type Segments = SmallVec<[Segment; 2]>;

/// Whether a turn may be trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnType {
    /// Trains, if the gate admits it.
    Main,
    /// Is served and never trains; η does not gate it.
    Side,
}

/// A client asks for one turn of a session.
///
/// It also tells that the next state of the session's previous turn has arrived, whether or not
/// this request is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its own identity, for the reply.
    pub request: RequestId,
    /// The session it belongs to.
    pub session: SessionId,
    /// The group of rollouts of one prompt; needed where `group_size` is above 1.
    pub group: Option<GroupId>,
    /// Whether it may train.
    pub turn: TurnType,
    /// Length of the prompt, in tokens.
    pub prompt_tokens: u32,
    /// The client reads tokens as they come, so that a restart would contradict what it has read.
    pub streamed: bool,
    /// This is the session's last turn.
    pub last: bool,
}

/// How a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The policy ended its turn.
    Stop,
    /// It reached its token limit.
    Length,
    /// It was aborted, by the core or by the engine; the segments hold what there was.
    Aborted,
    /// The engine failed.
    Failed,
}

/// What a step of an environment led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvironmentOutcome {
    /// Reset, or stepped: the session goes on.
    Ready,
    /// The episode is over; its last next state has arrived.
    Done,
    /// It failed, or did not stop in time after it was cancelled.
    Failed,
}

/// What a vote said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VoteOutcome {
    /// A score in millionths.
    Score(Score),
    /// The judge answered, but no score could be read from it.
    Invalid,
    /// The judge did not answer (an error, or cancelled).
    Failed,
}

/// What became of publishing or loading weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightsEvent {
    /// The learner's weights are exported and can be fetched.
    Saved,
    /// The export failed.
    SaveFailed,
    /// The replica has fetched the weights, and begins to load them.
    Transferred(ReplicaId),
    /// The transfer failed; the replica still holds its old weights.
    TransferFailed(ReplicaId),
    /// The replica holds the new weights and generates with them from here on.
    Loaded(ReplicaId),
    /// The load failed. `intact`: the replica still holds its old weights, whole.
    LoadFailed {
        /// Which replica.
        replica: ReplicaId,
        /// Its old weights are whole.
        intact: bool,
    },
}

/// A configuration in a record is text, as in its header: keys that come later would shift what
/// follows them.
mod config_as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::config::Config;

    pub(super) fn serialize<S: Serializer>(config: &Config, to: S) -> Result<S::Ok, S::Error> {
        match to.is_human_readable() {
            true => config.serialize(to),
            false => config.canonical_json().serialize(to),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Box<Config>, D::Error> {
        if from.is_human_readable() {
            return Box::deserialize(from);
        }
        let text = String::deserialize(from)?;
        serde_json::from_str(&text).map_err(D::Error::custom)
    }
}

/// What an operator wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// Admit nothing until resumed (503); what is admitted goes on.
    Pause,
    /// Admit again.
    Resume,
    /// Replace the whole configuration. An invalid one changes nothing.
    Reconfigure(#[serde(with = "config_as_text")] Box<Config>),
    /// Publish the learner's weights as soon as no other publication is under way, and load them on
    /// every replica, whether or not it lacks them. The reply does not wait for that. Rejected
    /// where the run has ended.
    Publish,
}

/// What a trainer measured on the batch of a step that made a version, in millionths; `None` where
/// it did not measure that, or the number is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// The step.
    pub step: StepId,
    /// Mean absolute difference of the log-probabilities that the trainer computes when the step
    /// starts and that were recorded at generation, in millionths of a nat.
    pub logprob_abs_diff: Option<u32>,
    /// Share of the tokens that the correction changed.
    pub clipped_fraction: Option<u32>,
    /// Effective sample size of the tokens weighed by learner/rollout, as a share of them.
    pub ess: Option<u32>,
}

impl Measured {
    /// The measurement of a signal; `None` also where there is no signal.
    #[must_use]
    pub const fn of(&self, signal: Signal) -> Option<u32> {
        match signal {
            Signal::Off => None,
            Signal::LogprobAbsDiff => self.logprob_abs_diff,
            Signal::ClippedFraction => self.clipped_fraction,
            Signal::Ess => self.ess,
        }
    }
}

/// A fact from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// A client asks for a turn.
    Request(Request),
    /// The client of a request has gone.
    ClientLeft {
        /// Its request.
        request: RequestId,
    },
    /// A session asks for an environment.
    SessionStarted {
        /// The session.
        session: SessionId,
    },
    /// The next state of the session's last turn has arrived, without a request.
    NextState {
        /// The session.
        session: SessionId,
    },
    /// A session is over; a turn that still waits for its next state gets none.
    SessionEnded {
        /// The session.
        session: SessionId,
    },
    /// No new session or group will come.
    SourceExhausted,
    /// A generation ended.
    GenerationEnded {
        /// The request it belongs to.
        request: RequestId,
        /// The attempt that ended.
        attempt: u32,
        /// How it ended.
        finish: Finish,
        /// When its first token was generated, if there was one.
        first_token: Option<Time>,
        /// What was generated by this attempt (with `resume`: also by those before it).
        segments: Segments,
    },
    /// A reset or step of an environment ended.
    EnvironmentEnded {
        /// The session.
        session: SessionId,
        /// The attempt that ended.
        attempt: u32,
        /// What it led to.
        outcome: EnvironmentOutcome,
    },
    /// A vote ended.
    VoteEnded {
        /// The vote.
        vote: VoteId,
        /// What it said.
        outcome: VoteOutcome,
        /// Tokens that the judge read and wrote.
        tokens: u32,
        /// The judge's version.
        judge_version: u32,
    },
    /// A train step ended.
    StepEnded {
        /// The step.
        step: StepId,
        /// Whether it made a new learner version.
        ok: bool,
    },
    /// Weights were saved, transferred, loaded, or one of these failed.
    Weights {
        /// The publication it belongs to.
        publication: PublicationId,
        /// What happened.
        event: WeightsEvent,
    },
    /// A replica serves, and holds these weights.
    ReplicaUp {
        /// The replica.
        replica: ReplicaId,
        /// The weights it holds.
        deploy: DeployVersion,
    },
    /// A replica is gone, and everything that ran on it.
    ReplicaDown {
        /// The replica.
        replica: ReplicaId,
    },
    /// A checkpoint of this version is on disk.
    Checkpointed {
        /// The version.
        version: LearnerVersion,
    },
    /// The learner holds an older checkpoint again.
    Restored {
        /// The version of the checkpoint.
        checkpoint: LearnerVersion,
    },
    /// The record could not be written: the run ends.
    CommitFailed,
    /// An operator wants something.
    Operator(Operator),
    /// Time passed: see [`Scheduler::poll_timeout`](crate::core::Scheduler::poll_timeout).
    Tick,
    /// What was measured of the last train step that made a version, for an adaptive bound. It
    /// follows [`StepEnded`](Self::StepEnded), once.
    Measured(Measured),
}

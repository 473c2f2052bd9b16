//! Decisions of the core: what a driver has to do. Small and `Copy`.

use serde::{Deserialize, Serialize};

use crate::config::KvOnSync;
use crate::digest::Digest;
use crate::id::{PublicationId, ReplicaId, RequestId, SampleId, SessionId, StepId, VoteId};
use crate::time::Span;
use crate::version::{DeployVersion, LearnerVersion};

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every reason, in the order of its columns.
            pub const ALL: &[$name] = &[$($name::$variant,)*];
            /// How many reasons there are.
            pub const COUNT: usize = Self::ALL.len();

            /// Its name in tables and records.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// Its place in [`ALL`](Self::ALL).
            #[must_use]
            pub const fn index(self) -> usize {
                self as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

reasons! {
    /// Why a request was refused.
    Refusal {
        /// 429: the gate has no capacity (the staleness bound).
        Stale = "stale",
        /// 429: a queue has no room to reserve.
        QueueFull = "queue_full",
        /// 429: `max_concurrent_rollouts` are running.
        Concurrency = "concurrency",
        /// 429: it was held for `hold_sec` and found no place.
        HoldExpired = "hold_expired",
        /// 503: weights are being updated.
        WeightSync = "weight_sync",
        /// 503: no replica holds whole weights.
        NoReplica = "no_replica",
        /// 503: an operator has paused the run.
        Paused = "paused",
        /// 503: the run has ended.
        Ended = "ended",
        /// 400: `group_size` is above 1, and the request names no group, or one that is complete.
        BadGroup = "bad_group",
    }
}

impl Refusal {
    /// The HTTP status it is answered with.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Stale | Self::QueueFull | Self::Concurrency | Self::HoldExpired => 429,
            Self::WeightSync | Self::NoReplica | Self::Paused | Self::Ended => 503,
            Self::BadGroup => 400,
        }
    }
}

reasons! {
    /// Why an admitted sample was not trained.
    Discard {
        /// Older than η when it would have been trained (`bound = "strict"`).
        Late = "late",
        /// Older than `stale_filter_steps`.
        StaleFilter = "stale_filter",
        /// Parked, and older than the bound before its next state had come and a place was free.
        StaleParked = "stale_parked",
        /// Its generation was aborted by a weight sync.
        Aborted = "aborted",
        /// Its client left.
        ClientLeft = "client_left",
        /// The engine failed, or did not answer within `generation_timeout_sec`.
        GenerationFailed = "generation_failed",
        /// Its replica went down.
        ReplicaLost = "replica_lost",
        /// Its version stamps are impossible: newer than its replica, out of order, or mixed where
        /// nothing mixes.
        BadStamp = "bad_stamp",
        /// It has no tokens.
        Empty = "empty",
        /// Its session ended without a next state.
        NoNextState = "no_next_state",
        /// Its environment failed.
        EnvironmentFailed = "environment_failed",
        /// Too few votes were valid.
        JudgeFailed = "judge_failed",
        /// Its votes were a tie.
        Tie = "tie",
        /// Its score was zero.
        ZeroScore = "zero_score",
        /// The rollout queue was full.
        RolloutQueueFull = "rollout_queue_full",
        /// The output queue was full.
        OutputQueueFull = "output_queue_full",
        /// Its group kept fewer than `min_group_size` members.
        GroupTooSmall = "group_too_small",
        /// A drain or a step took it and kept only a batch.
        Surplus = "surplus",
        /// Its train step failed more than `train_retries` times.
        StepFailed = "step_failed",
        /// The policy that generated it no longer exists (a rollback).
        LostWeights = "lost_weights",
        /// Its group waited for it no longer.
        Straggler = "straggler",
        /// All scores of its group were equal (`filter = "zero_variance"`).
        ZeroVariance = "zero_variance",
    }
}

/// How a turn ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It is complete.
    Complete,
    /// It was cut short; the client gets what there is.
    Partial,
    /// It failed (500).
    Failed,
}

/// What a replica does with the turns it is generating while it loads weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InFlight {
    /// There are none: the replica was drained.
    Drained,
    /// They stand still during transfer and load.
    Frozen,
    /// They go on; the replica swaps between two decode steps.
    Running,
}

/// Why a run cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum RunError {
    /// Every attempt to publish failed.
    #[error("publication failed {attempts} times in a row: weights are not reaching the replicas")]
    PublicationFailed {
        /// Attempts, the first included.
        attempts: u32,
    },
    /// The record could not be written.
    #[error("the record could not be written")]
    CommitFailed,
    /// The core broke one of its own rules.
    #[error("invariant broken: {0}")]
    Invariant(crate::core::Violation),
}

/// An operator's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorReply {
    /// Done.
    Done,
    /// The configuration is invalid, or the run has ended; nothing was changed.
    Rejected,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Generate a turn. Terminal input: `GenerationEnded` of the same attempt.
    StartGeneration {
        /// The request.
        request: RequestId,
        /// Counts the starts of this request, from 1.
        attempt: u32,
        /// Where.
        replica: ReplicaId,
        /// The sample it becomes; `None`: it is served and not recorded.
        sample: Option<SampleId>,
        /// Go on from the tokens of the attempt before.
        resume: bool,
    },
    /// Abort a generation; its terminal input still comes, with what there is.
    AbortGeneration {
        /// The request.
        request: RequestId,
        /// The attempt.
        attempt: u32,
        /// Where it runs.
        replica: ReplicaId,
    },
    /// Refuse a request.
    Refuse {
        /// The request.
        request: RequestId,
        /// Why.
        reason: Refusal,
        /// When the client may try again; at most 60 s.
        retry_after: Span,
    },
    /// The request waits for a place.
    Hold {
        /// The request.
        request: RequestId,
    },
    /// The turn is over for its client.
    Reply {
        /// The request.
        request: RequestId,
        /// How.
        reply: Reply,
    },
    /// Reset an environment for a session. Terminal input: `EnvironmentEnded`.
    ResetEnvironment {
        /// The session.
        session: SessionId,
        /// Counts resets and steps of this session, from 1.
        attempt: u32,
    },
    /// Step the session's environment with its last turn. Terminal input: `EnvironmentEnded`.
    StepEnvironment {
        /// The session.
        session: SessionId,
        /// Counts resets and steps of this session, from 1.
        attempt: u32,
    },
    /// Stop a reset or step; its outcome no longer matters.
    CancelEnvironment {
        /// The session.
        session: SessionId,
        /// The attempt.
        attempt: u32,
    },
    /// The session is over: its environment, if any, is free.
    EndSession {
        /// The session.
        session: SessionId,
    },
    /// Ask a judge. Terminal input: `VoteEnded`.
    StartVote {
        /// The vote.
        vote: VoteId,
        /// The sample to judge.
        sample: SampleId,
    },
    /// A vote no longer matters.
    CancelVote {
        /// The vote.
        vote: VoteId,
    },
    /// Train on the samples of [`Scheduler::batch`](crate::core::Scheduler::batch). Terminal
    /// input: `StepEnded`.
    StartStep {
        /// The step.
        step: StepId,
        /// The version it starts from.
        learner: LearnerVersion,
        /// How many samples.
        samples: u32,
    },
    /// A train step took too long and counts as failed: if it still ends well, its result is not
    /// wanted, and the learner has to be what it was before.
    CancelStep {
        /// The step.
        step: StepId,
    },
    /// Export the learner's weights. Terminal input: `Saved` or `SaveFailed`.
    Publish {
        /// The publication.
        publication: PublicationId,
        /// Which version.
        version: LearnerVersion,
    },
    /// Transfer and load published weights on a replica. Inputs: `Transferred`, then `Loaded`, or
    /// a failure of either.
    Load {
        /// The publication.
        publication: PublicationId,
        /// Where.
        replica: ReplicaId,
        /// Which version.
        version: DeployVersion,
        /// What happens to the turns in flight.
        in_flight: InFlight,
        /// What happens to their KV cache at the swap.
        kv: KvOnSync,
    },
    /// A transfer or load took too long and is abandoned; turns that were frozen for it go on, if
    /// the replica still has its old weights.
    CancelLoad {
        /// The publication.
        publication: PublicationId,
        /// Where.
        replica: ReplicaId,
    },
    /// An admitted sample will not be trained.
    Discard {
        /// The sample.
        sample: SampleId,
        /// Why.
        reason: Discard,
    },
    /// Answer an operator.
    OperatorReply {
        /// The answer.
        reply: OperatorReply,
    },
    /// The run cannot go on.
    Fail {
        /// Why.
        error: RunError,
    },
}

impl Action {
    /// Folds the action into a digest: equal digests, equal decisions.
    pub fn digest_into(&self, digest: &mut Digest) {
        let mut fold = |words: &[u64]| words.iter().for_each(|&word| digest.fold(word));
        match *self {
            Action::StartGeneration { request, attempt, replica, sample, resume } => {
                let sample = sample.map_or(u64::MAX, |sample| sample.0);
                let place = u64::from(replica.0) << 32 | u64::from(attempt);
                fold(&[1 | u64::from(resume) << 8, request.0, place, sample]);
            }
            Action::AbortGeneration { request, attempt, replica } => {
                fold(&[2, request.0, u64::from(replica.0) << 32 | u64::from(attempt)]);
            }
            Action::Refuse { request, reason, retry_after } => {
                fold(&[3 | (reason as u64) << 8, request.0, retry_after.as_nanos()]);
            }
            Action::Hold { request } => fold(&[4, request.0]),
            Action::Reply { request, reply } => fold(&[5 | (reply as u64) << 8, request.0]),
            Action::ResetEnvironment { session, attempt } => {
                fold(&[6, session.0, u64::from(attempt)]);
            }
            Action::StepEnvironment { session, attempt } => {
                fold(&[7, session.0, u64::from(attempt)]);
            }
            Action::CancelEnvironment { session, attempt } => {
                fold(&[8, session.0, u64::from(attempt)]);
            }
            Action::EndSession { session } => fold(&[9, session.0]),
            Action::StartVote { vote, sample } => fold(&[10, vote.0, sample.0]),
            Action::CancelVote { vote } => fold(&[11, vote.0]),
            Action::StartStep { step, learner, samples } => {
                fold(&[12, step.0, u64::from(learner.number()) << 32 | u64::from(samples)]);
            }
            Action::Publish { publication, version } => {
                fold(&[13, publication.0, u64::from(version.number())]);
            }
            Action::Load { publication, replica, version, in_flight, kv } => {
                let place = u64::from(replica.0) << 32 | u64::from(version.number());
                fold(&[14 | (in_flight as u64) << 8 | (kv as u64) << 16, publication.0, place]);
            }
            Action::CancelLoad { publication, replica } => {
                fold(&[20, publication.0, u64::from(replica.0)]);
            }
            Action::CancelStep { step } => fold(&[21, step.0]),
            Action::Discard { sample, reason } => fold(&[15 | (reason as u64) << 8, sample.0]),
            Action::OperatorReply { reply } => fold(&[16 | (reply as u64) << 8]),
            Action::Fail { error } => match error {
                RunError::PublicationFailed { attempts } => fold(&[17, u64::from(attempts)]),
                RunError::CommitFailed => fold(&[18]),
                RunError::Invariant(violation) => fold(&[19 | (violation as u64) << 8]),
            },
        }
    }
}

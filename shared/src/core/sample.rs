//! A sample, and where it was at each learner version.

use serde::{Deserialize, Serialize};

use crate::id::{GroupId, RequestId, SampleId, SessionId};
use crate::input::Score;
use crate::time::{Span, Time};
use crate::version::{DeployVersion, LearnerVersion, RolloutVersion};

/// A boundary between two stages of a sample's life, in the order in which they are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Admitted, and sent to a replica.
    Admitted,
    /// Its first token was generated.
    FirstToken,
    /// Its generation ended.
    Generated,
    /// What its judge needs is there: it enters the rollout queue.
    StateKnown,
    /// Its first vote started.
    JudgeStarted,
    /// Its score is known.
    Judged,
    /// Its group is complete: it enters the output queue.
    Ready,
    /// Its train step started.
    TrainStarted,
}

/// How many stages there are.
pub const STAGES: usize = 8;

/// The parts that head staleness splits into; they add up to it exactly.
pub const STALENESS_PARTS: [&str; 7] = [
    "publish_lag",
    "generating",
    "next_state",
    "judge_queue",
    "judging",
    "group_mates",
    "output_queue",
];

/// A turn that was admitted for training.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The ordinal of its admission.
    pub id: SampleId,
    /// The request it answered.
    pub request: RequestId,
    /// Its session.
    pub session: SessionId,
    /// Its group, where `group_size` is above 1.
    pub group: Option<GroupId>,
    /// Length of its prompt.
    pub prompt_tokens: u32,
    /// Generated tokens.
    pub tokens: u32,
    /// Version of its first token (before that is known: of the replica it was sent to).
    pub head: RolloutVersion,
    /// Version of its last token.
    pub tail: RolloutVersion,
    /// Sum over tokens of their versions.
    pub version_sum: u64,
    /// How many segments it has.
    pub segments: u32,
    /// What its replica held when its generation ended.
    pub deploy: DeployVersion,
    /// Its score in millionths.
    pub score: Score,
    /// It has a place in a batch and no gradient.
    pub masked: bool,
    /// Version of the judge of its last vote.
    pub judge_version: u32,
    pub(crate) times: [Time; STAGES],
    pub(crate) learners: [LearnerVersion; STAGES],
}

impl Sample {
    /// When it passed `stage`; meaningless before it did.
    #[must_use]
    pub const fn time(&self, stage: Stage) -> Time {
        self.times[stage as usize]
    }

    /// The learner version when it passed `stage`.
    #[must_use]
    pub const fn learner(&self, stage: Stage) -> LearnerVersion {
        self.learners[stage as usize]
    }

    /// Head staleness at its train start: of its first token. What η and the filter compare.
    #[must_use]
    pub fn staleness_head(&self) -> u32 {
        self.learner(Stage::TrainStarted).number().saturating_sub(self.head.number())
    }

    /// Tail staleness at its train start: of its last token.
    #[must_use]
    pub fn staleness_tail(&self) -> u32 {
        self.learner(Stage::TrainStarted).number().saturating_sub(self.tail.number())
    }

    /// Sum over its tokens of their staleness at its train start; divide by its tokens.
    #[must_use]
    pub fn staleness_token_sum(&self) -> u64 {
        let learner = u64::from(self.learner(Stage::TrainStarted).number());
        (learner * u64::from(self.tokens)).saturating_sub(self.version_sum)
    }

    /// Head staleness, split into [`STALENESS_PARTS`].
    #[must_use]
    pub fn staleness_parts(&self) -> [u32; 7] {
        let mut parts = [0; 7];
        let mut before = self.head.number();
        for (part, &learner) in parts.iter_mut().zip(&self.learners[Stage::FirstToken as usize..]) {
            *part = learner.number().saturating_sub(before);
            before = learner.number();
        }
        parts
    }

    /// The same parts in time: first waiting for the first token, then the others.
    #[must_use]
    pub fn time_parts(&self) -> [Span; 7] {
        let mut parts = [Span::ZERO; 7];
        for (part, pair) in parts.iter_mut().zip(self.times.windows(2)) {
            *part = pair[1].since(pair[0]);
        }
        parts
    }

    /// From the end of its generation to the start of its train step.
    #[must_use]
    pub fn age(&self) -> Span {
        self.time(Stage::TrainStarted).since(self.time(Stage::Generated))
    }

    /// Serving skew: how much newer the replica was than the first token when the turn ended.
    #[must_use]
    pub fn serving_skew(&self) -> u32 {
        self.deploy.skew_of(self.head).unwrap_or(0)
    }

    pub(crate) fn stamp(&mut self, stage: Stage, now: Time, learner: LearnerVersion) {
        self.times[stage as usize] = now;
        self.learners[stage as usize] = learner;
    }
}

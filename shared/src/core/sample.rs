//! A sample, and where it was at each learner version.

use serde::{Deserialize, Serialize};

use crate::id::{GroupId, RequestId, SampleId, SessionId};
use crate::input::{Score, Segment};
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

/// Between its turns a trajectory does not generate: it waits for what follows.
const GENERATING: usize = 1;
const NEXT_STATE: usize = 2;

/// A turn, or the trajectory of a session, that was admitted for training.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The ordinal of its admission.
    pub id: SampleId,
    /// The request it answered; the last one of a trajectory.
    pub request: RequestId,
    /// Its session.
    pub session: SessionId,
    /// Its group, where `group_size` is above 1.
    pub group: Option<GroupId>,
    /// Tokens without loss: its prompt, and what its environment or user said between its turns.
    pub prompt_tokens: u32,
    /// Generated tokens, of all its turns.
    pub tokens: u32,
    /// Turns that were generated: at most 1, unless a sample is a session.
    pub turns: u32,
    /// Version of its first token (before that is known: of the replica it was sent to).
    pub head: RolloutVersion,
    /// Version of its last token.
    pub tail: RolloutVersion,
    /// Sum over tokens of their versions.
    pub version_sum: u64,
    /// How many segments it has: runs of tokens of one version, over all turns.
    pub segments: u32,
    /// What its replica held when its generation ended.
    pub deploy: DeployVersion,
    /// Its score in millionths.
    pub score: Score,
    /// It has a place in a batch and no gradient.
    pub masked: bool,
    /// Version of the judge of its last vote.
    pub judge_version: u32,
    /// Between its turns: from the end of one to the start of the next.
    pub(crate) waited: Span,
    /// Learner versions that passed meanwhile.
    pub(crate) waited_versions: u32,
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

    /// The mean version of its tokens, rounded down; of its first, before it has any.
    #[must_use]
    pub fn mean_version(&self) -> RolloutVersion {
        let mean = self.version_sum.checked_div(u64::from(self.tokens));
        let mean = mean.and_then(|mean| u32::try_from(mean).ok());
        mean.map_or(self.head, RolloutVersion::new)
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
        parts[GENERATING] = parts[GENERATING].saturating_sub(self.waited_versions);
        parts[NEXT_STATE] += self.waited_versions;
        parts
    }

    /// The same parts in time: first waiting for the first token, then the others.
    #[must_use]
    pub fn time_parts(&self) -> [Span; 7] {
        let mut parts = [Span::ZERO; 7];
        for (part, pair) in parts.iter_mut().zip(self.times.windows(2)) {
            *part = pair[1].since(pair[0]);
        }
        parts[GENERATING] = parts[GENERATING] - self.waited;
        parts[NEXT_STATE] = parts[NEXT_STATE] + self.waited;
        parts
    }

    /// From the end of its generation to the start of its train step.
    #[must_use]
    pub fn age(&self) -> Span {
        self.time(Stage::TrainStarted).since(self.time(Stage::Generated))
    }

    /// Serving skew: how much newer the replica was than the first token when the (last) turn ended.
    #[must_use]
    pub fn serving_skew(&self) -> u32 {
        self.deploy.skew_of(self.head).unwrap_or(0)
    }

    /// Whether what its judge needs was there; before that, more tokens can follow.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.tokens > 0 && self.time(Stage::StateKnown) >= self.time(Stage::Generated)
    }

    /// Its next turn starts: since the end of the one before it waited.
    pub(crate) fn waited_until(&mut self, now: Time, learner: LearnerVersion) {
        self.waited = self.waited + now.since(self.time(Stage::Generated));
        self.waited_versions += learner.steps_since(self.learner(Stage::Generated));
    }

    /// A turn of it ended, after a prompt of `prompt` tokens that holds the turns before it.
    pub(crate) fn add_turn(&mut self, prompt: u32, segments: &[Segment], deploy: DeployVersion) {
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return };
        // A client that shortens its history makes no earlier token unread.
        self.prompt_tokens = self.prompt_tokens.max(prompt.saturating_sub(self.tokens));
        let goes_on = self.tokens > 0 && first.version == self.tail;
        self.segments += segments.len() as u32 - u32::from(goes_on);
        self.tail = if self.tokens > 0 { self.tail.max(last.version) } else { last.version };
        self.tokens = segments.iter().fold(self.tokens, |sum, s| sum.saturating_add(s.tokens));
        let weigh = |s: &Segment| u64::from(s.tokens) * u64::from(s.version.number());
        self.version_sum = segments.iter().map(weigh).fold(self.version_sum, u64::saturating_add);
        self.turns += 1;
        self.deploy = deploy;
    }

    pub(crate) fn stamp(&mut self, stage: Stage, now: Time, learner: LearnerVersion) {
        self.times[stage as usize] = now;
        self.learners[stage as usize] = learner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sample {
        Sample {
            id: SampleId(0),
            request: RequestId(0),
            session: SessionId(0),
            group: None,
            prompt_tokens: 10,
            tokens: 5,
            turns: 1,
            head: RolloutVersion::new(2),
            tail: RolloutVersion::new(4),
            version_sum: 14,
            segments: 2,
            deploy: DeployVersion::new(4),
            score: 0,
            masked: false,
            judge_version: 0,
            waited: Span::ZERO,
            waited_versions: 0,
            times: [Time::ZERO; STAGES],
            learners: [LearnerVersion::new(7); STAGES],
        }
    }

    #[test]
    fn its_staleness_is_that_of_its_first_and_last_token_and_of_all() {
        let sample = sample();
        assert_eq!((sample.staleness_head(), sample.staleness_tail()), (5, 3));
        assert_eq!(sample.staleness_token_sum(), 7 * 5 - 14);
        assert_eq!(sample.serving_skew(), 2);
    }

    #[test]
    fn it_is_whole_once_its_judge_can_begin() {
        let mut sample = sample();
        sample.stamp(Stage::Generated, Time::from_secs(2), LearnerVersion::new(7));
        assert!(!sample.is_whole(), "what follows is not known");
        sample.stamp(Stage::StateKnown, Time::from_secs(2), LearnerVersion::new(7));
        assert!(sample.is_whole(), "it was at once");
        sample.stamp(Stage::StateKnown, Time::from_secs(3), LearnerVersion::new(7));
        assert!(sample.is_whole());
        sample.tokens = 0;
        assert!(!sample.is_whole(), "nothing was generated");
    }
}

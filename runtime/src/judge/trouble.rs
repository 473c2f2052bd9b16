//! Why a vote is no score.

use std::sync::Arc;

use headway_shared::rule::NoScore;

/// Why a vote is no score. It shows nothing of a key, an address, a question or an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// Nobody listens at the endpoint's address, or the address does not exist.
    #[error("the endpoint is not reached")]
    Unreachable,
    /// The endpoint did not answer within `api.timeout_sec`.
    #[error("the endpoint did not answer within `timeout_sec`")]
    Slow,
    /// The core gave the vote up after `judge_timeout_sec`.
    #[error("no answer within `judge_timeout_sec`")]
    TimedOut,
    /// The answer broke off, or the judge itself did.
    #[error("the answer broke off")]
    BrokenOff,
    /// The endpoint answered with another status than 200.
    #[error("the endpoint answered with status {0}")]
    Status(u16),
    /// The answer is no chat completion, or too long.
    #[error("the answer is no chat completion")]
    Unreadable,
    /// The answer holds no vote.
    #[error(
        "the answer has no score: no \\boxed{{1}}, \\boxed{{0}} or \\boxed{{-1}}, or no JSON with a \
         number `score` from -1 to 1, as `judge.score` says"
    )]
    NoScore,
    /// The rule gives no score.
    #[error("the rule gives no score: {0}")]
    Rule(Arc<NoScore>),
    /// The template of the question cannot be filled in: what it names is not there.
    #[error("`judge.prompt` cannot be filled in: {0}")]
    Prompt(Arc<str>),
}

impl Trouble {
    /// Names of all kinds, in the order of [`index`](Self::index).
    pub const NAMES: [&'static str; 9] = [
        "unreachable",
        "slow",
        "timed_out",
        "broken_off",
        "status",
        "unreadable",
        "no_score",
        "rule",
        "prompt",
    ];

    /// Its place in [`NAMES`](Self::NAMES).
    #[must_use]
    pub const fn index(&self) -> usize {
        match self {
            Self::Unreachable => 0,
            Self::Slow => 1,
            Self::TimedOut => 2,
            Self::BrokenOff => 3,
            Self::Status(_) => 4,
            Self::Unreadable => 5,
            Self::NoScore => 6,
            Self::Rule(_) => 7,
            Self::Prompt(_) => 8,
        }
    }

    /// To ask again would not help: the judge has answered, if only without a score, or cannot be
    /// asked.
    #[must_use]
    pub const fn is_an_answer(&self) -> bool {
        matches!(self, Self::NoScore | Self::Rule(_) | Self::Prompt(_))
    }
}

//! What judges: asked for one vote at a time, when and how often the core says.

mod endpoint;
mod rule;
mod trouble;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use headway_shared::config::{Config, Settings};
use headway_shared::input::{Score, VoteOutcome};
use headway_shared::rule::{Rule, RuleError};

use crate::store::Question;

pub use endpoint::{Endpoint, EndpointError, MissingKey};
pub use trouble::Trouble;

/// Why there is no judge.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The rule is none.
    #[error("reward_judging.rule: {0}\nhelp: {help}", help = .0.help)]
    Rule(#[from] RuleError),
    /// The endpoint cannot be asked.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// What judges according to the configuration: its rule, else the endpoint. `variable` looks up
/// environment variables, which a rule does not need.
///
/// # Errors
/// [`JudgeError`].
pub fn of(
    config: &Config,
    settings: &Settings,
    variable: impl FnOnce(&str) -> Option<String>,
) -> Result<Arc<dyn Judge>, JudgeError> {
    match config.reward_judging.rule.as_str() {
        "" => Ok(Arc::new(Endpoint::new(&settings.api, &settings.judge, variable)?)),
        rule => Ok(Arc::new(Rule::read(rule)?)),
    }
}

/// What a vote is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The turn's conversation and what its request said about itself.
    pub question: Arc<Question>,
    /// The generated text.
    pub response: Arc<str>,
    /// What followed the turn, where that is known.
    pub next_state: Option<Arc<str>>,
}

/// What a judge said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its vote.
    pub outcome: VoteOutcome,
    /// Tokens that it read and wrote, where it says so; else 0.
    pub tokens: u32,
    /// Its version; it can change while a run goes on.
    pub judge_version: u32,
    /// Why it is no score, where it is none.
    pub trouble: Option<Trouble>,
}

impl Verdict {
    /// A score, for which no tokens were read or written.
    #[must_use]
    pub const fn score(score: Score) -> Self {
        Self { outcome: VoteOutcome::Score(score), tokens: 0, judge_version: 0, trouble: None }
    }

    /// No score. Where there was no answer at all, the core may ask again.
    #[must_use]
    pub const fn none(trouble: Trouble) -> Self {
        let outcome =
            if trouble.is_an_answer() { VoteOutcome::Invalid } else { VoteOutcome::Failed };
        Self { outcome, tokens: 0, judge_version: 0, trouble: Some(trouble) }
    }
}

/// A vote that will come.
pub type Vote = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// A judge. It asks no second time, but where an endpoint says when it may be asked: time limits,
/// retries and how many votes run at once are the core's. A vote that is cancelled is dropped.
pub trait Judge: Send + Sync + 'static {
    /// The verdict, where it takes no waiting for; then no vote is begun.
    fn at_once(&self, case: &Case) -> Option<Verdict> {
        let _ = case;
        None
    }

    /// Begins one vote.
    fn vote(&self, case: Case) -> Vote;
}

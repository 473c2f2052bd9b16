//! What judges: asked for one vote at a time, when and how often the core says.

mod endpoint;
mod rule;
mod share;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use headway_shared::input::VoteOutcome;

use crate::store::Question;

pub use endpoint::{Endpoint, EndpointError, MissingKey};
pub use rule::{Rule, RuleError};
pub use share::Share;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its vote.
    pub outcome: VoteOutcome,
    /// Tokens that it read and wrote, where it says so; else 0.
    pub tokens: u32,
    /// Its version; it can change while a run goes on.
    pub judge_version: u32,
}

/// A vote that will come.
pub type Vote = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// A judge. It asks no second time and waits for nothing: time limits, retries and how many votes
/// run at once are the core's. A vote that is cancelled is dropped.
pub trait Judge: Send + Sync + 'static {
    /// Begins one vote.
    fn vote(&self, case: Case) -> Vote;
}

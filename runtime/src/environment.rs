//! Plays sessions of a task against a gateway over HTTP, as an agent of a user does: several turns
//! with a tool, the conversation so far in every request, and the retries of an official OpenAI
//! client.
//!
//! ```text
//!  Task ──► Episode: reset, step ◄── said ── Host, N sessions at once ── HTTP ──► gateway
//!              └── the next state ──────────►
//! ```
//!
//! To the core it is a client like any other: it learns of next states and of the end of a session
//! from the requests. So the limits of `[environment_hosting]` are kept here, by the [`Host`], and
//! nowhere else: how many environments there are, how long a reset or a step may take, how often
//! one that failed is tried again.

mod agent;
mod host;
mod lookup;
mod session;

use std::future::Future;
use std::pin::Pin;

pub use host::{Counts, Host, HostError, Options};
pub use lookup::Lookup;

/// A kind of environment: what its sessions are about.
pub trait Task: Send + Sync + 'static {
    /// Its name, with which the names of its sessions begin.
    fn name(&self) -> &'static str;

    /// An episode of the prompt with this ordinal. Equal ordinals, equal episodes: those of a group
    /// differ only by what the policy says.
    fn begin(&self, prompt: u64) -> Box<dyn Episode>;
}

/// One session's environment. An operation that takes too long is dropped and begun again, so it
/// may change the episode only when it is done.
pub trait Episode: Send {
    /// The first state.
    fn reset(&mut self) -> Operation<'_, State>;

    /// What follows what the policy has said; `None`: the session is over.
    fn step<'a>(&'a mut self, said: &'a str) -> Operation<'a, Option<State>>;
}

/// A reset or a step under way.
pub type Operation<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failed>> + Send + 'a>>;

/// A reset or a step failed; it may go better the next time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub String);

/// What the policy is to answer next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Who says it: `user` or `tool`.
    pub role: &'static str,
    /// What is said.
    pub content: String,
    /// The right answer, for `metadata.answer`.
    pub answer: String,
    /// The longest answer, in tokens.
    pub max_tokens: u32,
    /// No state follows this one.
    pub last: bool,
}

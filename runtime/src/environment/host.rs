//! Sessions side by side.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use headway_shared::backoff::Backoff;
use headway_shared::config::EnvironmentHosting;
use tokio::task::JoinSet;

use super::Task;
use super::agent::Agent;
use super::session::{GivenUp, play};
use crate::http;
use crate::secret::Secret;

/// How sessions are played.
#[derive(Clone, Debug)]
pub struct Options {
    /// The gateway's, such as `http://127.0.0.1:30000`; a trailing `/v1` makes no difference.
    pub base_url: String,
    /// The gateway's key, if it wants one.
    pub api_key: Option<Secret>,
    /// Sessions at once, unless `max_envs` is lower.
    pub sessions: u32,
    /// Sessions in all; `None`: until it is stopped.
    pub limit: Option<u64>,
    /// Sessions of one prompt.
    pub group_size: u32,
    /// Each turn of a prompt is a group of its own (`sample_unit = "turn"`); else its sessions are.
    pub group_per_turn: bool,
    /// The ordinal of the first prompt: names of sessions must not come twice in a run.
    pub first_prompt: u64,
    /// Of the policy's samples and of the jitter between tries.
    pub seed: u64,
    /// How often a request is tried again. The official client's default, 2, is for people who look
    /// at the error; a member of a group that gives up leaves its mates waiting.
    pub max_retries: u32,
    /// The waits between tries.
    pub backoff: Backoff,
    /// How long a request may take.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            base_url: "http://127.0.0.1:30000".to_owned(),
            api_key: None,
            sessions: 16,
            limit: None,
            group_size: 1,
            group_per_turn: true,
            first_prompt: 0,
            seed: 0,
            max_retries: 1000,
            backoff: Backoff::default(),
            timeout: Duration::from_secs(600),
        }
    }
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions begun.
    pub begun: u64,
    /// Sessions played to their end.
    pub complete: u64,
    /// Sessions given up because the gateway did not answer.
    pub given_up: u64,
    /// Sessions given up because their environment failed.
    pub broken: u64,
    /// Turns answered.
    pub turns: u64,
    /// Of these, turns that were served and not recorded, as their group was closed.
    pub unrecorded: u64,
    /// Requests sent again.
    pub retries: u64,
    /// Answers with status 429.
    pub too_many: u64,
    /// Answers with status 503.
    pub unavailable: u64,
    /// Answers with another status that is no success.
    pub errors: u64,
    /// Requests that got no answer: no connection, or it broke, or the time was up.
    pub unreachable: u64,
    /// Resets and steps that failed or took too long.
    pub failed_operations: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { complete, turns, retries, unavailable, too_many, given_up, broken, .. } = self;
        write!(
            f,
            "{complete} sessions played, {turns} turns; {retries} requests sent again (503: \
             {unavailable}, 429: {too_many}); {} sessions given up",
            given_up + broken
        )
    }
}

/// Counts, as many sessions change them.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<Counts>);

impl Counters {
    pub(super) fn change(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn count(&self, status: u16) {
        self.change(|counts| match status {
            200..300 => {}
            429 => counts.too_many += 1,
            503 => counts.unavailable += 1,
            _ => counts.errors += 1,
        });
    }

    fn get(&self) -> Counts {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why no sessions can be played.
#[derive(Debug, thiserror::Error)]
#[error("no HTTP client: {0}")]
pub struct HostError(#[from] reqwest::Error);

/// What all sessions have.
pub(super) struct Shared {
    pub(super) agent: Agent,
    pub(super) task: Box<dyn Task>,
    pub(super) options: Options,
    pub(super) hosting: EnvironmentHosting,
    pub(super) counters: Counters,
    next: AtomicU64,
}

/// Plays sessions of a task, several at once. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<Shared>);

impl Host {
    /// A host that keeps the limits of `hosting`.
    ///
    /// # Errors
    /// There is no HTTP client.
    pub fn new(
        task: impl Task,
        options: Options,
        hosting: EnvironmentHosting,
    ) -> Result<Self, HostError> {
        let client = http::client().timeout(options.timeout).build()?;
        let base = options.base_url.trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base);
        let agent = Agent {
            client,
            url: format!("{base}/v1/chat/completions"),
            key: options.api_key.clone(),
            backoff: options.backoff,
            max_retries: options.max_retries,
        };
        let (counters, next) = (Counters::default(), AtomicU64::new(0));
        let task = Box::new(task);
        Ok(Self(Arc::new(Shared { agent, task, options, hosting, counters, next })))
    }

    /// Plays until `stop` is ready, or as many sessions as are wanted. Sessions that are stopped
    /// leave: their turns are aborted.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let mut places = JoinSet::new();
        for _ in 0..self.places() {
            places.spawn(self.clone().fill_place());
        }
        tokio::select! {
            () = stop => {}
            () = async { while places.join_next().await.is_some() {} } => {}
        }
        places.shutdown().await;
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.0.counters.get()
    }

    /// How many sessions are played at once.
    #[must_use]
    pub fn places(&self) -> u32 {
        let Shared { options, hosting, .. } = &*self.0;
        match hosting.max_envs {
            0 => options.sessions,
            most => options.sessions.min(most),
        }
    }

    /// One session after the other. Each takes the next free ordinal, so that the members of a
    /// group begin together.
    async fn fill_place(self) {
        let shared = &*self.0;
        loop {
            let ordinal = shared.next.fetch_add(1, Ordering::Relaxed);
            if shared.options.limit.is_some_and(|limit| ordinal >= limit) {
                return;
            }
            shared.counters.change(|counts| counts.begun += 1);
            let ended = play(shared, ordinal).await;
            shared.counters.change(|counts| match ended {
                Ok(()) => counts.complete += 1,
                Err(GivenUp::Gateway(_)) => counts.given_up += 1,
                Err(GivenUp::Environment(_)) => counts.broken += 1,
            });
        }
    }
}

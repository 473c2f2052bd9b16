//! What engines behind HTTP have in common: turns that stream, loads that pause a server, and whether
//! the server is there.
//!
//! A server labels its weights; Headway's labels are `headway-VERSION`. A server that dies takes its
//! turns with it ([`Lost`](super::EngineEvent::Lost)); when it answers again, it is up with the version
//! that its label says. The label `default` is that of a server that was started and never updated: it
//! holds the checkpoint that the run began with, version 0.

pub(super) mod calls;
pub(super) mod lines;
mod serving;
mod turn;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use headway_shared::action::InFlight;
use headway_shared::config::KvOnSync;
use headway_shared::input::Finish;
use headway_shared::time::Time;
use headway_shared::version::DeployVersion;
use reqwest::Response;
use tokio::runtime::Handle;

use super::{Engine, EngineMailbox, Generate, Token, sglang, vllm};
use crate::clock::Clock;
use crate::secret::Secret;
use calls::{CallError, Calls};
use serving::Serving;

/// The label of a server that was started without one.
const UNLABELLED: &str = "default";

/// The label of a version.
pub(super) fn label(version: DeployVersion) -> String {
    format!("headway-{}", version.number())
}

/// The version that a label names, if it is one of Headway's.
pub(super) fn version_of(label: &str) -> Option<DeployVersion> {
    let number = label.strip_prefix("headway-")?;
    number.parse().ok().map(DeployVersion::new)
}

/// What becomes of a load.
#[derive(Debug)]
pub(super) enum Loaded {
    /// The server holds the weights, and stands still.
    Whole,
    /// It does not. `intact`: it holds its old ones.
    Failed { intact: bool, why: String },
}

/// What turns in flight do while weights are loaded, and what becomes of their cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sync {
    pub(super) in_flight: InFlight,
    pub(super) kv: KvOnSync,
}

/// Weights to load.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// A directory as the server's file system has it.
    pub(super) path: String,
    pub(super) version: DeployVersion,
    /// What the server held before.
    pub(super) before: Option<DeployVersion>,
    pub(super) sync: Sync,
}

/// What a piece of a stream brings.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Piece {
    /// When it came; `None`: now.
    pub(super) at: Option<Time>,
    pub(super) tokens: Vec<Token>,
    pub(super) finish: Option<Finish>,
}

/// Reads the stream of a turn.
pub(super) trait Reader: Send {
    /// Takes what the connection gave; the pieces that are known now.
    ///
    /// # Errors
    /// Why the stream cannot be believed. It shows nothing of what was said.
    fn push(&mut self, bytes: &[u8]) -> Result<Vec<Piece>, String>;
}

/// What was known of the server's weights when a turn began, and whether that still holds.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    /// What the server held; `None`: a load was under way.
    pub(super) deploy: Option<DeployVersion>,
    epoch: u64,
    now: Arc<AtomicU64>,
    clock: Clock,
}

impl Standing {
    /// The server's weights, where no load has begun since the turn did: what comes now was made
    /// with them.
    pub(super) fn certain(&self) -> Option<DeployVersion> {
        self.deploy.filter(|_| self.now.load(Ordering::SeqCst) == self.epoch)
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    #[cfg(test)]
    pub(super) fn of(deploy: u32) -> (Self, Arc<AtomicU64>) {
        let now = Arc::new(AtomicU64::new(0));
        let deploy = Some(DeployVersion::new(deploy));
        let clock = Clock::from(Time::from_nanos(0));
        (Self { deploy, epoch: 0, now: now.clone(), clock }, now)
    }
}

type Answer<T> = Result<T, CallError>;

/// What a kind of server is asked, and how.
pub(super) trait Protocol: Sized + Send + std::marker::Sync + 'static {
    type Reader: Reader;

    /// The label of weights that a load left half-way, where the server is told one.
    const BROKEN: Option<&'static str>;
    /// The versions of a turn's tokens are known for certain at its end alone: one whose end is not
    /// seen has failed.
    const CONFIRMS: bool;

    /// A server at this address, which asks for this key; nothing is asked yet.
    fn connect(url: &str, key: Option<Secret>) -> Result<Self, reqwest::Error>;

    /// The model it was started with: a directory as its own file system has it, or a name.
    fn model(&self) -> impl Future<Output = Answer<String>> + Send;

    /// How it is reached.
    fn calls(&self) -> &Calls;

    /// It is there, and holds weights with this label.
    fn probe(&self) -> impl Future<Output = Answer<String>> + Send;

    /// Whether it was started so that it can serve; the error says how to start it.
    fn usable(&self) -> impl Future<Output = Result<(), String>> + Send;

    /// Labels the weights it holds; turns go on.
    fn name(&self, version: DeployVersion) -> impl Future<Output = Answer<()>> + Send;

    /// Begins a turn. The answer is a stream of server-sent events.
    fn generate(
        &self,
        generate: &Generate,
        rid: &str,
    ) -> impl Future<Output = Answer<Response>> + Send;

    /// Reads such a stream.
    fn reader(&self, standing: Standing) -> Self::Reader;

    /// Ends a turn, which says so in its stream.
    fn abort(&self, rid: &str) -> impl Future<Output = Answer<()>> + Send;

    /// Pauses the server, so that weights can be loaded. The core limits how long that may take.
    fn prepare(&self, sync: Sync) -> impl Future<Output = Result<(), String>> + Send;

    /// Loads weights into a paused server.
    fn load(&self, order: Order) -> impl Future<Output = Loaded> + Send;

    /// Lets a paused server go on.
    fn go_on(&self) -> impl Future<Output = Answer<()>> + Send;
}

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// SGLang.
    Sglang,
    /// vLLM.
    Vllm,
}

impl ServerKind {
    /// All, by their names in `policy_serving.engine`.
    pub const ALL: [(&str, Self); 2] = [("sglang", Self::Sglang), ("vllm", Self::Vllm)];

    /// The one of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(other, _)| *other == name).map(|(_, kind)| kind)
    }

    /// The model that a server was started with: a directory as its own file system has it, or, of
    /// vLLM, a name.
    ///
    /// # Errors
    /// [`NoModel`]: it is not there, or says something else.
    pub async fn served_model(self, url: &str, key: Option<Secret>) -> Result<String, NoModel> {
        match self {
            Self::Sglang => served_model::<sglang::Server>(url, key).await,
            Self::Vllm => served_model::<vllm::Server>(url, key).await,
        }
    }
}

async fn served_model<P: Protocol>(url: &str, key: Option<Secret>) -> Result<String, NoModel> {
    let failed = |why: String| NoModel { url: url.to_owned(), why };
    let server = P::connect(url, key).map_err(|error| failed(error.to_string()))?;
    server.model().await.map_err(|error| failed(error.to_string()))
}

/// An engine that is a server, over HTTP.
#[derive(Clone, Debug)]
pub struct RemoteEngine {
    /// What kind of server it is.
    pub kind: ServerKind,
    /// Where the server listens, such as `http://127.0.0.1:31000`.
    pub url: String,
    /// The key it asks for, if any.
    pub key: Option<Secret>,
    /// The newest version that a server can hold when the run begins or goes on: the learner's.
    pub newest: DeployVersion,
    /// How long to wait between two looks at whether it is still there.
    pub probe_interval: Duration,
    /// Where its tasks run: beside what they hear from and speak to, so that no thread is woken for a
    /// command or an answer. `None`: on the engine's own thread.
    pub runtime: Option<Handle>,
}

impl RemoteEngine {
    /// An engine that looks at its server every second, and runs in the runtime that this is called in,
    /// if it is called in one.
    #[must_use]
    pub fn new(kind: ServerKind, url: &str, key: Option<Secret>, newest: DeployVersion) -> Self {
        let (url, probe_interval) = (url.to_owned(), Duration::from_secs(1));
        Self { kind, url, key, newest, probe_interval, runtime: Handle::try_current().ok() }
    }

    /// Serves until it is told to stop. To return is to be down.
    fn serve<P: Protocol>(self, mailbox: EngineMailbox) {
        let Self { url, key, newest, probe_interval, runtime, .. } = self;
        let failed = |error: &dyn std::error::Error| {
            tracing::error!(target: "headway", "engine {url}: {error}");
        };
        let protocol = match P::connect(&url, key) {
            Ok(protocol) => protocol,
            Err(error) => return failed(&error),
        };
        let serving = Serving::new(protocol, newest, probe_interval, &mailbox);
        let serving = serving.serve(mailbox.commands);
        if let Some(runtime) = runtime {
            // It is over with the runtime, too.
            return drop(runtime.block_on(runtime.spawn(serving)));
        }
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(serving),
            Err(error) => failed(&error),
        }
    }
}

impl Engine for RemoteEngine {
    fn run(self, mailbox: EngineMailbox) {
        match self.kind {
            ServerKind::Sglang => self.serve::<sglang::Server>(mailbox),
            ServerKind::Vllm => self.serve::<vllm::Server>(mailbox),
        }
    }
}

/// The server does not say what it serves.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {why}")]
pub struct NoModel {
    /// The server.
    pub url: String,
    /// What it said, or did not.
    pub why: String,
}

//! What a serving engine receives and sends.
//!
//! An engine is one replica. It lives on a thread of its own ([`spawn`]), takes [`EngineCommand`]s
//! and sends [`EngineEvent`]s; it decides nothing, and knows nothing of samples. Every
//! [`Generate`](EngineCommand::Generate) has exactly one [`Ended`](EngineEvent::Ended), unless the
//! engine goes [down](EngineEvent::Down), which ends everything on it.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use headway_shared::action::InFlight;
use headway_shared::config::KvOnSync;
use headway_shared::id::{PublicationId, ReplicaId, RequestId};
use headway_shared::input::{Finish, Segment, Segments};
use headway_shared::time::Time;
use headway_shared::version::{DeployVersion, RolloutVersion};
use tokio::sync::mpsc;

use crate::clock::Clock;

mod remote;
mod sglang;
#[cfg(feature = "torch")]
pub mod tch;
mod vllm;

pub use remote::{NoModel, RemoteEngine, ServerKind};

/// How tokens are sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// At most so many tokens are generated, those of earlier attempts included; at least 1.
    pub max_tokens: u32,
    /// 0: the most probable token. Log-probabilities are those of the distribution that was
    /// sampled from.
    pub temperature: f32,
    /// Seeds the request's own random numbers; equal seeds and weights, equal tokens.
    pub seed: u64,
    /// The turn ends behind any of these sequences of ids, which stay part of it. The token that
    /// ends a turn is one of them.
    pub stop: Arc<[Vec<u32>]>,
    /// The texts behind the sequences of `stop` that a client asked for: the same text can be
    /// generated as other ids. An engine that knows text ends the turn behind it however it is
    /// spelt; one that knows ids alone need not.
    pub stop_texts: Arc<[String]>,
}

/// A generated token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token {
    /// Its id.
    pub id: u32,
    /// The natural logarithm of the probability it was sampled with; never above 0.
    pub logprob: f32,
    /// The weights it was generated with. Stamped by the engine, and only read after that.
    pub version: RolloutVersion,
}

/// The segments of a turn: runs of equal versions among its tokens.
#[must_use]
pub fn segments(tokens: &[Token]) -> Segments {
    let runs = tokens.chunk_by(|one, next| one.version == next.version);
    runs.map(|run| Segment { version: run[0].version, tokens: run.len() as u32 }).collect()
}

/// One attempt to generate a turn.
#[derive(Clone, Debug)]
pub struct Generate {
    /// The request.
    pub request: RequestId,
    /// Counts the starts of this request, from 1.
    pub attempt: u32,
    /// The prompt.
    pub prompt: Arc<[u32]>,
    /// Go on after these tokens of the attempt before; empty: from the prompt.
    pub resume: Vec<Token>,
    /// How tokens are sampled.
    pub sampling: Sampling,
}

/// A tensor by name, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightTensor {
    /// Its name in the model.
    pub name: String,
    /// Its extent in each dimension; their product is the length of `data`.
    pub shape: Vec<i64>,
    /// Its elements.
    pub data: Vec<f32>,
}

/// All weights of a policy: an owned copy that crosses threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    /// The tensors, each name once.
    pub tensors: Vec<WeightTensor>,
}

/// Weights as they cross from the trainer to the engines. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub enum Export {
    /// In this process.
    Tensors(Arc<Weights>),
    /// A checkpoint that engines outside this process read: a directory as they see it.
    Directory(Arc<Path>),
}

impl From<Arc<Weights>> for Export {
    fn from(weights: Arc<Weights>) -> Self {
        Self::Tensors(weights)
    }
}

/// What an engine is told.
#[derive(Clone, Debug)]
pub enum EngineCommand {
    /// Generate a turn, together with those that are running.
    Generate(Box<Generate>),
    /// Stop an attempt; it ends with [`Finish::Aborted`] and keeps what it has. Of an attempt that
    /// is unknown or over, nothing more is said.
    Abort {
        /// The request.
        request: RequestId,
        /// The attempt.
        attempt: u32,
    },
    /// Load weights into a shadow copy and swap it in between two decode steps.
    Load {
        /// The publication they belong to.
        publication: PublicationId,
        /// Their version: the stamp of every token generated after the swap.
        version: DeployVersion,
        /// The weights.
        weights: Export,
        /// What the turns in flight do meanwhile.
        in_flight: InFlight,
        /// What becomes of their KV cache at the swap.
        kv: KvOnSync,
    },
    /// Abandon a load; turns that were frozen for it go on. Nothing more is said of it.
    CancelLoad {
        /// The publication.
        publication: PublicationId,
    },
    /// End the thread.
    Shutdown,
}

/// What an engine says.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineEvent {
    /// It serves, and holds these weights.
    Up {
        /// Their version.
        deploy: DeployVersion,
    },
    /// The tokens of one decode step, or of what a server has sent at once; those of an attempt in
    /// order.
    Tokens {
        /// When they were sampled.
        at: Time,
        /// Each with the attempt it belongs to.
        tokens: Vec<(RequestId, u32, Token)>,
    },
    /// An attempt ended; its segments are the runs of equal versions among its tokens.
    Ended {
        /// The request.
        request: RequestId,
        /// The attempt.
        attempt: u32,
        /// How.
        finish: Finish,
    },
    /// The weights of a publication are here, and are being loaded.
    Transferred {
        /// The publication.
        publication: PublicationId,
    },
    /// Every token from here on is generated with the new weights.
    Loaded {
        /// The publication.
        publication: PublicationId,
    },
    /// The weights were not loaded.
    LoadFailed {
        /// The publication.
        publication: PublicationId,
        /// The engine still holds its old weights, whole.
        intact: bool,
    },
    /// The server behind the engine is gone, and everything that ran on it. The engine waits for it
    /// and says [`Up`](Self::Up) when it is back.
    Lost,
    /// The engine is gone, and everything that ran on it. Sent by [`spawn`] when the thread ends.
    Down,
}

/// What an engine's thread holds of the outside.
#[derive(Debug)]
pub struct EngineMailbox {
    /// Commands. Closed: the run is over. While turns are running, an engine looks with
    /// `try_recv` between two decode steps; when idle it waits with `blocking_recv`.
    pub commands: mpsc::Receiver<EngineCommand>,
    /// Events, with room for a burst; `blocking_send` waits where the driver is behind.
    pub events: mpsc::Sender<EngineEvent>,
    /// Stamps [`EngineEvent::Tokens`].
    pub clock: Clock,
}

/// A serving engine.
pub trait Engine: Send + 'static {
    /// Serves until it is told to shut down or its commands are closed. To return or to panic
    /// means that the engine is down.
    fn run(self, mailbox: EngineMailbox);
}

/// An engine as the driver holds it.
#[derive(Debug)]
pub struct EngineLink {
    /// Which replica it is.
    pub replica: ReplicaId,
    /// Takes commands; full: the engine does not keep up, and what was to be started has failed.
    pub commands: mpsc::Sender<EngineCommand>,
    /// Gives events.
    pub events: mpsc::Receiver<EngineEvent>,
}

/// Events that may wait for the driver.
const EVENT_ROOM: usize = 1024;

/// Starts an engine on a thread of its own, with room for `command_room` commands.
///
/// # Errors
/// What the operating system says where it starts no thread.
pub fn spawn(
    replica: ReplicaId,
    clock: Clock,
    command_room: usize,
    engine: impl Engine,
) -> std::io::Result<EngineLink> {
    let (commands, receiver) = mpsc::channel(command_room.max(1));
    let (sender, events) = mpsc::channel(EVENT_ROOM);
    let down = Goodbye(sender.clone());
    let mailbox = EngineMailbox { commands: receiver, events: sender, clock };
    thread::Builder::new().name(format!("engine-{}", replica.0)).spawn(move || {
        let _down = down;
        engine.run(mailbox);
    })?;
    Ok(EngineLink { replica, commands, events })
}

/// Says that the engine is down, however its thread ends.
struct Goodbye(mpsc::Sender<EngineEvent>);

impl Drop for Goodbye {
    fn drop(&mut self) {
        // Nobody listens where the run is over.
        let _ = self.0.blocking_send(EngineEvent::Down);
    }
}

//! What the driver receives and answers.

use std::sync::Arc;

use headway_shared::action::{OperatorReply, Refusal, Reply};
use headway_shared::core::{BoundMove, Gauges, Ledger, State};
use headway_shared::guard::Found;
use headway_shared::id::{ReplicaId, RequestId, SampleId, VoteId};
use headway_shared::input::{Finish, Operator, TurnType};
use headway_shared::metrics::Summary;
use headway_shared::time::{Span, Time};
use headway_shared::version::LearnerVersion;
use tokio::sync::{mpsc, oneshot};

use super::kept::Kept;
use super::narrator::StepSummary;
use super::reconfigure::{InForce, Reconfiguration};
use crate::engine::{EngineEvent, Sampling, Token};
use crate::judge::{Trouble, Verdict};
use crate::store::Question;
use crate::trainer::TrainerEvent;

/// A client asks for a turn.
#[derive(Debug)]
pub struct Arrival {
    /// Its own identity: [`DriverHandle::next_request`](super::DriverHandle::next_request).
    pub request: RequestId,
    /// The name of its session; `None`: a session of its own, over with this turn.
    pub session: Option<String>,
    /// The name of its group of rollouts.
    pub group: Option<String>,
    /// Whether it may train.
    pub turn: TurnType,
    /// It is its session's last.
    pub last: bool,
    /// Tokens are wanted as they come.
    pub streamed: bool,
    /// What is asked.
    pub question: Arc<Question>,
    /// The last message, where it is the next state of the session's turn before.
    pub next_state: Option<Arc<str>>,
    /// How tokens are sampled.
    pub sampling: Sampling,
    /// Where the answer goes. Dropping its receiver does not end the turn: the client has to
    /// [leave](super::DriverHandle::leave).
    pub events: mpsc::UnboundedSender<TurnEvent>,
}

/// What a client learns of its turn.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEvent {
    /// Further tokens, where they are streamed.
    Tokens(Vec<Token>),
    /// It is refused. The last event.
    Refused {
        /// Why.
        reason: Refusal,
        /// When it may be asked again.
        retry_after: Span,
    },
    /// It is over, and recorded. The last event.
    Ended(Answer),
    /// The record could not be written: nothing is known to be kept. The last event.
    Unrecorded,
}

/// A turn that is over for its client.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// How it ended for the client.
    pub reply: Reply,
    /// How its generation ended.
    pub finish: Finish,
    /// All its tokens.
    pub tokens: Arc<[Token]>,
    /// The sample it became.
    pub sample: Option<SampleId>,
}

/// A request to the driver.
#[derive(Debug)]
pub(crate) enum Wish {
    /// A client asks for a turn.
    Arrival(Box<Arrival>),
    /// A session is over.
    SessionDone(String),
    /// An operator wants something.
    Operator(Operator, oneshot::Sender<OperatorReply>),
    /// An operator hands over a configuration.
    Reconfigure(Box<Reconfiguration>),
    /// Someone wants to know what is in force.
    InForce(oneshot::Sender<InForce>),
    /// Someone wants the metrics.
    Summary(oneshot::Sender<Summary>),
    /// Someone looks at the whole run.
    Look(oneshot::Sender<Look>),
    /// Someone wants the newest steps.
    Steps(oneshot::Sender<Vec<StepSummary>>),
    /// The run is to end, within this time.
    Shutdown(Span),
}

/// The run as people look at it.
#[derive(Clone, Debug)]
pub struct Look {
    /// Its metrics until now.
    pub summary: Summary,
    /// What bears on decisions: replicas, queues, limits.
    pub state: State,
    /// The newest train steps since the process began, oldest first.
    pub steps: Vec<StepSummary>,
}

/// Something that was started has come to an end, or goes on.
#[derive(Debug)]
pub(crate) enum Completion {
    /// An engine says something.
    Engine(ReplicaId, EngineEvent),
    /// The trainer says something.
    Trainer(TrainerEvent),
    /// A vote ended.
    Vote(VoteId, Verdict),
    /// All inputs up to this one are on disk.
    Committed(u64),
    /// Nothing is committed any more.
    CommitFailed(String),
}

/// How the run is, whenever nothing is left to do, and every few milliseconds while something is.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The time since the run's start.
    pub now: Time,
    /// The learner's version.
    pub learner: LearnerVersion,
    /// What is where.
    pub gauges: Gauges,
    /// The counters.
    pub ledger: Ledger,
    /// The loop that the trainer waits for, and why.
    pub waits_for: String,
    /// Inputs handled.
    pub inputs: u64,
    /// Of these, inputs on disk.
    pub committed: u64,
    /// An operator has wished for a publication, and it has not yet reached every replica.
    pub publication_wished: bool,
    /// The last move of an adaptive bound.
    pub bound_move: Option<BoundMove>,
    /// Votes that brought no score, by kind, since the process began: [`Trouble::NAMES`].
    pub failed_votes: [u64; Trouble::NAMES.len()],
    /// Why the run cannot go on.
    pub error: Option<String>,
    /// The run is ending.
    pub ending: bool,
    /// What the driver holds for work that is not over.
    pub kept: Kept,
    /// What engines said of turns that they were not asked for, or that were over.
    pub strays: u64,
    /// What its guard found, where it has one.
    pub guard: Option<Arc<Found>>,
}

impl Status {
    /// Why no request can be served now, if so.
    #[must_use]
    pub fn unready(&self) -> Option<String> {
        let closed = || self.gauges.closed.then(|| self.waits_for.clone());
        let ending = || self.ending.then(|| "the run is ending".to_owned());
        self.error.clone().or_else(ending).or_else(closed)
    }
}

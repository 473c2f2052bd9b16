//! The driver: one task owns the [`Scheduler`], stamps each input, appends it to the record,
//! handles it, and carries the actions out. It decides nothing.
//!
//! ```text
//!  engines, trainer, judges, record ──completions──►┐
//!                                                   ├─► Driver ──► Scheduler
//!  gateway, operators ───────────────wishes────────►┘      │
//!                                                          ├─► engines, judges: at once
//!                                                          └─► replies, train steps, publications:
//!                                                              when their input is on disk
//! ```
//!
//! Completions are looked at before wishes, so that a flood of requests does not keep a finished
//! step waiting. While a transaction is being committed, inputs gather for the next one: group
//! commit without a timer.

mod act;
mod awaiting;
mod book;
mod effect;
mod facts;
mod guarding;
mod handle;
mod kept;
mod measured;
mod message;
mod narrator;
mod reconfigure;
mod recovery;
mod shutdown;
mod start;
mod trajectory;
mod turn;
mod upgrade;

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;

use headway_shared::action::{Action, OperatorReply};
use headway_shared::core::{Fate, Scheduler};
use headway_shared::guard::{Found, Guard};
use headway_shared::id::{
    GroupId, PublicationId, ReplicaId, RequestId, SampleId, SessionId, StepId, VoteId,
};
use headway_shared::input::Input;
use headway_shared::metrics::Observer;
use headway_shared::record::Decisions;
use headway_shared::snapshot;
use headway_shared::time::{Span, Time};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Sleep;

use crate::clock::Clock;
use crate::engine::{EngineCommand, Export};
use crate::judge::{Judge, Verdict};
use crate::store::{Batch, Row, Writer};
use crate::tokenizer::Tokenizer;
use crate::trainer::{StepMetric, TrainerCommand};
use awaiting::Awaiting;
use book::Book;
use effect::Effect;
use message::{Completion, Wish};
use narrator::Narrator;
use shutdown::Ending;
use turn::{Payload, Turn};

pub use handle::DriverHandle;
pub use kept::Kept;
pub use message::{Answer, Arrival, Look, Status, TurnEvent};
pub use narrator::{LOGPROB_DIFF, StepSummary};
pub use reconfigure::{InForce, Reconfigured};
pub use recovery::Recovery;
pub use start::{DriverError, Options, Parts, start};
pub use upgrade::TakenOver;

/// How many completions, then how many wishes, are taken before the other kind is looked at.
const TURN_OF_EACH: usize = 64;
/// While so many rows wait for the disk, no new requests are taken.
const MOST_UNCOMMITTED: usize = 65_536;

/// How the run is, is shown when nothing is left to do, and else so often.
const SHOWN_EVERY: Span = Span::from_millis(10);
/// What nobody waits for is committed with what somebody waits for, or after so long.
const LATEST_COMMIT: Span = Span::from_millis(5);
/// So many rows are committed at once, whoever waits.
const MOST_GATHERED: usize = 4096;

/// See the [module](self).
struct Driver {
    options: Options,
    clock: Clock,
    scheduler: Scheduler,
    observer: Observer,
    narrator: Narrator,
    /// Holds the run to its envelope.
    guard: Option<Guard>,
    /// What it found, as others are shown it: made anew when it finds something.
    found: Option<Arc<Found>>,
    /// The guard wants the previous configuration back.
    roll_back_due: bool,
    decisions: Decisions,
    book: Book,

    tokenizer: Arc<dyn Tokenizer>,
    judge: Arc<dyn Judge>,
    engines: BTreeMap<ReplicaId, mpsc::Sender<EngineCommand>>,
    trainer: mpsc::Sender<TrainerCommand>,
    completions: mpsc::Receiver<Completion>,
    /// For votes, which report here.
    completed: mpsc::Sender<Completion>,
    wishes: mpsc::Receiver<Wish>,
    leavers: mpsc::UnboundedReceiver<RequestId>,
    status: watch::Sender<Status>,
    timer: Pin<Box<Sleep>>,
    /// What it is set to.
    rings: Time,
    /// When it was last shown.
    shown_at: Time,

    sessions: BTreeMap<String, SessionId>,
    session_names: BTreeMap<SessionId, String>,
    groups: GroupNames,
    turns: BTreeMap<RequestId, Turn>,
    samples: BTreeMap<SampleId, Payload>,
    /// Turns of each session whose next state has not been seen: the sample, and which turn of it.
    awaiting: Awaiting,
    votes: BTreeMap<VoteId, AbortHandle>,
    /// Of votes that took no waiting for.
    verdicts: VecDeque<(VoteId, Verdict)>,
    saved: Option<(PublicationId, Export)>,
    /// What the step that is about to end has measured.
    metrics: Vec<StepMetric>,
    /// What engines said of turns that they were not asked for, or that were over.
    strays: u64,
    /// Who waits for an operator's reply, in order.
    operators: VecDeque<Option<oneshot::Sender<OperatorReply>>>,

    /// Failures that carrying out an action has led to.
    followups: VecDeque<Input>,
    actions: Vec<Action>,
    writer: Writer,
    /// The number of the next input.
    seq: u64,
    /// How many inputs precede the newest snapshot.
    snapshot_at: u64,
    /// Inputs on disk.
    committed: u64,
    /// A batch is being committed.
    committing: bool,
    rows: Vec<Row>,
    /// When the first of them came.
    gathering_since: Time,
    /// What waits for the disk, by the input it waits for.
    effects: VecDeque<(u64, Effect)>,
    /// Why nothing is committed any more.
    record_failed: Option<String>,
    trainer_down: bool,
    ending: Option<Ending>,
}

/// Names of groups, of which the latest are remembered.
#[derive(Debug, Default)]
struct GroupNames {
    ids: BTreeMap<String, GroupId>,
    order: VecDeque<String>,
}

/// Far more groups than can be open at once.
const MOST_GROUPS: usize = 65_536;

impl GroupNames {
    fn get(&self, name: &str) -> Option<GroupId> {
        self.ids.get(name).copied()
    }

    fn insert(&mut self, name: String, id: GroupId) {
        if self.order.len() == MOST_GROUPS
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        self.order.push_back(name.clone());
        self.ids.insert(name, id);
    }
}

impl Driver {
    /// Runs until the run has ended.
    async fn run(mut self) -> Result<(), DriverError> {
        loop {
            let mut moved = self.take_completions();
            moved |= self.take_wishes();
            moved |= self.tick();
            self.settle();
            if self.has_ended() {
                return self.end();
            }
            if !moved {
                self.show();
                self.wait().await;
                self.settle();
            }
        }
    }

    /// Handles what has come of handling, hands the rows over, and shows how the run is.
    fn settle(&mut self) {
        loop {
            if let Some(input) = self.followups.pop_front() {
                self.feed(&input);
            } else if let Some((vote, verdict)) = self.verdicts.pop_front() {
                self.vote_ended(vote, verdict, true);
            } else {
                break;
            }
        }
        self.roll_back_if_due();
        self.forget_given_up();
        self.commit_if_due();
        if self.clock.now().since(self.shown_at) >= SHOWN_EVERY {
            self.show();
        }
        self.narrate();
    }

    /// Writes to the log what there is to say.
    fn narrate(&mut self) {
        self.narrator.look(self.clock.now(), &self.scheduler);
        self.narrator.take().iter().for_each(narrator::Note::log);
    }

    fn take_completions(&mut self) -> bool {
        for taken in 0..TURN_OF_EACH {
            let Ok(completion) = self.completions.try_recv() else { return taken > 0 };
            self.complete(completion);
        }
        true
    }

    fn take_wishes(&mut self) -> bool {
        for taken in 0..TURN_OF_EACH {
            if !self.is_closed()
                && let Ok(request) = self.leavers.try_recv()
            {
                self.client_left(request);
            } else if self.takes_wishes()
                && let Ok(wish) = self.wishes.try_recv()
            {
                self.grant(wish);
            } else {
                return taken > 0;
            }
        }
        true
    }

    fn takes_wishes(&self) -> bool {
        self.rows.len() < MOST_UNCOMMITTED && !self.is_closed()
    }

    /// Time has passed.
    fn tick(&mut self) -> bool {
        self.guard_passes();
        let due = self.timeout().is_some_and(|time| time <= self.clock.now());
        if due {
            self.feed(&Input::Tick);
        }
        due
    }

    /// When time is something that happens.
    fn timeout(&self) -> Option<Time> {
        self.scheduler.poll_timeout().filter(|_| !self.is_closed())
    }

    async fn wait(&mut self) {
        let speaks = Some(self.narrator.due());
        let due = [self.timeout(), self.ending_deadline(), self.guard_due(), self.commit_due()];
        let deadline = due.into_iter().chain([speaks]);
        let deadline = deadline.flatten().min();
        self.arm(deadline.unwrap_or(Time::MAX));
        let (takes_wishes, takes_leavers) = (self.takes_wishes(), !self.is_closed());
        tokio::select! {
            biased;
            Some(completion) = self.completions.recv() => self.complete(completion),
            Some(request) = self.leavers.recv(), if takes_leavers => self.client_left(request),
            Some(wish) = self.wishes.recv(), if takes_wishes => self.grant(wish),
            () = &mut self.timer => {}
        }
    }

    /// Sets the timer, unless it rings before that anyway: to be woken once too early, each few
    /// milliseconds, costs less than a timer for each wait, which wakes a thread to set its own.
    fn arm(&mut self, deadline: Time) {
        if deadline < self.rings || self.timer.is_elapsed() {
            self.timer.as_mut().reset(self.clock.instant(deadline));
            self.rings = deadline;
        }
    }

    /// One input: stamped, appended, handled; its actions are carried out, or wait for the disk.
    fn feed(&mut self, input: &Input) {
        let now = self.clock.now();
        self.options.at(Point::BeforeAppend);
        self.scheduler.handle(now, input);
        self.actions.clear();
        self.actions.extend(std::iter::from_fn(|| self.scheduler.poll_action()));
        let actions = std::mem::take(&mut self.actions);
        let seq = self.seq;
        self.seq += 1;
        let digest = self.decisions.add(now, &actions);
        let training = self.book.step;
        self.observer.observe(now, input, &actions, &self.scheduler);
        self.narrator.observe(now, input, &actions, &self.scheduler, &self.metrics, training);
        self.guard_observes(now, input, &actions);
        tracing::trace!(target: "headway", seq, actions = actions.len(), "an input");
        self.book.observe(input, &actions);
        let input_row =
            Row::Input { seq, at: now, input: Box::new(input.clone()), actions: digest };
        self.append(input_row);
        self.append_end(seq, input, training);
        self.options.at(Point::AfterAppend);
        for &action in &actions {
            self.act(seq, action);
        }
        self.resolve(seq, input);
        self.actions = actions;
        if self.seq.is_multiple_of(self.options.snapshot_every.max(1)) {
            self.snapshot();
        }
    }

    /// What an input says of a vote, or of the step that was training.
    fn append_end(&mut self, seq: u64, input: &Input, training: Option<StepId>) {
        match *input {
            Input::VoteEnded { vote, outcome, tokens, judge_version } => {
                self.append(Row::VoteEnded { vote, seq, outcome, tokens, judge_version });
            }
            Input::StepEnded { step, ok } => {
                let metrics = std::mem::take(&mut self.metrics);
                // What a step says that was given up comes too late, and counts for nothing.
                if training == Some(step) {
                    self.append(Row::StepEnded { step, ok, metrics, seq });
                    self.checkpoint_if_due(seq, ok);
                }
            }
            Input::Restored { .. } => {
                if let Some(step) = training {
                    self.append(Row::StepEnded { step, ok: false, metrics: Vec::new(), seq });
                }
            }
            _ => {}
        }
    }

    fn append(&mut self, row: Row) {
        if self.record_failed.is_none() {
            if self.rows.is_empty() {
                self.gathering_since = self.clock.now();
            }
            self.rows.push(row);
        }
    }

    /// What left the ledger.
    fn resolve(&mut self, seq: u64, input: &Input) {
        let step = match input {
            Input::StepEnded { step, .. } => Some(*step),
            _ => None,
        };
        for index in 0..self.scheduler.resolved().len() {
            let resolved = &self.scheduler.resolved()[index];
            let (step, fate) = match resolved.fate {
                Fate::Trained => (step, "trained"),
                Fate::Discarded(reason) => (None, reason.name()),
            };
            let sample = Box::new(resolved.sample.clone());
            self.samples.remove(&sample.id);
            self.awaiting.forget(sample.session, sample.id);
            self.append(Row::Resolved { sample, step, fate, seq });
        }
    }

    /// The state as it is now, for a restart.
    fn snapshot(&mut self) {
        if let Ok(core) = snapshot::to_bytes(&self.scheduler) {
            let book = self.book.to_bytes();
            self.append(Row::Snapshot { inputs: self.seq, core, book });
            self.snapshot_at = self.seq;
        }
    }

    /// When what has gathered is to be handed over, though nobody waits for it.
    fn commit_due(&self) -> Option<Time> {
        let idle = !self.committing && !self.rows.is_empty();
        idle.then(|| self.gathering_since + LATEST_COMMIT)
    }

    /// Hands over what has gathered, if somebody waits for it or it has waited long enough. So an
    /// answer does not wait for a commit of what came just before it, and then for its own.
    fn commit_if_due(&mut self) {
        let awaited = !self.effects.is_empty() || self.rows.len() >= MOST_GATHERED;
        if awaited || self.commit_due().is_some_and(|due| due <= self.clock.now()) {
            self.commit();
        }
    }

    /// Hands over what has gathered, unless a batch is under way.
    fn commit(&mut self) {
        if self.committing || self.rows.is_empty() {
            return;
        }
        let rows = std::mem::take(&mut self.rows);
        self.writer.commit(Batch { last: self.seq - 1, rows });
        self.committing = true;
    }

    fn show(&mut self) {
        self.shown_at = self.clock.now();
        let error = self.record_failed.clone().or_else(|| {
            let down = || self.trainer_down.then(|| "the trainer is down".to_owned());
            self.scheduler.error().map(|error| error.to_string()).or_else(down)
        });
        self.status.send_replace(Status {
            now: self.scheduler.now(),
            learner: self.scheduler.learner(),
            gauges: self.scheduler.gauges(),
            ledger: self.scheduler.ledger().clone(),
            waits_for: self.scheduler.stall().to_string(),
            inputs: self.seq,
            committed: self.committed,
            publication_wished: self.scheduler.publication_wished(),
            bound_move: self.scheduler.last_bound_move(),
            failed_votes: self.narrator.failed_votes(),
            error,
            ending: self.ending.is_some(),
            kept: self.kept(),
            strays: self.strays,
            guard: self.found.clone(),
        });
    }
}

/// A place where a process can be killed: tests do so, to see that nothing is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before an input is handled and appended.
    BeforeAppend,
    /// After that, and before its actions are carried out.
    AfterAppend,
    /// Before a transaction.
    BeforeCommit,
    /// After it, before anyone knows.
    AfterCommit,
    /// Before a client gets its answer.
    BeforeReply,
    /// After that.
    AfterReply,
    /// Before the trainer gets a batch.
    BeforeLease,
    /// After that.
    AfterLease,
    /// Before the trainer writes a checkpoint.
    BeforeCheckpoint,
    /// When it is written, and has not got its name.
    BeforeRename,
    /// When it is whole in its place, before anyone knows.
    AfterRename,
}

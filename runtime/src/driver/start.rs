//! A run begins, or goes on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use headway_shared::action::RunError;
use headway_shared::config::{Config, GuardSettings, SampleUnit};
use headway_shared::id::StepId;
use headway_shared::input::{Input, Operator};
use headway_shared::metrics::Observer;
use headway_shared::record::{DECISION_VERSION, Decisions};
use headway_shared::time::Span;
use headway_shared::version::LearnerVersion;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::awaiting::Awaiting;
use super::message::{Completion, Status};
use super::narrator::{Narrator, Note};
use super::recovery::Recovery;
use super::turn::Payload;
use super::{Driver, DriverHandle, GroupNames, Kept, Point};
use crate::clock::wall_millis;
use crate::engine::EngineLink;
use crate::judge::Judge;
use crate::store::{Durability, Keep, Said, StoreError, Writer};
use crate::tokenizer::Tokenizer;
use crate::trainer::{TrainerCommand, TrainerEvent, TrainerLink};

/// How a run is driven; nothing here changes a decision.
#[derive(Clone)]
pub struct Options {
    /// A snapshot is taken after so many inputs; a restart handles at most so many again.
    pub snapshot_every: u64,
    /// So many snapshots are kept.
    pub keep_snapshots: u32,
    /// Inputs before the oldest snapshot are kept, so that a replay can begin at the start.
    pub keep_inputs: bool,
    /// What a commit of the record survives.
    pub durability: Durability,
    /// The trainer writes a checkpoint after so many versions; 0: at the end alone.
    pub checkpoint_every: u32,
    /// The run admits requests; if not, it starts paused.
    pub submission_enabled: bool,
    /// The wall clock, in milliseconds since 1970: a column of the record, which no decision knows.
    pub wall: fn() -> i64,
    /// `train_rollout_logprob_abs_diff` is logged with each step.
    pub log_logprob_diff: bool,
    /// What the run is held to.
    pub guard: Option<GuardSettings>,
    /// Called at each [`Point`]: tests end the process there.
    pub probe: Option<Arc<dyn Fn(Point) + Send + Sync>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            snapshot_every: 10_000,
            keep_snapshots: 4,
            keep_inputs: true,
            durability: Durability::default(),
            checkpoint_every: 10,
            submission_enabled: true,
            wall: wall_millis,
            log_logprob_diff: true,
            guard: None,
            probe: None,
        }
    }
}

impl Options {
    pub(super) fn at(&self, point: Point) {
        if let Some(probe) = &self.probe {
            probe(point);
        }
    }
}

/// What a run consists of.
pub struct Parts {
    /// Text to token ids and back.
    pub tokenizer: Arc<dyn Tokenizer>,
    /// What judges.
    pub judge: Arc<dyn Judge>,
    /// The serving engines.
    pub engines: Vec<EngineLink>,
    /// The trainer.
    pub trainer: TrainerLink,
}

/// Why a run did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// Its record cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record could not be written.
    #[error("{0}")]
    Record(String),
    /// The trainer is gone.
    #[error("the trainer is down")]
    TrainerDown,
    /// The trainer's checkpoint is of a version that the record does not know.
    #[error(
        "the trainer's checkpoint is version {checkpoint}, but the record ends at version {learner}: \
         it belongs to another run"
    )]
    CheckpointAhead {
        /// The checkpoint's version.
        checkpoint: u32,
        /// The record's newest version.
        learner: u32,
    },
    /// What a sample is stays the same for as long as there is a record.
    #[error(
        "the record's samples are each a {recorded}: keep `sample_unit = \"{recorded}\"`, or begin \
         a new record"
    )]
    SampleUnit {
        /// What they are in the record: `turn` or `session`.
        recorded: &'static str,
    },
    /// The core has ended the run.
    #[error("{0}")]
    Run(RunError),
}

/// Completions that may wait for the driver.
const COMPLETION_ROOM: usize = 4096;
/// Requests that may wait for the driver; further ones wait in the gateway.
const WISH_ROOM: usize = 1024;

/// Starts the driver's task: waits for the trainer, ends what a crash left in flight, and goes on.
///
/// # Errors
/// [`DriverError`], but for `Run`.
pub async fn start(
    recovery: Recovery,
    mut parts: Parts,
    options: Options,
) -> Result<(DriverHandle, JoinHandle<Result<(), DriverError>>), DriverError> {
    let recorded = recovery.scheduler.config().policy_training.sample_unit;
    if recovery.config.policy_training.sample_unit != recorded {
        let recorded = if recorded == SampleUnit::Turn { "turn" } else { "session" };
        return Err(DriverError::SampleUnit { recorded });
    }
    let (checkpoint, step) = trainer_up(&recovery, &mut parts.trainer).await?;
    let config = recovery.config.clone();
    let (mut driver, handle) = assemble(recovery, parts, options)?;
    driver.go_on(checkpoint, step, &config)?;
    driver.hold_to(driver.options.guard.clone());
    Ok((handle, tokio::spawn(driver.run())))
}

/// Waits for the trainer. A checkpoint whose step the record counts as failed is not begun with.
async fn trainer_up(
    recovery: &Recovery,
    trainer: &mut TrainerLink,
) -> Result<(LearnerVersion, Option<StepId>), DriverError> {
    let mut cancelled = None;
    loop {
        let Some(TrainerEvent::Up { checkpoint, step }) = trainer.events.recv().await else {
            return Err(DriverError::TrainerDown);
        };
        match step {
            Some(made_by) if cancelled != step && recovery.counts_as_failed(made_by)? => {
                let cancel = TrainerCommand::CancelStep { step: made_by };
                trainer.commands.send(cancel).await.map_err(|_| DriverError::TrainerDown)?;
                cancelled = step;
            }
            _ => return Ok((checkpoint, step)),
        }
    }
}

fn assemble(
    recovery: Recovery,
    parts: Parts,
    options: Options,
) -> Result<(Driver, DriverHandle), DriverError> {
    let clock = recovery.clock();
    let Recovery { mut database, scheduler, book, seq, sessions, groups, samples, .. } = recovery;
    let (completed, completions) = mpsc::channel(COMPLETION_ROOM);
    let (wish, wishes) = mpsc::channel(WISH_ROOM);
    let (leave, leavers) = mpsc::unbounded_channel();
    let (status, shown) = watch::channel(first_status(&scheduler, seq));
    let next_request = Arc::new(AtomicU64::new(book.next_request));
    let handle = DriverHandle { wishes: wish, leavers: leave, status: shown, next_request };
    database.set_durability(options.durability)?;
    let writer = start_writer(database, &options, completed.clone()).map_err(StoreError::from)?;
    let mut names = GroupNames::default();
    groups.into_iter().for_each(|(id, name)| names.insert(name, id));
    let mut awaiting = Awaiting::default();
    for sample in &samples {
        let parts = sample.parts.iter().enumerate();
        let waiting = parts.filter(|(_, part)| part.next_state.is_none());
        waiting.for_each(|(number, _)| awaiting.add(sample.session, (sample.id, number)));
    }
    let engines = parts.engines.iter().map(|link| (link.replica, link.commands.clone())).collect();
    let trainer = parts.trainer.commands.clone();
    forward(parts.engines, parts.trainer, &completed);
    let driver = Driver {
        observer: Observer::new(scheduler.config(), Span::ZERO),
        narrator: Narrator::new(&scheduler, clock.now(), options.log_logprob_diff),
        guard: None,
        found: None,
        roll_back_due: false,
        decisions: Decisions::default(),
        session_names: sessions.iter().cloned().collect(),
        sessions: sessions.into_iter().map(|(id, name)| (name, id)).collect(),
        groups: names,
        turns: BTreeMap::new(),
        samples: samples.into_iter().map(|sample| (sample.id, Payload::from(sample))).collect(),
        awaiting,
        votes: BTreeMap::new(),
        verdicts: VecDeque::new(),
        saved: None,
        metrics: Vec::new(),
        strays: 0,
        operators: VecDeque::new(),
        followups: VecDeque::new(),
        actions: Vec::new(),
        // Nothing is known of the one that the record may end with.
        snapshot_at: 0,
        committed: seq,
        committing: false,
        rows: Vec::new(),
        gathering_since: clock.now(),
        shown_at: clock.now(),
        timer: Box::pin(tokio::time::sleep_until(clock.instant(clock.now()))),
        rings: clock.now(),
        effects: VecDeque::new(),
        record_failed: None,
        trainer_down: false,
        ending: None,
        tokenizer: parts.tokenizer,
        judge: parts.judge,
        options,
        clock,
        scheduler,
        book,
        engines,
        trainer,
        completions,
        completed,
        wishes,
        leavers,
        status,
        writer,
        seq,
    };
    Ok((driver, handle))
}

fn first_status(scheduler: &headway_shared::core::Scheduler, seq: u64) -> Status {
    Status {
        now: scheduler.now(),
        learner: scheduler.learner(),
        gauges: scheduler.gauges(),
        ledger: scheduler.ledger().clone(),
        waits_for: scheduler.stall().to_string(),
        inputs: seq,
        committed: seq,
        publication_wished: scheduler.publication_wished(),
        bound_move: scheduler.last_bound_move(),
        failed_votes: Default::default(),
        error: None,
        ending: false,
        kept: Kept::default(),
        strays: 0,
        guard: None,
    }
}

fn start_writer(
    database: crate::store::Database,
    options: &Options,
    completed: mpsc::Sender<Completion>,
) -> std::io::Result<Writer> {
    let probe = options.clone();
    let keep = Keep { snapshots: options.keep_snapshots, inputs: options.keep_inputs };
    Writer::start(database, keep, options.wall, move |said| match said {
        Said::Begins => probe.at(Point::BeforeCommit),
        Said::Committed(last) => {
            probe.at(Point::AfterCommit);
            let _ = completed.blocking_send(Completion::Committed(last));
        }
        Said::Failed(why) => {
            let _ = completed.blocking_send(Completion::CommitFailed(why));
        }
    })
}

/// Brings what engines and the trainer say into one line.
fn forward(engines: Vec<EngineLink>, trainer: TrainerLink, completed: &mpsc::Sender<Completion>) {
    for EngineLink { replica, mut events, .. } in engines {
        let completed = completed.clone();
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                if completed.send(Completion::Engine(replica, event)).await.is_err() {
                    return;
                }
            }
        });
    }
    let (completed, mut events) = (completed.clone(), trainer.events);
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if completed.send(Completion::Trainer(event)).await.is_err() {
                return;
            }
        }
    });
}

impl Driver {
    fn begin_log(&mut self, in_flight: u64, checkpoint: LearnerVersion, config: &Config) {
        let decision_version = DECISION_VERSION;
        self.narrator.say(Note::Started { config: config.digest(), decision_version });
        if self.seq > 0 {
            let (checkpoint, learner) = (checkpoint.number(), self.scheduler.learner().number());
            let (inputs, step) = (self.seq, self.book.step.is_some());
            self.narrator.say(Note::Recovered { inputs, in_flight, step, checkpoint, learner });
        }
    }

    /// Ends what was in flight when the record broke off, and takes up the wished configuration.
    fn go_on(
        &mut self,
        checkpoint: LearnerVersion,
        made_by: Option<StepId>,
        config: &Config,
    ) -> Result<(), DriverError> {
        let ends = self.book.ends();
        self.begin_log(ends.len() as u64, checkpoint, config);
        for input in ends {
            self.feed(&input);
        }
        if let Some(step) = self.book.step {
            let learner = self.scheduler.learner();
            // The run was killed between the trainer's checkpoint and the record of its step.
            let ok = made_by == Some(step) && checkpoint == learner.next();
            // An older checkpoint voids the step: if it failed before that, its samples, which are lost, would
            // begin another one.
            if checkpoint >= learner {
                self.feed(&Input::StepEnded { step, ok });
            }
        }
        let learner = self.scheduler.learner();
        if checkpoint > learner {
            let (checkpoint, learner) = (checkpoint.number(), learner.number());
            return Err(DriverError::CheckpointAhead { checkpoint, learner });
        }
        if checkpoint < learner {
            self.feed(&Input::Restored { checkpoint });
        }
        self.end_names();
        if self.scheduler.config() != config {
            self.operate(Operator::Reconfigure(Box::new(config.clone())));
        }
        match self.options.submission_enabled {
            true if self.book.paused => self.operate(Operator::Resume),
            false if !self.book.paused => self.operate(Operator::Pause),
            _ => {}
        }
        Ok(())
    }
}

//! From the record to a core that goes on.

use std::path::Path;

use headway_shared::config::Config;
use headway_shared::core::Scheduler;
use headway_shared::id::{GroupId, SessionId, StepId};
use headway_shared::record::DECISION_VERSION;
use headway_shared::replay::Replayer;
use headway_shared::time::Span;
use headway_shared::version::LearnerVersion;

use super::MOST_GROUPS;
use super::book::Book;
use super::upgrade::{Taken, TakenOver, take_over};
use crate::clock::Clock;
use crate::store::{Database, LiveSample, StoreError};

/// A run as its record tells it, ready to be [started](super::start): the newest snapshot, with
/// the inputs behind it handled again. Each of these must cause the actions that it caused when it
/// was recorded, unless another decision version decided them: then the record is [taken
/// over](TakenOver).
#[derive(Debug)]
pub struct Recovery {
    pub(super) database: Database,
    pub(super) config: Config,
    pub(super) scheduler: Scheduler,
    pub(super) book: Book,
    pub(super) seq: u64,
    pub(super) sessions: Vec<(SessionId, String)>,
    pub(super) groups: Vec<(GroupId, String)>,
    pub(super) samples: Vec<LiveSample>,
    taken_over: Option<TakenOver>,
    clock: Clock,
}

impl Recovery {
    /// Opens the record at `path`, or creates it. `config` is what the run is to go on with.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path, config: Config) -> Result<Self, StoreError> {
        let mut database = Database::open(path, &config)?;
        let decided = database.decision_version()?;
        if decided != DECISION_VERSION {
            let taken = take_over(&mut database, decided)?;
            return Self::at(database, config, taken);
        }
        let (mut replayer, mut book) = match database.newest_snapshot()? {
            None => (Replayer::new(database.config().clone()), Book::default()),
            Some(snapshot) => {
                let book = Book::from_bytes(&snapshot.book, snapshot.inputs)?;
                (Replayer::restore(&snapshot.core, snapshot.inputs)?, book)
            }
        };
        let from = replayer.report().decisions.inputs;
        database.inputs_from(from, |stored| {
            let input = stored.input.clone();
            replayer.input(stored.at, stored.input, stored.actions)?;
            book.observe(&input, replayer.actions());
            Ok(())
        })?;
        let report = replayer.report();
        let (inputs, end) = (report.decisions.inputs, report.end);
        let scheduler = replayer.into_scheduler();
        Self::at(database, config, Taken { scheduler, book, inputs, end, over: None })
    }

    fn at(database: Database, config: Config, taken: Taken) -> Result<Self, StoreError> {
        let Taken { scheduler, book, inputs: seq, end, over: taken_over } = taken;
        let (sessions, samples) = (database.live_sessions()?, database.live_samples()?);
        let groups = database.latest_groups(MOST_GROUPS)?;
        // Later than the last input, whatever the wall clock did meanwhile.
        let clock = Clock::from(end + Span::from_nanos(1));
        Ok(Self {
            database,
            config,
            scheduler,
            book,
            seq,
            sessions,
            groups,
            samples,
            taken_over,
            clock,
        })
    }

    /// Another decision version decided the record until now.
    #[must_use]
    pub const fn taken_over(&self) -> Option<TakenOver> {
        self.taken_over
    }

    /// The record says that this step failed, or was given up.
    pub(super) fn counts_as_failed(&self, step: StepId) -> Result<bool, StoreError> {
        Ok(self.database.step_ended(step)? == Some(false))
    }

    /// The run's clock, for the threads of engines and the trainer.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// The newest version that the record knows.
    #[must_use]
    pub fn learner(&self) -> LearnerVersion {
        self.scheduler.learner()
    }

    /// Inputs that are in the record already; 0: a new run.
    #[must_use]
    pub const fn inputs(&self) -> u64 {
        self.seq
    }
}

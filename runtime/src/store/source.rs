//! A database as a run to read.

use std::path::{Path, PathBuf};

use headway_shared::config::Config;
use headway_shared::core::Scheduler;
use headway_shared::digest::Digest;
use headway_shared::id::StepId;
use headway_shared::input::Input;
use headway_shared::replay::{ReplayError, Replayer};
use headway_shared::snapshot;
use headway_shared::source::{Reported, RunSource, SourceError};
use headway_shared::time::Time;
use rusqlite::Connection;

use super::read::unsigned;
use super::stretch::{Stretch, first_snapshot, stretches};
use super::{StoreError, open_to_read, read};

/// A live run, from its database; a run may be writing to it. Its inputs are those that the present
/// decision version has decided last, as far as they had come when it was opened.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    path: PathBuf,
    stretch: Stretch,
    config: Config,
}

impl RecordedRun {
    /// Opens a record to read it.
    ///
    /// # Errors
    /// It is no record that this build can read; [`StoreError::OtherDecisions`] where another
    /// decision version has decided its last inputs.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let run = Self::open_any(path)?;
        if !run.stretch.is_ours() {
            let found = run.stretch.decision_version.to_string();
            return Err(StoreError::OtherDecisions { found });
        }
        Ok(run)
    }

    /// The same, whatever decision version decided its last inputs: what this build decides on them
    /// need not be what was decided.
    ///
    /// # Errors
    /// It is no record that this build can read.
    pub fn open_any(path: &Path) -> Result<Self, StoreError> {
        let (connection, config) = open_to_read(path)?;
        let transaction = connection.unchecked_transaction()?;
        let none = || StoreError::Damaged { place: "it has no inputs".to_owned() };
        let stretch = stretches(&transaction)?.pop().ok_or_else(none)?;
        let first = restored(&transaction, &stretch)?;
        let config = first.map_or(config, |core| core.config().clone());
        Ok(Self { path: path.to_owned(), stretch, config })
    }

    /// Which of its inputs these are.
    #[must_use]
    pub const fn stretch(&self) -> Stretch {
        self.stretch
    }
}

/// The core at the beginning of a stretch; `None`: a fresh one.
fn restored(connection: &Connection, stretch: &Stretch) -> Result<Option<Scheduler>, StoreError> {
    let first = first_snapshot(connection, stretch)?;
    let restore = |inputs, bytes: &[u8]| -> Result<Scheduler, ReplayError> {
        match stretch.is_ours() {
            true => Ok(Replayer::restore(bytes, inputs)?.into_scheduler()),
            false => {
                snapshot::facts(bytes).map_err(|error| ReplayError::Snapshot { inputs, error })
            }
        }
    };
    Ok(first.map(|first| restore(first.inputs, &first.core)).transpose()?)
}

impl RunSource for RecordedRun {
    fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn core(&self) -> Result<Scheduler, SourceError> {
        let (connection, _) = open_to_read(&self.path).map_err(other)?;
        let restored = restored(&connection, &self.stretch).map_err(other)?;
        Ok(restored.unwrap_or_else(|| Scheduler::new(self.config.clone())))
    }

    fn inputs(&self, each: &mut dyn FnMut(Time, &Input)) -> Result<(), SourceError> {
        self.decided(&mut |at, input, _| each(at, input))
    }

    fn decided(
        &self,
        each: &mut dyn FnMut(Time, &Input, Option<Digest>),
    ) -> Result<(), SourceError> {
        let (connection, _) = open_to_read(&self.path).map_err(other)?;
        let read = read::inputs_of(&connection, self.stretch.from..self.stretch.to, |stored| {
            each(stored.at, &stored.input, Some(stored.actions));
            Ok(())
        });
        read.map_err(other)
    }

    fn first_input(&self) -> u64 {
        self.stretch.from
    }

    fn length(&self) -> Option<u64> {
        self.stretch.to.checked_sub(self.stretch.from)
    }

    fn decision_version(&self) -> u32 {
        self.stretch.decision_version
    }

    fn reported(&self) -> Result<Vec<Reported>, SourceError> {
        let (connection, _) = open_to_read(&self.path).map_err(other)?;
        reported(&connection).map_err(|error| other(error.into()))
    }
}

fn reported(connection: &Connection) -> Result<Vec<Reported>, rusqlite::Error> {
    // A number that was none is NULL; infinities are stored as they are.
    let sql = "SELECT step, name, staleness, value FROM step_metrics
               WHERE value IS NOT NULL AND abs(value) < 1e308 ORDER BY step, name, staleness";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| {
        let staleness: i64 = row.get(2)?;
        Ok(Reported {
            step: StepId(unsigned(row, 0)?),
            name: row.get(1)?,
            staleness: u32::try_from(staleness).ok(),
            value: row.get(3)?,
        })
    })?;
    rows.collect()
}

fn other(error: StoreError) -> SourceError {
    match error {
        StoreError::Replay(ReplayError::OtherDecisions { found }) => {
            SourceError::OtherDecisions { found }
        }
        error => SourceError::Other(Box::new(error)),
    }
}

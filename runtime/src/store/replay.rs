//! Replay of a database.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use headway_shared::config::Config;
use headway_shared::replay::{ReplayReport, Replayer};
use rusqlite::Connection;

use super::stretch::{Stretch, first_snapshot, snapshot_behind, stretches};
use super::{MAGIC, StoreError, open_to_read, read};

/// A stretch of a record, and what agreed in it; `None`: this build cannot verify it.
pub type Replayed = (Stretch, Option<ReplayReport>);

/// Whether a file is a SQLite database, by its first bytes.
///
/// # Errors
/// What reading gives.
pub fn is_database(path: &Path) -> std::io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut start)?;
    Ok(start == MAGIC)
}

/// Feeds the inputs of a record to a fresh core, which must decide the same, input by input; where
/// old inputs were trimmed, to the oldest snapshot. Every snapshot must be the core at its place.
/// The report is that of the last stretch that this build can verify.
///
/// # Errors
/// The first thing that is wrong or differs; [`StoreError::OtherDecisions`] where no stretch can be
/// verified.
pub fn replay(path: &Path) -> Result<ReplayReport, StoreError> {
    let replayed = replay_stretches(path)?;
    let other = replayed.last().map_or(0, |(stretch, _)| stretch.decision_version);
    let last = replayed.into_iter().rev().find_map(|(_, report)| report);
    last.ok_or(StoreError::OtherDecisions { found: other.to_string() })
}

/// The same, with every stretch.
///
/// # Errors
/// The first thing that is wrong or differs.
pub fn replay_stretches(path: &Path) -> Result<Vec<Replayed>, StoreError> {
    replay_stretches_with(path, &mut || {})
}

/// The same; `each` is called behind every input, for whoever waits.
///
/// # Errors
/// As [`replay_stretches`].
pub fn replay_stretches_with(
    path: &Path,
    each: &mut dyn FnMut(),
) -> Result<Vec<Replayed>, StoreError> {
    let (connection, config) = open_to_read(path)?;
    let transaction = connection.unchecked_transaction()?;
    let stretches = stretches(&transaction)?;
    let count = stretches.len();
    let replay = |(index, stretch): (usize, Stretch)| {
        let last = index + 1 == count;
        let report =
            stretch.is_ours().then(|| replay_stretch(&transaction, &config, stretch, last, each));
        Ok((stretch, report.transpose()?))
    };
    stretches.into_iter().enumerate().map(replay).collect()
}

/// How many inputs of a record this build can verify, for whoever waits.
///
/// # Errors
/// It is no record that this build can read.
pub fn count_verifiable(path: &Path) -> Result<u64, StoreError> {
    let (connection, _) = open_to_read(path)?;
    let ours = stretches(&connection)?.into_iter().filter(Stretch::is_ours);
    Ok(ours.map(|stretch| stretch.to.saturating_sub(stretch.from)).sum())
}

fn replay_stretch(
    connection: &Connection,
    config: &Config,
    stretch: Stretch,
    last: bool,
    each: &mut dyn FnMut(),
) -> Result<ReplayReport, StoreError> {
    let mut replayer = match first_snapshot(connection, &stretch)? {
        None => Replayer::new(config.clone()),
        Some(snapshot) => Replayer::restore(&snapshot.core, snapshot.inputs)?,
    };
    let from = replayer.report().decisions.inputs;
    read::inputs_of(connection, from..stretch.to, |stored| {
        replayer.input(stored.at, stored.input, stored.actions)?;
        each();
        match snapshot_behind(connection, &stretch, last, stored.seq)? {
            Some(bytes) => Ok(replayer.snapshot(&bytes)?),
            None => Ok(()),
        }
    })?;
    Ok(replayer.report())
}

//! Replay of a database.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use headway_shared::replay::{ReplayReport, Replayer};

use super::{MAGIC, StoreError, open_to_read, read};

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
///
/// # Errors
/// The first thing that is wrong or differs.
pub fn replay(path: &Path) -> Result<ReplayReport, StoreError> {
    let (connection, config) = open_to_read(path)?;
    let first: Option<u64> = connection
        .query_row("SELECT min(seq) FROM inputs", [], |row| row.get::<_, Option<i64>>(0))?
        .map(i64::cast_unsigned);
    let oldest = read::oldest_snapshot(&connection)?;
    let mut replayer = match oldest {
        Some(snapshot) if first != Some(0) => Replayer::restore(&snapshot.core, snapshot.inputs)?,
        _ => Replayer::new(config),
    };
    let from = replayer.report().decisions.inputs;
    read::inputs_from(&connection, from, |stored| {
        replayer.input(stored.at, stored.input, stored.actions)?;
        match read::snapshot_at(&connection, stored.seq + 1)? {
            Some(bytes) => Ok(replayer.snapshot(&bytes)?),
            None => Ok(()),
        }
    })?;
    Ok(replayer.report())
}

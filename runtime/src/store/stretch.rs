//! Stretches of a record: which decision version decided which inputs, and which of them this
//! build can verify.

use headway_shared::record::DECISION_VERSION;
use rusqlite::{Connection, OptionalExtension};

use super::read::{self, StoredSnapshot, unsigned};
use super::write::number;
use super::{StoreError, value};

/// Inputs that one decision version decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first of them.
    pub from: u64,
    /// Behind the last of them.
    pub to: u64,
    /// Which version.
    pub decision_version: u32,
}

impl Stretch {
    /// This build decides as it was decided here.
    #[must_use]
    pub const fn is_ours(&self) -> bool {
        self.decision_version == DECISION_VERSION
    }
}

/// The stretches of a record, without what was trimmed away, in order; at least one.
pub(super) fn stretches(connection: &Connection) -> Result<Vec<Stretch>, StoreError> {
    let begun = begun(connection)?;
    let (first, end) =
        connection.query_row("SELECT min(seq), max(seq) FROM inputs", [], |row| {
            let number = |column| row.get::<_, Option<i64>>(column);
            let (first, last) = (number(0)?, number(1)?);
            Ok((first.map(i64::cast_unsigned), last.map(|last| last.cast_unsigned() + 1)))
        })?;
    let last = begun.last().map_or(0, |&(from, _)| from);
    let (first, end) = (first.unwrap_or(last), end.unwrap_or(last));
    let ends = begun.iter().skip(1).map(|&(from, _)| from).chain([end]);
    let whole = begun.iter().zip(ends).map(|(&(from, decision_version), to)| Stretch {
        from: from.max(first),
        to,
        decision_version,
    });
    let count = begun.len();
    let kept = whole.enumerate().filter(|(index, s)| s.from < s.to || index + 1 == count);
    Ok(kept.map(|(_, stretch)| stretch).collect())
}

/// Where each decision version began, in order.
fn begun(connection: &Connection) -> Result<Vec<(u64, u32)>, StoreError> {
    let found = value(connection, "decision_version")?;
    let version = found.parse().map_err(|_| StoreError::NotARecord)?;
    let mut begun = vec![(0, version)];
    let table = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'epochs'";
    if connection.query_row(table, [], |row| row.get::<_, u32>(0))? > 0 {
        let sql = "SELECT from_input, decision_version FROM epochs ORDER BY from_input";
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([], |row| Ok((unsigned(row, 0)?, row.get(1)?)))?;
        for row in rows {
            begun.push(row?);
        }
    }
    Ok(begun)
}

/// Where a replay of a stretch begins: at the start of the run, or at the snapshot with which the
/// inputs that are kept, or a decision version, began.
pub(super) fn first_snapshot(
    connection: &Connection,
    stretch: &Stretch,
) -> Result<Option<StoredSnapshot>, StoreError> {
    let from = stretch.from;
    if from == 0 {
        return Ok(None);
    }
    let sql = "SELECT core, book FROM snapshots WHERE inputs = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        let (core, book) = (row.get(0)?, row.get(1)?);
        Ok(StoredSnapshot { inputs: from, core, book })
    };
    let found = connection.query_row(sql, [number(from)], read).optional()?;
    let place = || StoreError::Damaged {
        place: format!(
            "its inputs begin at {from}, and there is no snapshot behind the {from} before it"
        ),
    };
    found.map(Some).ok_or_else(place)
}

/// The snapshot that belongs to a stretch behind input `seq`, if there is one. At the end of a
/// stretch stands that of the next one.
pub(super) fn snapshot_behind(
    connection: &Connection,
    stretch: &Stretch,
    last_stretch: bool,
    seq: u64,
) -> Result<Option<Vec<u8>>, StoreError> {
    match seq + 1 == stretch.to && !last_stretch {
        true => Ok(None),
        false => read::snapshot_at(connection, seq + 1),
    }
}

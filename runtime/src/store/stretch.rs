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
    let table = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'epochs'";
    let has = connection.query_row(table, [], |row| row.get::<_, String>(0)).optional()?;
    if has.is_none() {
        let found = value(connection, "decision_version")?;
        let version = found.parse().map_err(|_| StoreError::NotARecord)?;
        return Ok(vec![(0, version)]);
    }
    let mut statement =
        connection.prepare("SELECT from_input, decision_version FROM epochs ORDER BY 1")?;
    let rows = statement.query_map([], |row| Ok((unsigned(row, 0)?, row.get(1)?)))?;
    let begun: Vec<_> = rows.collect::<Result<_, _>>()?;
    let damaged = || StoreError::Damaged { place: "the table `epochs`".to_owned() };
    if begun.first().is_some_and(|&(from, _)| from == 0) { Ok(begun) } else { Err(damaged()) }
}

/// Where a replay of a stretch begins: the start of the run, or the first snapshot from there on
/// that was taken before the stretch ends.
pub(super) fn first_snapshot(
    connection: &Connection,
    stretch: &Stretch,
) -> Result<Option<StoredSnapshot>, StoreError> {
    if stretch.from == 0 {
        return Ok(None);
    }
    let sql = "SELECT inputs, core, book FROM snapshots WHERE inputs >= ?1 ORDER BY inputs LIMIT 1";
    let read = |row: &rusqlite::Row<'_>| {
        let (core, book) = (row.get(1)?, row.get(2)?);
        Ok(StoredSnapshot { inputs: unsigned(row, 0)?, core, book })
    };
    let found = connection.query_row(sql, [number(stretch.from)], read).optional()?;
    let place = || StoreError::Damaged {
        place: format!("there is no snapshot at input {} or after it to begin at", stretch.from),
    };
    found.filter(|snapshot| snapshot.inputs <= stretch.to).map(Some).ok_or_else(place)
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

//! The record of a live run: a SQLite database.
//!
//! One transaction holds an input, the digest of the actions it caused, and the payloads that
//! belong to it, so that they are there together or not at all. The journal is a write-ahead log
//! with `synchronous = FULL`: what is committed survives a power failure ([`Durability`] is a choice).
//! `docs/record.md` describes the tables; every column but the snapshots is readable in the
//! `sqlite3` shell.

mod check;
mod checkpoint;
mod facts;
mod read;
mod replay;
mod rows;
mod source;
mod steps;
mod stretch;
mod turns;
mod write;
mod writer;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use headway_shared::check::Finding;
use headway_shared::config::Config;
use headway_shared::core::Scheduler;
use headway_shared::digest::Digest;
use headway_shared::record::DECISION_VERSION;
use headway_shared::replay::ReplayError;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

pub use check::{Checked, check, check_with};
pub use read::{LiveSample, StoredInput, StoredSnapshot};
pub use replay::{
    Replayed, count_verifiable, is_database, replay, replay_stretches, replay_stretches_with,
};
pub use rows::{Question, Row};
pub use source::RecordedRun;
pub use steps::{PastStep, Recent, StepRow, count_sessions, past_steps, recent, steps};
pub use stretch::Stretch;
pub use writer::{Batch, Keep, Said, Writer};

pub(crate) use facts::Facts;
use write::number;

/// The version of the tables' layout.
pub const FORMAT_VERSION: u32 = 2;
/// The oldest that can be read, and is brought to the newest by a run that goes on with it.
const OLDEST_FORMAT: u32 = 1;

/// How a command without `sqlite3` tells a database from another file.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite says so.
    #[error("{0}")]
    Sql(#[from] rusqlite::Error),
    /// The operating system says so.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Another process runs with it.
    #[error("another process is running with this record")]
    InUse,
    /// It is another program's database.
    #[error("this is a database, but not a record of a Headway run")]
    NotARecord,
    /// Its tables are laid out in a way that this build does not know.
    #[error(
        "the record has format {found}; this build reads formats {OLDEST_FORMAT} to {FORMAT_VERSION}"
    )]
    OtherFormat {
        /// Its format.
        found: String,
    },
    /// It is of a core that may decide otherwise.
    #[error(
        "the record has decision version {found}; this build decides as version {DECISION_VERSION}, \
         and can verify none of it"
    )]
    OtherDecisions {
        /// Its decision version.
        found: String,
    },
    /// Another decision version decided it, and this build cannot take it over.
    #[error(
        "the record was decided by version {found}, this build decides as version \
         {DECISION_VERSION}, and it cannot go on with it: {why}"
    )]
    NoWayOn {
        /// Its decision version.
        found: u32,
        /// Why not, and what to do instead.
        why: String,
    },
    /// A row is not what was written.
    #[error("the record is damaged: {place}")]
    Damaged {
        /// Which row.
        place: String,
    },
    /// The core decides otherwise than the record says.
    #[error("{0}")]
    Replay(#[from] ReplayError),
}

/// What a commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power failure: it waits for the disk.
    #[default]
    Power,
    /// The end of the process, however it came, but not that of the machine: the operating system
    /// has it.
    Process,
}

/// A record, opened by the process that runs with it.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    config: Config,
    fresh: bool,
    /// Held for as long as the run: two processes would number their inputs alike.
    lock: File,
}

impl Database {
    /// Opens the record at `path`; creates it, with `config` in its header, where there is none.
    ///
    /// # Errors
    /// [`StoreError`], but for `Replay`.
    pub fn open(path: &Path, config: &Config) -> Result<Self, StoreError> {
        let lock = lock(path)?;
        if !path.exists() {
            create(path, config)?;
        }
        let mut connection = Connection::open(path)?;
        prepare(&connection)?;
        let config = header(&connection)?;
        upgrade(&mut connection)?;
        let fresh = read::newest_snapshot(&connection)?.is_none()
            && connection.query_row("SELECT count(*) FROM inputs", [], |row| row.get(0)) == Ok(0);
        Ok(Self { connection, config, fresh, lock })
    }

    /// No input is in it yet.
    #[must_use]
    pub const fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// What decided the last of its inputs.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn decision_version(&self) -> Result<u32, StoreError> {
        Ok(stretch::stretches(&self.connection)?.last().map_or(0, |last| last.decision_version))
    }

    /// What commits survive from now on; at first a power failure.
    ///
    /// # Errors
    /// [`StoreError::Sql`].
    pub fn set_durability(&mut self, durability: Durability) -> Result<(), StoreError> {
        set_durability(&self.connection, durability)
    }

    /// What the tables say otherwise than a core that has handled the last inputs.
    pub(crate) fn contradictions(
        &self,
        facts: &Facts,
        scheduler: &Scheduler,
    ) -> Result<Vec<Finding>, StoreError> {
        facts.compare(&self.connection, scheduler)
    }

    /// From input `from` on, this build decides, and began with this state.
    pub(crate) fn begin_epoch(
        &mut self,
        from: u64,
        handled_again: u64,
        [core, book]: [&[u8]; 2],
    ) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        let epoch = "INSERT OR REPLACE INTO epochs VALUES (?1, ?2, ?3)";
        transaction
            .execute(epoch, params![number(from), DECISION_VERSION, number(handled_again)])?;
        let snapshot = "INSERT OR REPLACE INTO snapshots VALUES (?1, ?2, ?3)";
        transaction.execute(snapshot, params![number(from), core, book])?;
        Ok(transaction.commit()?)
    }

    /// The configuration that the run began with.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }
}

/// The record is made beside its place and renamed into it, so that no half-made one is found
/// after a crash.
fn create(path: &Path, config: &Config) -> Result<(), StoreError> {
    let draft = beside(path, ".new");
    let _ = fs::remove_file(&draft);
    let connection = Connection::open(&draft)?;
    connection.execute_batch(include_str!("store/schema.sql"))?;
    connection.execute_batch(FORMAT_2)?;
    let header = [
        ("program", "headway".to_owned()),
        ("format", FORMAT_VERSION.to_string()),
        ("decision_version", DECISION_VERSION.to_string()),
        ("config", config.canonical_json()),
        ("config_digest", config.digest().to_string()),
    ];
    for (key, value) in header {
        connection.execute("INSERT INTO header VALUES (?1, ?2)", [key, &value])?;
    }
    connection.close().map_err(|(_, error)| error)?;
    File::open(&draft)?.sync_all()?;
    fs::rename(&draft, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(())
}

/// What format 2 has beyond format 1.
const FORMAT_2: &str = include_str!("store/format_2.sql");

/// Brings an older record to the newest format, whole or not at all.
fn upgrade(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    if format(&transaction)? < FORMAT_VERSION {
        transaction.execute_batch(FORMAT_2)?;
        let set = "UPDATE header SET value = ?1 WHERE key = 'format'";
        transaction.execute(set, [FORMAT_VERSION.to_string()])?;
    }
    Ok(transaction.commit()?)
}

fn prepare(connection: &Connection) -> Result<(), StoreError> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    set_durability(connection, Durability::default())
}

fn set_durability(connection: &Connection, durability: Durability) -> Result<(), StoreError> {
    let synchronous = match durability {
        Durability::Power => "FULL",
        Durability::Process => "NORMAL",
    };
    Ok(connection.pragma_update(None, "synchronous", synchronous)?)
}

/// Opens a record to read it, while a run may be writing to it.
///
/// # Errors
/// As [`Database::open`].
fn open_to_read(path: &Path) -> Result<(Connection, Config), StoreError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let config = header(&connection)?;
    Ok((connection, config))
}

/// Checks the header, and returns its configuration.
fn header(connection: &Connection) -> Result<Config, StoreError> {
    let tables = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'header'";
    if connection.query_row(tables, [], |row| row.get::<_, u32>(0))? == 0 {
        return Err(StoreError::NotARecord);
    }
    if value(connection, "program")? != "headway" {
        return Err(StoreError::NotARecord);
    }
    format(connection)?;
    let damaged = || StoreError::Damaged {
        place: "the configuration in the header does not have the digest beside it".to_owned(),
    };
    // The digest is that of the text: keys that came later have their defaults.
    let text = value(connection, "config")?;
    let config: Config = serde_json::from_str(&text).map_err(|_| damaged())?;
    if Digest::of(text.as_bytes()).to_string() != value(connection, "config_digest")? {
        return Err(damaged());
    }
    Ok(config)
}

/// What the header says of `key`.
fn value(connection: &Connection, key: &str) -> Result<String, StoreError> {
    let sql = "SELECT value FROM header WHERE key = ?1";
    let value = connection.query_row(sql, [key], |row| row.get(0)).optional()?;
    value.ok_or(StoreError::NotARecord)
}

/// The format of a record, if it is known.
fn format(connection: &Connection) -> Result<u32, StoreError> {
    let found = value(connection, "format")?;
    let known = |format: &u32| (OLDEST_FORMAT..=FORMAT_VERSION).contains(format);
    found.parse().ok().filter(known).ok_or(StoreError::OtherFormat { found })
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A file of its own: SQLite's locks are another kind, and closing a second handle of the database
/// would drop them.
fn lock(path: &Path) -> Result<File, StoreError> {
    let lock = File::create(beside(path, ".lock"))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => Err(StoreError::InUse),
        Err(fs::TryLockError::Error(error)) => Err(error.into()),
    }
}

//! The thread that commits.

use std::fs::File;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use super::checkpoint::Checkpoints;
use super::rows::Row;
use super::{Database, write};

/// What is committed together.
#[derive(Debug)]
pub struct Batch {
    /// The number of the last input in it.
    pub last: u64,
    /// The rows.
    pub rows: Vec<Row>,
}

/// What is kept for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// So many snapshots, the newest.
    pub snapshots: u32,
    /// Inputs before the oldest of these.
    pub inputs: bool,
}

/// What the thread says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A transaction begins.
    Begins,
    /// All inputs up to this one are on disk.
    Committed(u64),
    /// Why a batch could not be committed. The last word.
    Failed(String),
}

/// Commits batches on a thread of its own, each in one transaction, in order. Whatever is queued
/// while one is being committed can go into the next: nothing waits for a timer.
#[derive(Debug)]
pub struct Writer {
    batches: Option<mpsc::Sender<Batch>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread, which calls `say`, and `wall` for the time of day.
    ///
    /// # Errors
    /// What the operating system says where it starts no thread.
    pub fn start(
        database: Database,
        keep: Keep,
        wall: fn() -> i64,
        say: impl Fn(Said) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (batches, queue) = mpsc::channel();
        let Database { connection, lock, .. } = database;
        let mut committer = Committer::new(connection, keep, wall, lock)?;
        let thread = thread::Builder::new().name("record".to_owned()).spawn(move || {
            while let Ok(batch) = queue.recv() {
                say(Said::Begins);
                match committer.commit(&batch) {
                    Ok(last) => say(Said::Committed(last)),
                    Err(error) => return say(Said::Failed(error.to_string())),
                }
            }
        })?;
        Ok(Self { batches: Some(batches), thread: Some(thread) })
    }

    /// Queues a batch. After a failure nothing is committed any more.
    pub fn commit(&self, batch: Batch) {
        if let Some(batches) = &self.batches {
            // The thread is gone only after it has said that it failed.
            let _ = batches.send(batch);
        }
    }
}

impl Drop for Writer {
    /// Waits for what is queued.
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Committer {
    /// Ends before the connection: whoever closes the last one leaves a whole database.
    checkpoints: Option<Checkpoints>,
    connection: Connection,
    keep: Keep,
    wall: fn() -> i64,
    _lock: File,
}

impl Committer {
    fn new(
        mut connection: Connection,
        keep: Keep,
        wall: fn() -> i64,
        lock: File,
    ) -> std::io::Result<Self> {
        let checkpoints = Checkpoints::start(&mut connection)?;
        Ok(Self { checkpoints, connection, keep, wall, _lock: lock })
    }

    fn commit(&mut self, batch: &Batch) -> rusqlite::Result<u64> {
        write::commit(&mut self.connection, &batch.rows, (self.wall)())?;
        if batch.rows.iter().any(|row| matches!(row, Row::Snapshot { .. })) {
            write::trim(&mut self.connection, self.keep)?;
        }
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.committed(&self.connection);
        }
        Ok(batch.last)
    }
}

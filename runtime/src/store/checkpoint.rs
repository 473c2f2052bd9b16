//! The write-ahead log, brought into the database beside the thread that commits.
//!
//! SQLite does it in the commit that finds a thousand pages in the log: thousands of writes, and the disk is
//! waited for twice, also where a commit itself waits for nothing. Every answer behind that commit would wait
//! with it. Here another thread does it, with a connection of its own, while commits go on.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

/// The log is brought into the database whenever it has grown by so many pages of 4 KiB, or as soon after
/// as the one before is done. While the disk takes them, commits wait for it now and then, the shorter the
/// fewer they are.
const EVERY: u64 = 64;
/// The log begins anew where a commit finds all of it in the database. One that is longer than this is
/// waited for, so that it does under load, too. With what comes until that is seen: 70 MiB of disk.
const MOST: u64 = 16_384;

const CHECKPOINT: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Checkpoints {
    /// Pages in the log.
    pages: Arc<AtomicU64>,
    /// How many there were when a checkpoint was last asked for.
    asked_at: u64,
    ask: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// One at a time: SQLite turns a second one away.
    alone: Arc<Mutex<()>>,
}

impl Checkpoints {
    /// Takes them over from a connection; none where it has no file.
    pub(super) fn start(connection: &mut Connection) -> std::io::Result<Option<Self>> {
        let Some(path) = connection.path().filter(|path| !path.is_empty()) else { return Ok(None) };
        let beside = Connection::open(Path::new(path)).map_err(std::io::Error::other)?;
        let pages = Arc::new(AtomicU64::new(0));
        let seen = pages.clone();
        let hook = move |_: &mut rusqlite::hooks::Wal, now: std::ffi::c_int| {
            seen.store(u64::try_from(now).unwrap_or_default(), Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(hook)).map_err(std::io::Error::other)?;
        let alone = Arc::<Mutex<()>>::default();
        let lock = alone.clone();
        let (ask, asked) = sync_channel(1);
        let thread = thread::Builder::new().name("checkpoints".to_owned()).spawn(move || {
            while let Ok(()) = asked.recv() {
                let _ = run(&beside, &lock);
            }
        })?;
        Ok(Some(Self { pages, asked_at: 0, ask: Some(ask), thread: Some(thread), alone }))
    }

    /// A transaction of this connection was committed.
    pub(super) fn committed(&mut self, connection: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        // It began anew.
        self.asked_at = self.asked_at.min(pages);
        if pages < self.asked_at + EVERY {
            return;
        }
        self.asked_at = pages;
        // What one cannot do, because somebody reads what is older, the next does.
        if pages >= MOST {
            let _ = run(connection, &self.alone);
        } else if let Some(ask) = &self.ask {
            let _ = ask.try_send(());
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(connection: &Connection, alone: &Mutex<()>) -> rusqlite::Result<()> {
    let _alone = alone.lock();
    connection.query_row(CHECKPOINT, [], |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(path: &Path) -> Connection {
        let connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "synchronous", "NORMAL").unwrap();
        connection.execute_batch("CREATE TABLE rows (text TEXT)").unwrap();
        connection
    }

    #[test]
    fn the_log_has_a_bound_however_much_is_written_and_all_of_it_is_in_the_database_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.db");
        let mut connection = opened(&path);
        let mut checkpoints = Checkpoints::start(&mut connection).unwrap().unwrap();
        let text = "x".repeat(400_000);
        let mut longest = 0;
        for _ in 0..400 {
            connection.execute("INSERT INTO rows VALUES (?1)", [&text]).unwrap();
            longest = longest.max(checkpoints.pages.load(Ordering::Relaxed));
            checkpoints.committed(&connection);
        }
        assert!(longest < MOST + EVERY + 200, "{longest} pages of about 40,000");
        drop(checkpoints);
        connection.close().unwrap();
        assert!(!dir.path().join("run.db-wal").exists(), "the last connection is closed");
        let count = "SELECT count(*), sum(length(text)) FROM rows";
        let read = Connection::open(&path).unwrap();
        let seen = read.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(seen, (400_i64, 160_000_000_i64));
    }
}

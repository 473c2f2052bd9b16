//! A trainer outside this process, such as Megatron: it pulls what is to be done over HTTP.
//!
//! ```text
//!  driver ──TrainerCommand──► Counter ◄──Call── Desk ◄── gateway ◄──HTTP── trainer
//!         ◄──TrainerEvent───     │
//!                                └── run.db.trainer.json: the last step that was reported
//! ```
//!
//! One task, the counter, holds what is to be done: at most one step and one export. Each is leased
//! to who pulls it, until a deadline that a heartbeat moves; after that it is handed out again. A
//! report names the version that its step started from and its batch, a digest of the samples, so
//! that it means the same after a restart of either side: the same batch is trained once, however
//! often it is reported. What was reported is on disk before it is acknowledged.

mod book;
mod counter;
mod desk;
mod wire;

use std::path::PathBuf;

use headway_shared::time::Span;
use tokio::sync::mpsc;

use super::{Trainer, TrainerMailbox};
use counter::Counter;

pub use book::BookError;
pub use desk::{Call, Denied, Desk, Pull, Report, Standing, Task, Written};

/// How long a lease lasts unless it is extended.
pub const LEASE: Span = Span::from_secs(600);

/// Calls that may wait.
const ROOM: usize = 64;

/// The trainer's side in this process.
#[derive(Debug)]
pub struct ExternalTrainer {
    calls: mpsc::Receiver<Call>,
    lease: Span,
    path: PathBuf,
    book: book::Book,
}

impl ExternalTrainer {
    /// A counter, and the desk that the gateway asks. `book` is the file that remembers the last
    /// step that was reported; it belongs beside the record. `lease` is how long a task is lent.
    ///
    /// # Errors
    /// [`BookError`]: the file is there and cannot be read.
    pub fn new(book: PathBuf, lease: Span) -> Result<(Self, Desk), BookError> {
        let (sender, calls) = mpsc::channel(ROOM);
        let known = book::Book::read(&book)?;
        Ok((Self { calls, lease, path: book, book: known }, Desk::new(sender)))
    }
}

impl Trainer for ExternalTrainer {
    fn run(self, mailbox: TrainerMailbox) {
        // To return is to be down.
        match tokio::runtime::Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => runtime.block_on(async {
                let TrainerMailbox { commands, events, clock } = mailbox;
                let Self { calls, lease, path, book } = self;
                Counter::new(events, clock, lease, path, book).serve(commands, calls).await;
            }),
            Err(error) => tracing::error!(target: "headway", "the trainer: {error}"),
        }
    }
}

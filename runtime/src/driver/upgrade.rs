//! A record that another decision version decided is taken over.
//!
//! What is taken over are facts: the newest snapshot's, and those of the inputs behind it, which
//! this core handles again. It may decide otherwise there than was decided, and what was decided
//! then has been seen: clients have their answers, samples are trained. So the tables must say the
//! same of every sample, vote and step; where one of them would be contradicted, the record is not
//! touched. A run that ended in order has no inputs behind its last snapshot.

use std::fmt;

use headway_shared::core::Scheduler;
use headway_shared::snapshot::{self, SnapshotError};
use headway_shared::time::Time;

use super::book::Book;
use crate::store::{Database, Facts, StoreError};

/// A record was taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenOver {
    /// The decision version of the inputs before.
    pub from_version: u32,
    /// The first input that this build decides.
    pub at: u64,
    /// Inputs behind the newest snapshot, which this build has handled again.
    pub handled_again: u64,
}

impl fmt::Display for TakenOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from_version, at, handled_again } = self;
        write!(
            f,
            "decision version {from_version} decided the record up to here; from input {at} on \
             this build decides"
        )?;
        match handled_again {
            0 => Ok(()),
            inputs => write!(f, ", which has handled the last {inputs} inputs again"),
        }
    }
}

/// Where a run goes on.
pub(super) struct Taken {
    pub(super) scheduler: Scheduler,
    pub(super) book: Book,
    pub(super) inputs: u64,
    pub(super) end: Time,
    /// By another decision version until now.
    pub(super) over: Option<TakenOver>,
}

/// Takes a record over, and writes down that it was.
pub(super) fn take_over(database: &mut Database, found: u32) -> Result<Taken, StoreError> {
    let no_way = |why: String| StoreError::NoWayOn { found, why };
    let (mut scheduler, mut book, from) = match database.newest_snapshot()? {
        None => (Scheduler::new(database.config().clone()), Book::default(), 0),
        Some(stored) => {
            let scheduler = snapshot::facts(&stored.core).map_err(|error| match error {
                SnapshotError::OtherLayout { .. } => no_way(format!(
                    "{error}\nhelp: go on with the build that wrote it, or begin a new record"
                )),
                error => no_way(format!("{error}")),
            })?;
            (scheduler, Book::from_bytes(&stored.book, stored.inputs)?, stored.inputs)
        }
    };
    let (mut inputs, mut end) = (from, scheduler.now());
    let mut facts = Facts::from(from);
    let mut actions = Vec::new();
    database.inputs_from(from, |stored| {
        actions.clear();
        scheduler.handle(stored.at, &stored.input);
        actions.extend(std::iter::from_fn(|| scheduler.poll_action()));
        book.observe(&stored.input, &actions);
        facts.observe(stored.seq, &stored.input, &actions, &scheduler);
        (inputs, end) = (stored.seq + 1, stored.at);
        Ok(())
    })?;
    let handled_again = inputs - from;
    if handled_again > 0
        && let Some(first) = database.contradictions(&facts, &scheduler)?.first()
    {
        return Err(no_way(format!(
            "the run was killed, and this build would decide its last {handled_again} inputs \
             otherwise than others have seen ({first})\nhelp: start it once with the build that \
             wrote it and let it end in order, which leaves nothing to be decided again"
        )));
    }
    let state = snapshot::to_bytes(&scheduler).map_err(|error| no_way(error.to_string()))?;
    database.begin_epoch(inputs, handled_again, [&state, &book.to_bytes()])?;
    let over = Some(TakenOver { from_version: found, at: inputs, handled_again });
    Ok(Taken { scheduler, book, inputs, end, over })
}

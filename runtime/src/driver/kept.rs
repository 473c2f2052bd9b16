//! What the driver holds, so that a leak can be seen.

use headway_shared::id::RequestId;

use super::Driver;

/// What a driver holds for work that is not over. When nothing is on its way, all of it is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Requests that are not answered, or still run.
    pub turns: usize,
    /// The same, as a restart would have to know them.
    pub requests: usize,
    /// Payloads of samples that were neither trained nor discarded.
    pub samples: usize,
    /// Of these, samples whose next state can still come.
    pub awaiting: usize,
    /// Votes in flight.
    pub votes: usize,
    /// Sessions that have not ended.
    pub sessions: usize,
    /// Replies, batches and loads that wait for the disk.
    pub effects: usize,
    /// Rows that wait for the disk.
    pub rows: usize,
}

impl Driver {
    pub(super) fn kept(&self) -> Kept {
        Kept {
            turns: self.turns.len(),
            requests: self.book.requests(),
            samples: self.samples.len(),
            awaiting: self.awaiting.len(),
            votes: self.votes.len(),
            sessions: self.sessions.len(),
            effects: self.effects.len(),
            rows: self.rows.len(),
        }
    }

    /// Forgets turns that the core has given up because their engine says no more of them. O(1)
    /// where there are none.
    pub(super) fn forget_given_up(&mut self) {
        let known = self.scheduler.requests();
        if self.turns.len() > known {
            let scheduler = &self.scheduler;
            self.turns.retain(|&id, turn| turn.events.is_some() || scheduler.knows(id));
        }
        if self.book.requests() > known {
            let scheduler = &self.scheduler;
            self.book.forget(|request: RequestId| !scheduler.knows(request));
        }
    }
}

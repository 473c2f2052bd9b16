//! Turns that wait for what follows them.

use std::collections::BTreeMap;

use headway_shared::id::{SampleId, SessionId};

/// A turn: its sample, and its number within it.
type Turn = (SampleId, usize);

/// Turns whose next state can still come, by session.
#[derive(Debug, Default)]
pub(super) struct Awaiting {
    turns: BTreeMap<SessionId, Vec<Turn>>,
    count: usize,
}

impl Awaiting {
    pub(super) fn add(&mut self, session: SessionId, turn: Turn) {
        self.turns.entry(session).or_default().push(turn);
        self.count += 1;
    }

    /// All of a session, which wait no longer.
    pub(super) fn take(&mut self, session: SessionId) -> Vec<Turn> {
        let turns = self.turns.remove(&session).unwrap_or_default();
        self.count -= turns.len();
        turns
    }

    /// Those of a sample wait no longer.
    pub(super) fn forget(&mut self, session: SessionId, sample: SampleId) {
        let Some(turns) = self.turns.get_mut(&session) else { return };
        let before = turns.len();
        turns.retain(|&(id, _)| id != sample);
        self.count -= before - turns.len();
        if turns.is_empty() {
            self.turns.remove(&session);
        }
    }

    /// How many turns there are. O(1).
    pub(super) const fn len(&self) -> usize {
        self.count
    }
}

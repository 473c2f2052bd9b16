//! The loop that blocks: named once it has for a while, and again ever more rarely.

use headway_shared::core::{Scheduler, Stall};
use headway_shared::time::{Span, Time};

use super::note::Note;

/// Without a step for so long, the loop that blocks is named.
const PATIENCE: Span = Span::from_secs(30);
/// While the same loop blocks, it is named at least so often.
const LONGEST: Span = Span::from_secs(600);

/// How long nothing has been trained, and what was said of it.
#[derive(Debug)]
pub(super) struct Blocked {
    since: Time,
    due: Time,
    wait: Span,
    said: Option<&'static str>,
}

impl Blocked {
    pub(super) fn new(now: Time) -> Self {
        Self { since: now, due: now + PATIENCE, wait: PATIENCE, said: None }
    }

    /// A step has ended.
    pub(super) fn progressed(&mut self, now: Time) {
        *self = Self::new(now);
    }

    pub(super) const fn due(&self) -> Time {
        self.due
    }

    /// The loop that blocks, if it is time to name it.
    pub(super) fn look(&mut self, now: Time, scheduler: &Scheduler) -> Option<Note> {
        if now < self.due {
            return None;
        }
        let stall = scheduler.stall();
        let name = stall.blocking_loop();
        let changed = self.said.replace(name).is_some_and(|said| said != name);
        self.wait = match changed {
            true => PATIENCE,
            false => self.wait.times(2).min(LONGEST),
        };
        self.due = now + self.wait;
        let side = scheduler.ledger().side_offered;
        let only_side = (stall == Stall::NoMainRequest && side > 0).then_some(side);
        let expected = matches!(stall, Stall::NoMainRequest | Stall::Paused | Stall::Step)
            && only_side.is_none();
        let (since, stall) = (now.since(self.since), stall.to_string());
        Some(Note::Blocked { stall, since, only_side, expected })
    }
}

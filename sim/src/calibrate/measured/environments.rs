//! Environments that the core hosted: resets and steps.

use std::collections::BTreeMap;

use headway_shared::action::Action;
use headway_shared::input::{EnvironmentOutcome, Input};
use headway_shared::time::Time;

use crate::calibrate::series::Series;

#[derive(Clone, Copy, Debug)]
struct Open {
    attempt: u32,
    at: Time,
    reset: bool,
}

/// What environments did.
#[derive(Clone, Debug, Default)]
pub struct Environments {
    /// Seconds of resets.
    pub resets: Series,
    /// Seconds of steps.
    pub steps: Series,
    /// Operations that ended well, failed, or were given up, by when they began.
    pub ended: Vec<(Time, Ended)>,
    open: BTreeMap<u64, Open>,
}

/// How a reset or a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Well.
    Done,
    /// It failed.
    Failed,
    /// It was given up.
    Cancelled,
}

impl Environments {
    /// Whether the core hosted any.
    #[must_use]
    pub const fn is_used(&self) -> bool {
        !self.ended.is_empty()
    }

    pub(super) fn observe(&mut self, now: Time, input: &Input, actions: &[Action]) {
        if let Input::EnvironmentEnded { session, attempt, outcome } = input
            && self.open.get(&session.0).is_some_and(|open| open.attempt == *attempt)
            && let Some(open) = self.open.remove(&session.0)
        {
            let failed = *outcome == EnvironmentOutcome::Failed;
            self.end(open, now, if failed { Ended::Failed } else { Ended::Done });
        }
        for action in actions {
            match *action {
                Action::ResetEnvironment { session, attempt } => {
                    self.open.insert(session.0, Open { attempt, at: now, reset: true });
                }
                Action::StepEnvironment { session, attempt } => {
                    self.open.insert(session.0, Open { attempt, at: now, reset: false });
                }
                Action::CancelEnvironment { session, .. } => {
                    if let Some(open) = self.open.remove(&session.0) {
                        self.end(open, now, Ended::Cancelled);
                    }
                }
                _ => {}
            }
        }
    }

    fn end(&mut self, open: Open, now: Time, how: Ended) {
        let series = if open.reset { &mut self.resets } else { &mut self.steps };
        // One that fails takes as long as another; one that was given up hung.
        if how != Ended::Cancelled {
            series.push_span(open.at, now, true);
        }
        self.ended.push((open.at, how));
    }

    pub(super) fn finish(&mut self, end: Time) {
        for open in std::mem::take(&mut self.open).into_values() {
            let series = if open.reset { &mut self.resets } else { &mut self.steps };
            series.push_span(open.at, end, false);
        }
    }
}

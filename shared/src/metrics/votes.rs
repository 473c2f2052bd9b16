//! What the judge was asked, and how it failed.

use super::idtable::IdTable;
use crate::action::Action;
use crate::core::Scheduler;
use crate::input::{Input, VoteOutcome};
use crate::time::{Span, Time};

/// Sums since the last reset.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Judged {
    /// Tokens that votes read and wrote, cancelled ones included.
    pub(super) tokens: u64,
    /// Votes that ended or timed out, without those cancelled as no longer needed.
    pub(super) ended: u64,
    /// Of these: not answered in time, not answered, or answered without a score.
    pub(super) failed: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Votes {
    /// When each vote in flight started.
    started: IdTable<Time>,
    pub(super) since_reset: Judged,
}

impl Votes {
    pub(super) fn reset(&mut self) {
        self.since_reset = Judged::default();
    }

    pub(super) fn observe(
        &mut self,
        now: Time,
        input: &Input,
        actions: &[Action],
        scheduler: &Scheduler,
    ) {
        let sums = &mut self.since_reset;
        if let Input::VoteEnded { vote, outcome, tokens, .. } = input {
            sums.tokens += u64::from(*tokens);
            if self.started.remove(vote.0).is_some() {
                sums.ended += 1;
                sums.failed += u64::from(!matches!(outcome, VoteOutcome::Score(_)));
            }
        }
        for action in actions {
            match *action {
                Action::StartVote { vote, .. } => {
                    self.started.set(vote.0, now);
                }
                Action::CancelVote { vote } => {
                    let timeout = scheduler.config().reward_judging.judge_timeout;
                    let started = self.started.remove(vote.0);
                    // Cancelled at its time limit, or because it can no longer change a score.
                    if timeout > Span::ZERO
                        && started.is_some_and(|started| now.since(started) >= timeout)
                    {
                        sums.ended += 1;
                        sums.failed += 1;
                    }
                }
                _ => {}
            }
        }
    }
}

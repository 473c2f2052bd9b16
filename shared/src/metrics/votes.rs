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
    /// Of these: given up at their time limit.
    pub(super) timed_out: u64,
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
                        sums.timed_out += 1;
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::id::{SampleId, VoteId};

    fn ended(vote: u64, outcome: VoteOutcome) -> Input {
        Input::VoteEnded { vote: VoteId(vote), outcome, tokens: 10, judge_version: 0 }
    }

    #[test]
    fn only_votes_that_were_needed_can_fail() {
        let mut votes = Votes::default();
        let scheduler = Scheduler::new(Config::default());
        let timeout = scheduler.config().reward_judging.judge_timeout;
        let mut see = |after, input: &Input, actions: &[Action]| {
            votes.observe(Time::ZERO + after, input, actions, &scheduler);
        };
        let sample = SampleId(0);
        let starts: Vec<_> =
            (0..5).map(|vote| Action::StartVote { vote: VoteId(vote), sample }).collect();
        let cancel = |vote| Action::CancelVote { vote: VoteId(vote) };
        see(Span::ZERO, &Input::Tick, &starts);
        see(Span::from_secs(1), &ended(0, VoteOutcome::Score(1)), &[cancel(1)]);
        see(Span::from_secs(2), &ended(1, VoteOutcome::Failed), &[]);
        see(Span::from_secs(3), &ended(2, VoteOutcome::Invalid), &[]);
        see(Span::from_secs(4), &ended(3, VoteOutcome::Failed), &[]);
        see(timeout, &Input::Tick, &[cancel(4)]);
        let sums = votes.since_reset;
        assert_eq!((sums.ended, sums.failed, sums.timed_out, sums.tokens), (4, 3, 1, 40));
    }
}

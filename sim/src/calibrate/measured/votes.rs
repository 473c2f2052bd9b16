//! Votes: how long each took, and what it said.

use std::collections::BTreeMap;

use headway_shared::action::Action;
use headway_shared::core::Scheduler;
use headway_shared::input::{Input, Score, VoteOutcome};
use headway_shared::time::{Span, Time};

/// How a vote ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoteEnd {
    /// With a score.
    Score(Score),
    /// Without a readable one.
    Invalid,
    /// With an error.
    Failed,
    /// At its time limit.
    TimedOut,
    /// It could no longer change a score.
    Cancelled,
    /// The record ends before it.
    Open,
}

/// A vote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vote {
    /// When it started.
    pub at: Time,
    /// Until when it is known.
    pub until: Time,
    /// How it ended.
    pub end: VoteEnd,
    /// The sample it is about.
    pub sample: u64,
    /// That one's group.
    pub group: Option<u64>,
    /// Tokens of the sample, its prompt included.
    pub read: u32,
    /// Tokens that the judge says it has read and written.
    pub tokens: u32,
    /// Votes in flight when it started, itself included.
    pub in_flight: u32,
}

/// All votes, in the order of their ends.
#[derive(Clone, Debug, Default)]
pub struct Votes {
    /// Those that are over or cut off.
    pub votes: Vec<Vote>,
    open: BTreeMap<u64, Vote>,
}

impl Votes {
    pub(super) fn observe(
        &mut self,
        now: Time,
        input: &Input,
        actions: &[Action],
        core: &Scheduler,
    ) {
        if let Input::VoteEnded { vote, outcome, tokens, .. } = input {
            let end = match outcome {
                VoteOutcome::Score(score) => VoteEnd::Score(*score),
                VoteOutcome::Invalid => VoteEnd::Invalid,
                VoteOutcome::Failed => VoteEnd::Failed,
            };
            self.end(vote.0, now, end, *tokens);
        }
        for action in actions {
            match *action {
                Action::StartVote { vote, sample } => {
                    let facts = core.sample(sample);
                    let read = |facts: &headway_shared::core::Sample| {
                        facts.prompt_tokens.saturating_add(facts.tokens)
                    };
                    let started = Vote {
                        at: now,
                        until: now,
                        end: VoteEnd::Open,
                        sample: sample.0,
                        group: facts.and_then(|facts| facts.group).map(|group| group.0),
                        read: facts.map_or(0, read),
                        tokens: 0,
                        in_flight: self.open.len() as u32 + 1,
                    };
                    self.open.insert(vote.0, started);
                }
                Action::CancelVote { vote } => {
                    let limit = core.config().reward_judging.judge_timeout;
                    let late = |vote: &Vote| limit > Span::ZERO && now.since(vote.at) >= limit;
                    let end = match self.open.get(&vote.0).is_some_and(late) {
                        true => VoteEnd::TimedOut,
                        false => VoteEnd::Cancelled,
                    };
                    self.end(vote.0, now, end, 0);
                }
                _ => {}
            }
        }
    }

    fn end(&mut self, vote: u64, now: Time, end: VoteEnd, tokens: u32) {
        if let Some(vote) = self.open.remove(&vote) {
            self.votes.push(Vote { until: now, end, tokens, ..vote });
        }
    }

    pub(super) fn finish(&mut self, end: Time) {
        let open = std::mem::take(&mut self.open);
        self.votes.extend(open.into_values().map(|vote| Vote { until: end, ..vote }));
    }
}

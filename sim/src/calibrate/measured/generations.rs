//! Turns on replicas: when each was sent, when its first token came, when it ended.

use std::collections::BTreeMap;

use headway_shared::action::Action;
use headway_shared::input::{Finish, Input};
use headway_shared::time::Time;

/// How an attempt of a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The policy ended it.
    Stop,
    /// At its token limit.
    Length,
    /// It was aborted.
    Aborted,
    /// The engine failed.
    Failed,
    /// Nobody waits for it, its replica is gone, or the record ends before it.
    Lost,
}

/// An attempt of a turn on a replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Generation {
    /// Where.
    pub replica: u32,
    /// When it was sent there.
    pub at: Time,
    /// When its first token came.
    pub first: Option<Time>,
    /// Until when it is known.
    pub until: Time,
    /// Tokens that it read.
    pub prompt: u32,
    /// Tokens that it generated.
    pub tokens: u32,
    /// How it ended.
    pub over: Over,
    /// It went on from tokens of an earlier attempt.
    pub resumed: bool,
}

impl Generation {
    /// It generated all of its tokens, beginning with the first.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        matches!(self.over, Over::Stop | Over::Length) && !self.resumed && self.tokens > 0
    }
}

/// All attempts, in the order of their ends.
#[derive(Clone, Debug, Default)]
pub struct Generations {
    /// Those that are over or cut off.
    pub all: Vec<Generation>,
    prompts: BTreeMap<u64, u32>,
    open: BTreeMap<u64, (u32, Generation)>,
}

impl Generations {
    pub(super) fn observe(&mut self, now: Time, input: &Input, actions: &[Action]) {
        match input {
            Input::Request(request) => {
                self.prompts.insert(request.request.0, request.prompt_tokens);
            }
            Input::GenerationEnded { request, attempt, finish, first_token, segments } => {
                let over = match finish {
                    Finish::Stop => Over::Stop,
                    Finish::Length => Over::Length,
                    Finish::Aborted => Over::Aborted,
                    Finish::Failed => Over::Failed,
                };
                let tokens = segments.iter().map(|s| s.tokens).fold(0, u32::saturating_add);
                let runs = self.open.get(&request.0).is_some_and(|(open, _)| open == attempt);
                if runs && let Some((_, open)) = self.open.remove(&request.0) {
                    let first = first_token.filter(|first| *first >= open.at && *first <= now);
                    self.all.push(Generation { first, until: now, tokens, over, ..open });
                }
            }
            Input::ReplicaDown { replica } => {
                let on = |(_, (_, open)): &(&u64, &(u32, Generation))| open.replica == replica.0;
                let lost: Vec<u64> = self.open.iter().filter(on).map(|(id, _)| *id).collect();
                lost.into_iter().for_each(|request| self.lose(request, now));
            }
            _ => {}
        }
        for action in actions {
            match *action {
                Action::StartGeneration { request, attempt, replica, resume, .. } => {
                    self.lose(request.0, now);
                    let started = Generation {
                        replica: replica.0,
                        at: now,
                        first: None,
                        until: now,
                        prompt: self.prompts.get(&request.0).copied().unwrap_or(0),
                        tokens: 0,
                        over: Over::Lost,
                        resumed: resume,
                    };
                    self.open.insert(request.0, (attempt, started));
                }
                Action::Refuse { request, .. } => {
                    self.prompts.remove(&request.0);
                }
                Action::Reply { request, .. } => {
                    self.prompts.remove(&request.0);
                    self.lose(request.0, now);
                }
                _ => {}
            }
        }
    }

    /// Nothing more will be heard of what still runs for a request.
    fn lose(&mut self, request: u64, now: Time) {
        let open = self.open.remove(&request);
        self.all.extend(open.map(|(_, open)| Generation { until: now, ..open }));
    }

    pub(super) fn finish(&mut self, end: Time) {
        let open = std::mem::take(&mut self.open);
        self.all.extend(open.into_values().map(|(_, open)| Generation { until: end, ..open }));
    }
}

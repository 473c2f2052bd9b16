//! What a run shows of its world: how long a vote, a step or a token takes, and how long a turn is.
//!
//! The policies of the core decide when work starts, not how long it takes. So these figures tell a
//! world that is another one from a configuration that is another one.

use std::collections::BTreeMap;

use headway_shared::action::Action;
use headway_shared::core::Scheduler;
use headway_shared::input::{Finish, Input, WeightsEvent};
use headway_shared::metric_table;
use headway_shared::time::Time;

use crate::scenario::Warmup;

type Formula = fn(&Laws) -> Option<f64>;

metric_table! {
    /// What is compared of the world itself.
    const METRICS: Formula;

    /// Time from the start of a vote to its end, mean over votes that were not cancelled.
    Mean vote_seconds_mean "s" = |laws| laws.votes.mean();
    /// Time from the start of a train step to its end, mean over train steps.
    Mean step_seconds_mean "s" = |laws| laws.steps.mean();
    /// Tokens of a turn that came to its end, mean over turns.
    Mean turn_tokens_mean "tokens" = |laws| laws.turns.mean();
    /// Time of generation for each token after the first, mean over tokens of turns that were
    /// generated without interruption.
    Mean token_seconds_mean "s" = |laws| laws.tokens.mean();
    /// Time of exporting the weights, mean over exports.
    Mean save_seconds_mean "s" = |laws| laws.saves.mean();
    /// Time of a replica's transfer of weights, mean over transfers.
    Mean transfer_seconds_mean "s" = |laws| laws.transfers.mean();
    /// Time of loading weights on a replica, mean over loads.
    Mean load_seconds_mean "s" = |laws| laws.loads.mean();
}

/// Where a scenario says what a figure follows from.
pub(super) fn key(metric: &str) -> Option<&'static str> {
    Some(match metric {
        "vote_seconds_mean" => "world.judge.vote",
        "step_seconds_mean" => "world.trainer.step",
        "turn_tokens_mean" => "world.clients.output_tokens",
        "token_seconds_mean" => "world.serving.decode_base_sec",
        "save_seconds_mean" => "world.weights.save",
        "transfer_seconds_mean" => "world.weights.transfer",
        "load_seconds_mean" => "world.weights.load",
        _ => return None,
    })
}

/// A sum and how many things it is of.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total: f64,
    count: u64,
}

impl Sum {
    fn add(&mut self, value: f64, count: u64) {
        self.total += value;
        self.count += count;
    }

    /// The time since `from`, if something began then.
    fn since(&mut self, from: Option<Time>, now: Time) {
        if let Some(from) = from {
            self.add(now.since(from).as_secs_f64(), 1);
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total / self.count as f64)
    }
}

/// Watches a run, from the end of its warm-up on.
#[derive(Clone, Debug, Default)]
pub struct Laws {
    warmup: Warmup,
    warm: bool,
    voting: BTreeMap<u64, Time>,
    training: BTreeMap<u64, Time>,
    saving: BTreeMap<u64, Time>,
    /// By publication and replica.
    transferring: BTreeMap<(u64, u32), Time>,
    loading: BTreeMap<(u64, u32), Time>,
    votes: Sum,
    steps: Sum,
    turns: Sum,
    tokens: Sum,
    saves: Sum,
    transfers: Sum,
    loads: Sum,
}

impl Laws {
    /// Watches a run whose warm-up is dropped.
    #[must_use]
    pub fn new(warmup: Warmup) -> Self {
        Self { warmup, warm: is_cold_start(warmup), ..Self::default() }
    }

    /// The core has handled `input` at `now`, and gave `actions`.
    pub fn observe(&mut self, now: Time, input: &Input, actions: &[Action], core: &Scheduler) {
        self.ended(now, input);
        for action in actions {
            self.started(now, *action);
        }
        if !self.warm && is_warm(self.warmup, now, core) {
            self.warm = true;
            let none = Sum::default();
            (self.votes, self.steps, self.turns, self.tokens) = (none, none, none, none);
            (self.saves, self.transfers, self.loads) = (none, none, none);
        }
    }

    /// The values of [`METRICS`]; `None` where there was nothing to measure.
    #[must_use]
    pub fn values(&self) -> Vec<Option<f64>> {
        FORMULAS.iter().map(|formula| formula(self)).collect()
    }

    fn started(&mut self, now: Time, action: Action) {
        match action {
            Action::StartVote { vote, .. } => {
                self.voting.insert(vote.0, now);
            }
            Action::CancelVote { vote } => {
                self.voting.remove(&vote.0);
            }
            Action::StartStep { step, .. } => {
                self.training.insert(step.0, now);
            }
            Action::Publish { publication, .. } => {
                self.saving.insert(publication.0, now);
            }
            Action::Load { publication, replica, .. } => {
                self.transferring.insert((publication.0, replica.0), now);
            }
            Action::CancelLoad { publication, replica } => {
                self.transferring.remove(&(publication.0, replica.0));
                self.loading.remove(&(publication.0, replica.0));
            }
            _ => {}
        }
    }

    fn ended(&mut self, now: Time, input: &Input) {
        match input {
            Input::VoteEnded { vote, .. } => self.votes.since(self.voting.remove(&vote.0), now),
            Input::StepEnded { step, .. } => self.steps.since(self.training.remove(&step.0), now),
            Input::GenerationEnded {
                attempt,
                finish: Finish::Stop | Finish::Length,
                first_token,
                segments,
                ..
            } => {
                let tokens = segments.iter().map(|segment| u64::from(segment.tokens)).sum::<u64>();
                self.turns.add(tokens as f64, 1);
                if let (1, 1, Some(first)) = (*attempt, segments.len(), first_token) {
                    self.tokens.add(now.since(*first).as_secs_f64(), tokens.saturating_sub(1));
                }
            }
            Input::Weights { publication, event } => self.weights(now, publication.0, *event),
            _ => {}
        }
    }

    fn weights(&mut self, now: Time, publication: u64, event: WeightsEvent) {
        match event {
            WeightsEvent::Saved => self.saves.since(self.saving.remove(&publication), now),
            WeightsEvent::Transferred(replica) => {
                let place = (publication, replica.0);
                self.transfers.since(self.transferring.remove(&place), now);
                self.loading.insert(place, now);
            }
            WeightsEvent::Loaded(replica) => {
                self.loads.since(self.loading.remove(&(publication, replica.0)), now);
            }
            _ => {}
        }
    }
}

/// Whether there is no warm-up to drop.
pub(super) fn is_cold_start(warmup: Warmup) -> bool {
    warmup == Warmup::default()
}

/// Whether the warm-up is over, as a simulation has it.
pub(super) fn is_warm(warmup: Warmup, now: Time, core: &Scheduler) -> bool {
    core.ledger().steps >= u64::from(warmup.steps) && now.since(Time::ZERO) >= warmup.time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_a_key_of_the_world() {
        for metric in METRICS {
            assert!(key(metric.name).is_some_and(|key| key.starts_with("world.")));
        }
        assert_eq!(key("steps_per_hour"), None);
    }
}

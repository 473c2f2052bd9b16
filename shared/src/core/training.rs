//! The output queue and train steps.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::slab::Slot;
use super::state::Entry;
use super::timers::{NEVER, deadline, due};
use super::{SampleState, Scheduler, Stage, Violation};
use crate::action::{Action, Discard};
use crate::config::PolicyTraining;
use crate::id::StepId;
use crate::planted::Planted;
use crate::time::{Span, Time};
use crate::version::LearnerVersion;

/// The trainer, and what it waits for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Trainer {
    next_step: u64,
    step: Option<StepId>,
    started: Time,
    pub(crate) batch: Vec<Slot>,
    /// Entries of it: samples, or groups.
    entries_in_batch: u64,
    /// Failures of the same samples in a row.
    failures: u32,
    /// Rejected results that count for a batch to come, by when they would have entered the
    /// output queue.
    pub(crate) rejected: VecDeque<u64>,
    /// Rejected results of the batch in training: they keep their places until it has ended.
    rejected_in_batch: u64,
    /// Since when there has been enough for a short batch.
    short_since: Option<Time>,
    /// It has waited long enough for a full one.
    short_due: bool,
    /// Since when a batch has waited for late samples.
    pub(crate) late_since: Option<Time>,
    /// It waits for them no longer.
    pub(crate) late_over: bool,
    /// How long the last step took.
    pub(crate) last_duration: Span,
}

impl Trainer {
    pub(crate) fn is_training(&self) -> bool {
        self.step.is_some()
    }

    /// The step that is training.
    pub(crate) fn step(&self) -> Option<StepId> {
        self.step
    }

    /// Rejected results that hold a place.
    pub(crate) fn rejected_places(&self) -> u64 {
        self.rejected.len() as u64 + self.rejected_in_batch
    }

    /// Places of the batch in training.
    pub(crate) fn places_in_batch(&self) -> u64 {
        self.entries_in_batch + self.rejected_in_batch
    }

    /// When something of it is due.
    pub(crate) fn deadlines(&self, config: &PolicyTraining) -> [Time; 3] {
        let short = self.short_since.filter(|_| !self.short_due && !self.is_training());
        let late = self.late_since.filter(|_| !self.late_over && !self.is_training());
        [
            short.map_or(NEVER, |since| deadline(since, config.max_batch_wait)),
            late.map_or(NEVER, |since| since + config.late_wait),
            self.step.map_or(NEVER, |_| deadline(self.started, config.train_timeout)),
        ]
    }
}

/// Steps.
impl Scheduler {
    /// Starts a train step if there is a batch for it.
    pub(super) fn start_step(&mut self) -> bool {
        let publishing = self.weights.current.is_some();
        if self.trainer.is_training() || (publishing && !self.gate.trains_while_publishing()) {
            return false;
        }
        // What may only be discarded in the output queue was, when it entered or grew too old.
        if !self.gate.evicts_in_buffer() {
            self.sweep();
        }
        if self.output.entries == 0 {
            (self.trainer.short_since, self.trainer.short_due) = (None, false);
            self.trim_rejected();
            return false;
        }
        let training = &self.config.policy_training;
        let (batch, ready) = (u64::from(training.batch_size), u64::from(self.output.entries));
        let full = ready + self.trainer.rejected.len() as u64 >= batch;
        if !full && !self.short_step_is_due() {
            return false;
        }
        if self.must_wait_for_late() {
            return false;
        }
        if self.push_is_due() {
            self.push();
            return false;
        }
        self.begin_step(batch, full);
        true
    }

    /// A batch needs an accepted result: before one comes, more rejected ones than fit beside it
    /// hold no places.
    fn trim_rejected(&mut self) {
        let most = self.config.policy_training.batch_size.saturating_sub(1) as usize;
        let surplus = self.trainer.rejected.len().saturating_sub(most);
        if surplus > 0 {
            self.trainer.rejected.truncate(most);
            self.gate.rejected(-(surplus as i64));
            self.admission_due = true;
        }
    }

    fn short_step_is_due(&mut self) -> bool {
        let training = &self.config.policy_training;
        if self.exhausted && self.nothing_else_comes() {
            return true;
        }
        if training.max_batch_wait == Span::ZERO || self.output.entries < training.min_batch_size {
            (self.trainer.short_since, self.trainer.short_due) = (None, false);
            return false;
        }
        self.trainer.short_since.get_or_insert(self.now);
        self.trainer.short_due && self.short_step_is_safe()
    }

    /// What is in the output queue is all there will be.
    fn nothing_else_comes(&self) -> bool {
        self.source_is_dry() && self.samples.len() as u32 == self.output.samples
    }

    /// Takes the next `results` results, of which at least one is accepted, as the batch.
    fn begin_step(&mut self, results: u64, full: bool) {
        let awaited = self.awaits_late() || self.trainer.late_over;
        let mut taken = 0;
        while taken < results || self.trainer.batch.is_empty() {
            let urgent = if awaited { self.awaited_leader() } else { None };
            let Some(leader) = urgent.or_else(|| self.output.next()) else { break };
            taken += 1;
            let entered = self.samples[leader].entered;
            if self.trainer.rejected.front().is_some_and(|&rejected| rejected < entered) {
                self.trainer.rejected.pop_front();
                self.trainer.rejected_in_batch += 1;
            } else {
                self.take_entry(leader);
            }
        }
        // Without entries behind them, what is left of this batch's results was rejected.
        while taken < results && self.trainer.rejected.pop_front().is_some() {
            self.trainer.rejected_in_batch += 1;
            taken += 1;
        }
        if self.gate.loses_surplus() || self.plant.is(Planted::SurplusDropped) {
            while let Some(leader) = self.output.next() {
                self.discard_entry(leader, Discard::Surplus);
            }
        }
        let step = StepId(self.trainer.next_step);
        let trainer = &mut self.trainer;
        trainer.next_step += 1;
        trainer.step = Some(step);
        trainer.started = self.now;
        (trainer.short_since, trainer.short_due) = (None, false);
        (trainer.late_since, trainer.late_over) = (None, false);
        self.ledger.short_steps += u64::from(!full);
        self.drop_surplus(taken);
        let whole = !full || taken >= results;
        self.ensure(whole && !self.trainer.batch.is_empty(), Violation::BatchSize);
        self.admission_due = true;
        let samples = self.trainer.batch.len() as u32;
        self.act(Action::StartStep { step, learner: self.learner, samples });
    }

    /// The entry of an awaited sample that has come in time.
    fn awaited_leader(&self) -> Option<Slot> {
        let slot = self.awaited_in(SampleState::OutputQueue)?;
        self.members(slot).first().copied()
    }

    fn take_entry(&mut self, leader: Slot) {
        self.output.remove(leader, self.samples[leader].rank, self.weight(leader));
        self.trainer.entries_in_batch += 1;
        for member in self.members(leader) {
            self.in_state(member, SampleState::Training);
            self.samples[member].stamp(Stage::TrainStarted, self.now, self.learner);
            let staleness = self.learner.staleness_of(self.samples[member].sample.head);
            let limits = self.samples[member].limits;
            let bound = if limits.strict { limits.eta } else { u32::MAX };
            self.ensure(staleness.is_some(), Violation::Version);
            self.ensure(staleness <= Some(bound), Violation::StrictBound);
            self.trainer.batch.push(member);
        }
    }

    pub(super) fn handle_step_ended(&mut self, step: StepId, ok: bool) {
        if self.trainer.step != Some(step) {
            return self.ignore();
        }
        if !ok {
            return self.step_failed();
        }
        self.expect_measurement(step, self.learner);
        self.trainer.step = None;
        self.trainer.failures = 0;
        (self.trainer.entries_in_batch, self.trainer.rejected_in_batch) = (0, 0);
        self.trainer.last_duration = self.now.since(self.trainer.started);
        self.ledger.steps += 1;
        let mut batch = std::mem::take(&mut self.trainer.batch);
        for &slot in &batch {
            self.trained(slot);
        }
        batch.clear();
        self.trainer.batch = batch;
        self.new_learner_version();
    }

    pub(super) fn new_learner_version(&mut self) {
        self.learner = self.learner.next();
        self.history.push_back(self.now);
        self.admission_due = true;
        self.sweep();
        self.drop_late_returners();
        // First tokens are looked up for samples in flight, which are not older than these.
        let oldest = self.ages.oldest().unwrap_or(self.learner.number());
        while self.history.len() > 1 && self.history_from < oldest {
            self.history.pop_front();
            self.history_from += 1;
        }
    }

    /// Gives the samples of a failed step back to the head of the queue, or gives them up.
    #[cold]
    fn step_failed(&mut self) {
        self.ledger.failed_steps += 1;
        self.trainer.failures += 1;
        if self.trainer.failures <= self.config.policy_training.train_retries {
            return self.void_step();
        }
        self.trainer.failures = 0;
        self.trainer.step = None;
        let rejected = std::mem::take(&mut self.trainer.rejected_in_batch);
        self.gate.rejected(-(rejected as i64));
        self.trainer.entries_in_batch = 0;
        for slot in std::mem::take(&mut self.trainer.batch) {
            // A group takes its other members with it.
            if self.samples.get(slot).is_some_and(|entry| entry.state == SampleState::Training) {
                self.discard_entry(slot, Discard::StepFailed);
            }
        }
    }

    /// The step that is training will make no version: its samples are at the head of the queue.
    pub(super) fn void_step(&mut self) {
        self.trainer.step = None;
        self.trainer.entries_in_batch = 0;
        for _ in 0..std::mem::take(&mut self.trainer.rejected_in_batch) {
            self.trainer.rejected.push_front(0);
        }
        let batch = std::mem::take(&mut self.trainer.batch);
        for &slot in batch.iter().rev() {
            let leads = self.members(slot).first() == Some(&slot);
            if leads {
                self.rank_output(slot);
                self.output.give_back(slot, self.samples[slot].rank, self.weight(slot));
            }
        }
    }

    pub(super) fn expire_training(&mut self) {
        let [short, late, train] = self.trainer.deadlines(&self.config.policy_training);
        self.trainer.short_due |= due(short, self.now);
        self.trainer.late_over |= due(late, self.now);
        if due(train, self.now)
            && let Some(step) = self.trainer.step
        {
            self.act(Action::CancelStep { step });
            self.step_failed();
        }
    }

    /// The learner holds an older checkpoint again: versions go on upward, and what came from the
    /// policies in between is lost.
    #[cold]
    pub(super) fn handle_restored(&mut self, checkpoint: LearnerVersion) {
        let (kept, newest) = (checkpoint.number(), self.learner.number());
        if kept >= newest {
            self.ledger.ignored += u64::from(kept > newest);
            return;
        }
        self.void_step();
        self.forget_measurements();
        self.lost.retain(|&(_, to)| to < kept);
        self.lost.push((kept, newest));
        self.new_learner_version();
        self.gate = super::gate::Gate::new(&self.config, self.standing());
        self.abandon_publication();
        let live: Vec<Slot> = self.samples.iter().map(|(slot, _)| slot).collect();
        for slot in live {
            let of_lost_policy = |entry: &Entry| {
                self.is_lost(entry.sample.head.number()) || self.is_lost(entry.sample.tail.number())
            };
            let Some(entry) = self.samples.get(slot) else { continue };
            if of_lost_policy(entry) || self.runs_on_lost_weights(slot) {
                self.kill(slot, Discard::LostWeights);
            }
        }
    }
}

//! The output queue and train steps.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::queue::SampleQueue;
use super::slab::{NONE, Slot};
use super::state::Entry;
use super::timers::{deadline, due};
use super::{SampleState, Scheduler, Stage, Violation};
use crate::action::{Action, Discard};
use crate::config::{DropPolicy, Late, PolicyTraining};
use crate::id::StepId;
use crate::time::{Span, Time};
use crate::version::LearnerVersion;

/// The trainer, and what it waits for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Trainer {
    next_step: u64,
    step: Option<StepId>,
    started: Time,
    pub(crate) batch: Vec<Slot>,
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
    late_since: Option<Time>,
    /// It waits for them no longer.
    late_over: bool,
    last_ended: Time,
    /// Time between the last two steps.
    pub(crate) last_interval: Span,
}

impl Trainer {
    pub(crate) fn is_training(&self) -> bool {
        self.step.is_some()
    }

    /// Rejected results that hold a place.
    pub(crate) fn rejected_places(&self) -> u64 {
        self.rejected.len() as u64 + self.rejected_in_batch
    }

    /// When something of it is due.
    pub(crate) fn deadlines(&self, config: &PolicyTraining) -> [Option<Time>; 3] {
        let short = self.short_since.filter(|_| !self.short_due && !self.is_training());
        let late = self.late_since.filter(|_| !self.late_over && !self.is_training());
        [
            short.and_then(|since| deadline(since, config.max_batch_wait)),
            late.map(|since| since + config.late_wait),
            self.step.and_then(|_| deadline(self.started, config.train_timeout)),
        ]
    }
}

impl Scheduler {
    pub(super) fn sample_ready(&mut self, slot: Slot) {
        self.samples[slot].stamp(Stage::Ready, self.now, self.learner);
        self.entry_ready(slot, 1);
    }

    pub(super) fn group_ready(&mut self, slot: Slot) {
        let members = self.groups[slot].members;
        for member in members.iter(&self.member_links) {
            self.samples[member].stamp(Stage::Ready, self.now, self.learner);
        }
        if let Some(leader) = members.front() {
            self.entry_ready(leader, members.len());
        }
    }

    /// An entry has its result. Its first live member stands for it.
    fn entry_ready(&mut self, leader: Slot, weight: u32) {
        self.gate.accepted();
        self.admission_due = true;
        let policy = self.config.queue.output.drop_policy;
        if policy == DropPolicy::DropNewest && !self.output_has_room(leader, weight) {
            return self.discard_entry(leader, Discard::OutputQueueFull);
        }
        self.places_ready += 1;
        if let Some(group) = self.groups.get_mut(self.samples[leader].group) {
            group.ready = true;
        }
        while policy == DropPolicy::DropOldest
            && !self.output_has_room(leader, weight)
            && let Some(oldest) =
                self.output.fronts().min_by_key(|&front| self.samples[front].entered)
        {
            self.discard_entry(oldest, Discard::OutputQueueFull);
        }
        if self.output_has_room(leader, weight) {
            return self.push_output(leader);
        }
        for member in self.members(leader) {
            self.in_state(member, SampleState::OutputBlocked);
        }
        self.output.block(leader);
    }

    /// The samples of an entry, in the order of admission.
    fn members(&self, leader: Slot) -> smallvec::SmallVec<[Slot; 16]> {
        match self.samples[leader].group {
            NONE => smallvec::smallvec![leader],
            group => self.groups[group].members.iter(&self.member_links).collect(),
        }
    }

    pub(super) fn weight(&self, leader: Slot) -> u32 {
        match self.samples[leader].group {
            NONE => 1,
            group => self.groups[group].members.len(),
        }
    }

    fn discard_entry(&mut self, leader: Slot, reason: Discard) {
        match self.samples[leader].group {
            NONE => self.discard(leader, reason),
            group => self.kill_group(group, reason),
        }
    }

    fn output_has_room(&self, leader: Slot, weight: u32) -> bool {
        let promised = if self.samples[leader].reserved_output { 0 } else { self.output.reserved };
        let needed = self.output.samples + promised + weight;
        needed <= self.config.queue.output.max_size || self.is_awaited(leader)
    }

    fn push_output(&mut self, leader: Slot) {
        let entered = self.next_entry;
        self.next_entry += 1;
        self.samples[leader].entered = entered;
        self.rank_output(leader);
        self.output.push(leader, self.samples[leader].rank, self.weight(leader));
        let max_size = self.config.queue.output.max_size;
        let fits = self.output.samples <= max_size || self.is_awaited(leader);
        self.ensure(fits, Violation::QueueSize);
    }

    /// Puts an entry's samples into the state of the output queue, and gives it its rank.
    pub(super) fn rank_output(&mut self, leader: Slot) {
        let mut head = u32::MAX;
        for member in self.members(leader) {
            self.release_output_room(member);
            self.in_state(member, SampleState::OutputQueue);
            self.set_exempt(member, true);
            head = head.min(self.samples[member].sample.head.number());
        }
        let admission = self.samples[leader].sample.id.0;
        self.samples[leader].rank = self.output.rank(head, admission);
    }

    /// Takes one sample out of its entry, which is in the output queue or waits for it.
    pub(super) fn leave_output(&mut self, slot: Slot) {
        let entry = &self.samples[slot];
        let (rank, entered, group) = (entry.rank, entry.entered, entry.group);
        let queued = entry.state == SampleState::OutputQueue;
        let members = match group {
            NONE => None,
            group => Some(self.groups[group].members),
        };
        let leads = members.is_none_or(|members| members.front() == Some(slot));
        let heir = members.and_then(|members| members.after(&self.member_links, slot));
        self.admission_due = true;
        match (leads, heir) {
            (false, _) => self.output.samples -= u32::from(queued),
            (true, None) if queued => self.output.remove(slot, rank, 1),
            (true, None) => self.output.unblock(slot),
            (true, Some(heir)) => {
                (self.samples[heir].rank, self.samples[heir].entered) = (rank, entered);
                if queued {
                    self.output.replace(slot, heir, rank);
                    self.output.samples -= 1;
                } else {
                    self.output.replace_blocked(slot, heir);
                }
            }
        }
    }

    /// Lets entries that wait for room into the output queue.
    pub(super) fn unblock_output(&mut self) -> bool {
        let mut moved = false;
        while let Some(leader) = self.output.blocked.front() {
            if !self.output_has_room(leader, self.weight(leader)) {
                break;
            }
            self.output.unblock(leader);
            self.push_output(leader);
            moved = true;
        }
        if self.awaits_late() {
            while let Some(leader) = self.awaited_of(&self.output) {
                self.output.unblock(leader);
                self.push_output(leader);
                moved = true;
            }
        }
        moved
    }
}

/// Late samples.
impl Scheduler {
    /// The newest version that one more step makes too old; `None` if none can be.
    fn expiring_version(&self) -> Option<u32> {
        self.learner.number().checked_sub(self.bound_steps())
    }

    /// Samples that a step would make too old, and that are not in the output queue.
    fn pending_late(&self) -> bool {
        let Some(expiring) = self.expiring_version() else { return false };
        let buckets = self.ages.buckets().iter().take_while(|bucket| bucket.version <= expiring);
        buckets.map(super::ages::Bucket::pending).sum::<u32>() > 0
    }

    /// A batch waits for late samples.
    pub(super) fn awaits_late(&self) -> bool {
        self.trainer.late_since.is_some() && !self.trainer.late_over
    }

    /// A batch waits for this sample (or for one of its group).
    pub(super) fn is_awaited(&self, slot: Slot) -> bool {
        if !self.awaits_late() {
            return false;
        }
        let Some(expiring) = self.expiring_version() else { return false };
        let expires = |slot: Slot| self.samples[slot].sample.head.number() <= expiring;
        expires(slot) || self.members(slot).into_iter().any(expires)
    }

    /// The oldest awaited sample in a state.
    pub(super) fn awaited_in(&self, state: SampleState) -> Option<Slot> {
        let expiring = self.expiring_version()?;
        self.ages.between(0, expiring).find(|&slot| self.samples[slot].state == state)
    }

    /// The first awaited entry that waits for room in a queue.
    pub(super) fn awaited_of(&self, queue: &SampleQueue) -> Option<Slot> {
        queue.blocked_slots().find(|&slot| self.is_awaited(slot))
    }

    fn must_wait_for_late(&mut self) -> bool {
        let training = &self.config.policy_training;
        let waits = self.config.is_strict() && training.late == Late::Wait;
        if !waits || self.trainer.late_over || !self.pending_late() {
            return false;
        }
        self.trainer.late_since.get_or_insert(self.now);
        true
    }

    /// No sample outside a short batch would be trained above η because of it: with full batches
    /// afterwards, oldest first, each of them is trained in time.
    fn short_step_is_safe(&self) -> bool {
        if !self.gate.guards_short_steps() {
            return true;
        }
        let bound = u64::from(self.bound_steps());
        let per_step = self.config.samples_per_batch().max(1);
        let learner = u64::from(self.learner.number()) + 1;
        let mut ahead = 0;
        self.ages.buckets().iter().filter(|bucket| bucket.pending() > 0).all(|bucket| {
            ahead += u64::from(bucket.pending());
            let trained_at = learner + (ahead - 1) / per_step;
            trained_at - u64::from(bucket.version) <= bound
        })
    }

    /// Discards what is older than its bound or filter allows. Before a batch is chosen, or the
    /// dead would hold places for ever.
    pub(super) fn sweep(&mut self) {
        let learner = self.learner.number();
        let Some(newest) = learner.checked_sub(self.lowest_limit.saturating_add(1)) else { return };
        if self.ages.oldest().is_none_or(|oldest| oldest > newest) {
            return;
        }
        let mut old = std::mem::take(&mut self.scratch);
        old.extend(self.ages.between(0, newest));
        for slot in old.drain(..) {
            // One of a group can have taken this one with it.
            let Some(entry) = self.samples.get(slot) else { continue };
            let (age, limits) = (learner - entry.sample.head.number(), entry.limits);
            if age > limits.lowest() {
                self.kill(slot, limits.reason());
            }
        }
        self.scratch = old;
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
        self.sweep();
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
        self.begin_step(batch, full);
        true
    }

    /// A batch needs an accepted result: before one comes, more rejected ones than fit beside it
    /// hold no places.
    fn trim_rejected(&mut self) {
        let most = self.config.policy_training.batch_size.saturating_sub(1) as usize;
        if self.trainer.rejected.len() > most {
            self.trainer.rejected.truncate(most);
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
        self.turns.len() == 0 && self.samples.len() as u32 == self.output.samples
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
        if self.gate.loses_surplus() {
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
        self.ensure(!self.trainer.batch.is_empty(), Violation::BatchSize);
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
        self.trainer.step = None;
        self.trainer.failures = 0;
        self.trainer.rejected_in_batch = 0;
        self.trainer.last_interval = self.now.since(self.trainer.last_ended);
        self.trainer.last_ended = self.now;
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
    fn step_failed(&mut self) {
        self.ledger.failed_steps += 1;
        self.trainer.failures += 1;
        if self.trainer.failures <= self.config.policy_training.train_retries {
            return self.void_step();
        }
        self.trainer.failures = 0;
        self.trainer.step = None;
        self.trainer.rejected_in_batch = 0;
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
        if due(train, self.now) {
            self.step_failed();
        }
    }

    /// The learner holds an older checkpoint again: versions go on upward, and what came from the
    /// policies in between is lost.
    pub(super) fn handle_restored(&mut self, checkpoint: LearnerVersion) {
        let (kept, newest) = (checkpoint.number(), self.learner.number());
        if kept >= newest {
            self.ledger.ignored += u64::from(kept > newest);
            return;
        }
        self.void_step();
        self.lost.retain(|&(_, to)| to < kept);
        self.lost.push((kept, newest));
        self.new_learner_version();
        self.gate = super::gate::Gate::new(&self.config, self.learner.number());
        self.abandon_publication();
        let live: Vec<Slot> = self.samples.iter().map(|(slot, _)| slot).collect();
        for slot in live {
            let of_lost_policy = |entry: &Entry| {
                self.is_lost(entry.sample.head.number()) || self.is_lost(entry.sample.tail.number())
            };
            if self.samples.get(slot).is_some_and(of_lost_policy) {
                self.kill(slot, Discard::LostWeights);
            }
        }
    }
}

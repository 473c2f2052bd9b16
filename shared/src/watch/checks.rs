//! What must hold after every input.

use super::{Checked, Decision, Watch, must};
use crate::action::{Action, Refusal};
use crate::config::{BatchCounts, GateKind, Late, SampleUnit, SyncMode};
use crate::core::{Fate, Resolved, Sample, SampleState, Scheduler, Stage};
use crate::id::{RequestId, SampleId};
use crate::input::{Input, TurnType};
use crate::time::Span;

impl Watch {
    /// A refusal must be true.
    pub(super) fn check_refusal(
        &self,
        request: RequestId,
        reason: Refusal,
        core: &Scheduler,
    ) -> Checked {
        let config = self.config();
        match reason {
            Refusal::Paused => must!(self.paused, "503 paused, and nobody paused"),
            Refusal::Ended => must!(core.gauges().closed, "503 ended, and it goes on"),
            Refusal::WeightSync => {
                let own_window = self.ever(|c| c.policy_training.gate == GateKind::Openclaw);
                let may_close = config.policy_serving.sync_mode != SyncMode::InFlight;
                let publishing = self.publishing || core.publication().is_some();
                let may = own_window || publishing && (may_close || self.reconfigured());
                must!(may, "503 weight_sync outside a pause");
            }
            Refusal::NoReplica => {
                let none = self.engines.values().all(|it| !(it.alive && it.whole));
                must!(none || self.restored, "503 no_replica, and one serves");
            }
            Refusal::Stale if self.asks(request) => self.check_stale(core)?,
            _ => {}
        }
        Ok(())
    }

    /// The last input was this request.
    fn asks(&self, request: RequestId) -> bool {
        self.last_request == Some(request)
    }

    /// A request is decided at once.
    pub(super) fn check_answered(&mut self, input: &Input, actions: &[Action]) -> Checked {
        let Input::Request(request) = input else { return Ok(()) };
        let id = request.request;
        if self.reused {
            let again = |action: &Action| {
                matches!(action, Action::StartGeneration { request: again, attempt: 1, .. }
                    if *again == id)
            };
            must!(!actions.iter().any(again), "{id} starts twice");
            return Ok(());
        }
        let decision = self.decision(id);
        must!(decision != Decision::Unknown, "{id} got no decision");
        let sample = matches!(decision, Decision::Started { sample: Some(_), .. });
        must!(request.turn == TurnType::Main || !sample, "{id} is a side request and a sample");
        Ok(())
    }

    pub(super) fn check_batch(&mut self, core: &Scheduler) -> Checked {
        let mut count = 0;
        let most = self.widest_bound;
        let strict = self.configs.iter().all(|c| c.is_strict() && c.is_strict_at(most));
        for sample in core.batch() {
            count += 1;
            let id = sample.id;
            let Some(life) = self.samples.get_mut(&id) else {
                return Err(format!("{id} is in a batch, and was trained or discarded before"));
            };
            life.in_step = true;
            // After a reconfiguration a sample keeps the bound it was admitted under.
            let staleness = sample.staleness_head();
            must!(!strict || staleness <= most, "{id} is trained at {staleness}: strict, {most}");
        }
        must!(count > 0, "an empty batch");
        if self.reconfigured() {
            return Ok(());
        }
        let training = &self.config().policy_training;
        let most = training.batch_size.saturating_mul(training.group_size);
        must!(count <= most, "{count} samples in a batch of {most}");
        let waited = training.max_batch_wait > Span::ZERO && count >= training.min_batch_size;
        let grouped = training.group_size > 1 || training.batch_counts == BatchCounts::Results;
        let short = count < most && !grouped && !waited && !self.exhausted;
        must!(!short, "{count} samples in a batch of {most}, and it may not be short");
        Ok(())
    }

    /// Who left is told, once each; who was trained was in the step.
    pub(super) fn check_told(
        &mut self,
        input: &Input,
        actions: &[Action],
        core: &Scheduler,
    ) -> Checked {
        let discarded = |resolved: &&Resolved| resolved.fate != Fate::Trained;
        let left = core.resolved().iter().filter(discarded).map(|resolved| resolved.sample.id);
        let told = actions.iter().filter_map(|action| match action {
            Action::Discard { sample, .. } => Some(*sample),
            _ => None,
        });
        must!(left.eq(told.clone()), "discard actions and resolved samples differ");
        let trained: Vec<&Sample> = core
            .resolved()
            .iter()
            .filter(|resolved| resolved.fate == Fate::Trained)
            .map(|resolved| &resolved.sample)
            .collect();
        let ended = matches!(input, Input::StepEnded { ok: true, .. }) && self.step.is_none();
        must!(trained.is_empty() || ended, "samples are trained, and no step has ended");
        for sample in trained {
            self.check_trained(sample)?;
            self.samples.remove(&sample.id);
            self.trained += 1;
        }
        if ended && let Some((id, _)) = self.samples.iter().find(|(_, life)| life.in_step) {
            return Err(format!("{id} was in the step that has ended, and is not trained"));
        }
        let ledger = core.ledger();
        must!(
            ledger.trained == self.trained,
            "{} trained, and {} told",
            ledger.trained,
            self.trained
        );
        let (counted, told) = (ledger.discarded_total(), self.discarded + told.count() as u64);
        must!(counted == told, "{counted} samples are discarded, and {told} told");
        Ok(())
    }

    fn check_trained(&self, sample: &Sample) -> Checked {
        let id = sample.id;
        let Some(life) = self.samples.get(&id).filter(|life| life.in_step) else {
            return Err(format!("{id} is trained, and was in no step"));
        };
        life.label.check(sample, true)?;
        self.check_score(sample)?;
        let from = sample.learner(Stage::TrainStarted).number();
        must!(from == self.step_from, "{id} is trained by a step from {from}, not that");
        must!(sample.tokens > 0, "{id} has no tokens");
        let may_mix = self.mixes || life.resumed;
        let fine = (1..=sample.turns).contains(&sample.segments);
        must!(may_mix || fine, "{id} mixes versions within a turn");
        let turns = sample.turns == 1 || self.unit() == SampleUnit::Session;
        must!(turns, "{id} has {} turns", sample.turns);
        let time: u64 = sample.time_parts().iter().map(|part| part.as_nanos()).sum();
        let whole = sample.time(Stage::TrainStarted).since(sample.time(Stage::Admitted));
        must!(time == whole.as_nanos(), "the parts in time of {id} are not the whole");
        let (parts, head) = (sample.staleness_parts(), sample.staleness_head());
        let sum: u32 = parts.iter().sum();
        must!(sum == head, "the parts of the staleness of {id} are {parts:?}, of {head}");
        must!(sample.staleness_tail() <= head, "{id} is younger at its head");
        let filters = self.configs.iter().map(|config| config.policy_training.stale_filter_steps);
        let filter = filters.reduce(|one, other| Some(one?.max(other?))).flatten();
        let filtered = filter.is_some_and(|filter| head > filter);
        let moves = self.ever(|config| config.adaptive.is_on());
        must!(!filtered || moves, "{id} is trained at {head}, above the filter");
        Ok(())
    }

    pub(super) fn check_core(&mut self, gave_back: bool, core: &Scheduler) -> Checked {
        self.gave_back |= gave_back;
        core.ledger().check().map_err(|violation| violation.to_string())?;
        core.audit().map_err(|violation| violation.to_string())?;
        let (has, made) = (core.learner().number(), self.learner);
        must!(has == made, "the learner is at {has}, and {made} versions were made");
        let admitted = core.ledger().admitted;
        must!(admitted == self.next_sample, "{admitted} admitted, {} started", self.next_sample);
        self.check_engines(core)?;
        let gauges = core.gauges();
        must!(gauges.votes as usize == self.votes.len(), "{} votes in flight", gauges.votes);
        must!(gauges.training == self.step.is_some(), "a step trains, or does not");
        let config = self.config();
        let judging = config.reward_judging.judge_concurrency;
        must!(gauges.votes <= judging || self.reconfigured(), "{} votes at once", gauges.votes);
        let envs = config.environment_hosting.max_envs;
        let fits = envs == 0 || gauges.environments <= envs || self.reconfigured();
        must!(fits, "{} environments at once", gauges.environments);
        self.check_rollouts(core)?;
        self.check_queues(gave_back, core)?;
        self.check_room(core)?;
        self.parked = (core.ledger().parked(), core.ledger().parkings);
        self.publishing = core.publication().is_some();
        Ok(())
    }

    /// Replicas hold what they were seen to load.
    fn check_engines(&self, core: &Scheduler) -> Checked {
        for (&id, engine) in &self.engines {
            let Some(seen) = core.replica(id) else {
                return Err(format!("{id} is unknown"));
            };
            let up = engine.alive && engine.whole;
            must!(seen.up == up, "{id} serves: {up}, and the core says {}", seen.up);
            let holds = engine.holds == seen.deploy.number() || !up;
            must!(holds, "{id} holds {}, and the core says {}", engine.holds, seen.deploy);
        }
        Ok(())
    }

    /// A trajectory counts as a rollout from its first turn until its session has ended; a turn
    /// while it is generated.
    fn check_rollouts(&self, core: &Scheduler) -> Checked {
        let limit = u64::from(self.config().policy_serving.max_concurrent_rollouts);
        if limit == 0 || self.reconfigured() {
            return Ok(());
        }
        let running: u64 = match self.unit() {
            SampleUnit::Session => {
                let states = [SampleState::Generating, SampleState::AwaitingSessionEnd];
                states.iter().map(|&state| core.ledger().count(state)).sum()
            }
            SampleUnit::Turn => {
                let alive = |id: SampleId| self.samples.contains_key(&id);
                let turns = self.generations.values().filter(|turn| !turn.aborted);
                turns.filter(|turn| turn.sample.is_some_and(alive)).count() as u64
            }
        };
        must!(running <= limit, "{running} rollouts at once, and {limit} are allowed");
        Ok(())
    }

    /// A queue keeps its size, or shrinks towards it. What a failed step gives back, and what a
    /// step waits for, goes in all the same.
    fn check_queues(&mut self, gave_back: bool, core: &Scheduler) -> Checked {
        let gauges = core.gauges();
        let (rollout, output) = (gauges.rollout_queue, gauges.output_queue);
        let (rollout_before, output_before, batch_before) = self.lengths;
        let queues = &self.config().queue;
        let (rollout_size, output_size) = (queues.rollout.max_size, queues.output.max_size);
        let awaits = self.config().policy_training.late == Late::Wait;
        let fits = rollout <= rollout_size.max(rollout_before) || awaits;
        must!(fits, "{rollout} samples in a rollout queue of {rollout_size}");
        let back = if gave_back { batch_before } else { 0 };
        let fits = output <= output_size.max(output_before + back) || awaits;
        must!(fits, "{output} samples in an output queue of {output_size}");
        self.lengths = (rollout, output, core.batch().count() as u32);
        Ok(())
    }
}

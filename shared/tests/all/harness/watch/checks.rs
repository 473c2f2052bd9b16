//! What must hold after every input.

use headway_shared::action::{Action, Refusal};
use headway_shared::config::{GateKind, Late, SampleUnit, SyncMode};
use headway_shared::core::{Fate, SampleState, Scheduler, Stage};
use headway_shared::input::{Input, TurnType};

use super::{Decision, Watch};

impl Watch {
    /// A refusal must be true.
    pub(super) fn check_refusal(&self, reason: Refusal, core: &Scheduler) {
        let gauges = core.gauges();
        match reason {
            Refusal::Paused => assert!(self.paused, "503 paused, and nobody paused"),
            Refusal::Ended => assert!(core.gauges().closed, "503 ended, and it goes on"),
            Refusal::WeightSync => {
                let own_window = self.config.policy_training.gate == GateKind::Openclaw;
                let may_close = self.config.policy_serving.sync_mode != SyncMode::InFlight;
                let publishing = self.publication.is_some() && (may_close || self.reconfigured);
                assert!(own_window || publishing, "503 weight_sync outside a pause");
            }
            Refusal::NoReplica if !self.reconfigured => {
                let newest = self.held_weights.len();
                assert!((gauges.replicas_up as usize) <= newest, "more replicas than there are");
            }
            _ => {}
        }
    }

    /// A request is decided at once.
    pub(super) fn check_answered(&mut self, input: &Input, actions: &[Action]) {
        let Input::Request(request) = input else { return };
        if self.reused {
            let again = |action: &Action| {
                matches!(action, Action::StartGeneration { request: again, attempt: 1, .. }
                    if *again == request.request)
            };
            return assert!(!actions.iter().any(again), "{} starts twice", request.request);
        }
        let decision = self.decision(request.request);
        assert_ne!(decision, Decision::Unknown, "{} got no decision", request.request);
        let sample = matches!(decision, Decision::Started { sample: Some(_), .. });
        assert!(request.turn == TurnType::Main || !sample, "a side request became a sample");
    }

    pub(super) fn check_batch(&self, core: &Scheduler) {
        let training = &self.config.policy_training;
        let mut count = 0;
        for sample in core.batch() {
            count += 1;
            assert!(!self.trained.contains(&sample.id), "{} is trained twice", sample.id);
            assert!(!self.discarded.contains(&sample.id), "{} was discarded", sample.id);
            // After a reconfiguration a sample keeps the bound it was admitted under.
            let strict = self.config.is_strict() && self.config.is_strict_at(self.widest_bound);
            if strict && !self.reconfigured {
                let staleness = sample.staleness_head();
                assert!(staleness <= self.widest_bound, "strict, and {staleness} is trained");
            }
        }
        assert!(count > 0, "an empty batch");
        let most = training.batch_size * training.group_size;
        assert!(count <= most || self.reconfigured, "{count} samples in a batch of {most}");
    }

    pub(super) fn check_resolved(&mut self, actions: &[Action], core: &Scheduler) {
        let mut discards = 0;
        for resolved in core.resolved() {
            let sample = &resolved.sample;
            match resolved.fate {
                Fate::Trained => {
                    assert!(self.trained.insert(sample.id), "{} is trained twice", sample.id);
                    assert!(!self.discarded.contains(&sample.id), "trained and discarded");
                    assert!(sample.tokens > 0, "{} has no tokens", sample.id);
                    let may_mix = self.mixes || self.resumed.contains(&sample.id);
                    let fine = (1..=sample.turns).contains(&sample.segments);
                    assert!(may_mix || fine, "{} mixes versions within a turn", sample.id);
                    assert!(sample.turns == 1 || self.unit() == SampleUnit::Session);
                    let time: u64 = sample.time_parts().iter().map(|part| part.as_nanos()).sum();
                    let life = sample.time(Stage::TrainStarted).since(sample.time(Stage::Admitted));
                    assert_eq!(time, life.as_nanos(), "the parts in time of {}", sample.id);
                    let parts: u32 = sample.staleness_parts().iter().sum();
                    assert_eq!(parts, sample.staleness_head(), "the parts of {}", sample.id);
                    assert!(sample.staleness_tail() <= sample.staleness_head());
                }
                Fate::Discarded(_) => {
                    discards += 1;
                    assert!(self.discarded.contains(&sample.id), "discarded without an action");
                }
            }
        }
        let told = actions.iter().filter(|a| matches!(a, Action::Discard { .. })).count();
        assert_eq!(told, discards, "discard actions and resolved samples differ");
    }

    pub(super) fn check_core(&mut self, core: &Scheduler) {
        core.ledger().check().unwrap_or_else(|violation| panic!("{violation}"));
        core.audit().unwrap_or_else(|violation| panic!("{violation}"));
        assert!(core.learner().number() >= self.learner, "the learner goes backwards");
        self.learner = core.learner().number();
        assert_eq!(core.ledger().admitted, self.next_sample, "admitted, and never started");
        assert_eq!(core.ledger().trained, self.trained.len() as u64);
        assert_eq!(core.ledger().discarded_total(), self.discarded.len() as u64);
        let gauges = core.gauges();
        assert_eq!(gauges.votes as usize, self.votes.len(), "votes in flight");
        assert_eq!(gauges.training, self.step.is_some() && gauges.training, "trains nothing");
        let judging = self.config.reward_judging.judge_concurrency;
        assert!(gauges.votes <= judging || self.reconfigured, "too many votes");
        let envs = self.config.environment_hosting.max_envs;
        let fits = envs == 0 || gauges.environments <= envs || self.reconfigured;
        assert!(fits, "too many environments");
        self.check_rollouts(core);
        self.check_queues(core);
    }

    /// A trajectory counts as a rollout from its first turn until its session has ended.
    fn check_rollouts(&self, core: &Scheduler) {
        let limit = u64::from(self.config.policy_serving.max_concurrent_rollouts);
        if self.unit() == SampleUnit::Session && limit > 0 && !self.reconfigured {
            let states = [SampleState::Generating, SampleState::AwaitingSessionEnd];
            let running: u64 = states.iter().map(|&state| core.ledger().count(state)).sum();
            assert!(running <= limit, "{running} trajectories are running");
        }
    }

    /// A queue keeps its size, or shrinks towards it. What a failed step gives back, and what a
    /// step waits for, goes in all the same.
    fn check_queues(&mut self, core: &Scheduler) {
        let (rollout, output) = (core.gauges().rollout_queue, core.gauges().output_queue);
        let queues = &self.config.queue;
        let (rollout_before, output_before, batch_before) = self.lengths;
        let awaits = self.config.policy_training.late == Late::Wait;
        let fits = rollout <= queues.rollout.max_size.max(rollout_before);
        assert!(fits || awaits, "{rollout} in the rollout queue");
        let batch = core.batch().count() as u32;
        let fits = output <= queues.output.max_size.max(output_before + batch_before);
        assert!(fits || awaits, "{output} in the output queue");
        self.lengths = (rollout, output, batch);
    }
}

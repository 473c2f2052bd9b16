//! What happens to turns that are generated: votes, steps, weights, sessions; and what came of it.

use headway_shared::action::{Action, Discard};
use headway_shared::config::Config;
use headway_shared::core::Sample;
use headway_shared::id::{ReplicaId, SampleId, SessionId};
use headway_shared::input::{
    EnvironmentOutcome, Input, Operator, Score, VoteOutcome, WeightsEvent,
};
use headway_shared::version::{DeployVersion, LearnerVersion};

use super::{Bench, GOOD, R0, R1};

impl Bench {
    // Judging.

    /// The oldest vote under way on a sample says this.
    pub(crate) fn vote(&mut self, sample: SampleId, score: Score) {
        self.vote_as(sample, VoteOutcome::Score(score));
    }

    /// The oldest vote under way on a sample ends so.
    pub(crate) fn vote_as(&mut self, sample: SampleId, outcome: VoteOutcome) {
        let vote = self.watch.votes.iter().find(|(_, of)| **of == sample);
        let vote = *vote.unwrap_or_else(|| panic!("no vote on {sample}")).0;
        self.give(Input::VoteEnded { vote, outcome, tokens: 50, judge_version: 1 });
    }

    /// A turn that is admitted, generated and scored by one vote.
    pub(crate) fn scored(&mut self, session: u64, score: Score) -> SampleId {
        let sample = self.turn(session);
        self.vote(sample, score);
        sample
    }

    /// A turn of a group that is admitted, generated and scored by one vote.
    pub(crate) fn scored_in(&mut self, session: u64, group: u64, score: Score) -> SampleId {
        let sample = self.turn_in(session, group);
        self.vote(sample, score);
        sample
    }

    /// How many votes are under way on a sample.
    pub(crate) fn votes_on(&self, sample: SampleId) -> usize {
        self.watch.votes.values().filter(|of| **of == sample).count()
    }

    // Training.

    /// The step under way ends.
    pub(crate) fn end_step(&mut self, ok: bool) {
        let step = self.watch.step.expect("no step is under way");
        self.give(Input::StepEnded { step, ok });
    }

    /// Whether a step is under way.
    pub(crate) fn training(&self) -> bool {
        self.watch.step.is_some()
    }

    /// The samples of the step under way.
    pub(crate) fn batch(&self) -> Vec<SampleId> {
        self.core.batch().map(|sample| sample.id).collect()
    }

    /// Whole steps: new sessions fill a batch, it trains, the weights arrive everywhere.
    pub(crate) fn steps(&mut self, count: u32) {
        for _ in 0..count {
            while !self.training() {
                let session = self.fresh();
                self.scored(session, GOOD);
            }
            self.end_step(true);
            self.publish();
        }
    }

    // Weights.

    /// The export of the publication under way ends well.
    pub(crate) fn save(&mut self) {
        self.weights(WeightsEvent::Saved);
    }

    /// Something happens to the newest publication.
    pub(crate) fn weights(&mut self, event: WeightsEvent) {
        let publication = self.watch.publication.expect("nothing is published");
        self.give(Input::Weights { publication, event });
    }

    /// A replica fetches and loads what it was told to.
    pub(crate) fn load(&mut self, replica: ReplicaId) {
        self.load_event(replica, WeightsEvent::Transferred(replica));
        self.load_event(replica, WeightsEvent::Loaded(replica));
    }

    /// Something happens to the load of a replica.
    pub(crate) fn load_event(&mut self, replica: ReplicaId, event: WeightsEvent) {
        let publication = self.watch.load_of(replica).expect("the replica loads nothing");
        self.give(Input::Weights { publication, event });
    }

    /// The publication under way, if any, reaches every replica.
    pub(crate) fn publish(&mut self) {
        if self.watch.saving {
            self.save();
        }
        while let Some(replica) = self.watch.loading() {
            self.load(replica);
        }
    }

    /// A batch trains, and of two replicas only R0 gets its weights: R0 holds version 1, R1 holds 0.
    pub(crate) fn replicas_apart(&mut self) {
        self.replica_up(R1, 0);
        self.scored(0, GOOD);
        self.scored(1, GOOD);
        self.end_step(true);
        self.save();
        self.load(R0);
    }

    /// A replica serves with these weights.
    pub(crate) fn replica_up(&mut self, replica: ReplicaId, version: u32) {
        self.give(Input::ReplicaUp { replica, deploy: DeployVersion::new(version) });
    }

    /// A replica dies.
    pub(crate) fn replica_down(&mut self, replica: ReplicaId) {
        self.give(Input::ReplicaDown { replica });
    }

    /// What a replica holds, as the core sees it.
    pub(crate) fn deployed(&self, replica: ReplicaId) -> u32 {
        self.core.replica(replica).expect("an unknown replica").deploy.number()
    }

    /// Whether a replica holds whole weights, as the core sees it.
    pub(crate) fn is_up(&self, replica: ReplicaId) -> bool {
        self.core.replica(replica).is_some_and(|view| view.up)
    }

    /// The learner's version.
    pub(crate) fn learner(&self) -> u32 {
        self.core.learner().number()
    }

    // Sessions.

    /// The next state of a session arrives without a request.
    pub(crate) fn next_state(&mut self, session: u64) {
        self.give(Input::NextState { session: SessionId(session) });
    }

    /// A session ends.
    pub(crate) fn end_session(&mut self, session: u64) {
        self.give(Input::SessionEnded { session: SessionId(session) });
    }

    /// The environment of a session answers.
    pub(crate) fn environment(&mut self, session: u64, outcome: EnvironmentOutcome) {
        let session = SessionId(session);
        let attempt = *self.watch.environments.get(&session).expect("no environment is at work");
        self.give(Input::EnvironmentEnded { session, attempt, outcome });
    }

    /// An operator changes the configuration.
    pub(crate) fn reconfigure(&mut self, edit: impl FnOnce(&mut Config)) {
        let mut config = self.core.config().clone();
        edit(&mut config);
        self.give(Input::Operator(Operator::Reconfigure(Box::new(config))));
    }

    /// The learner holds an older checkpoint.
    pub(crate) fn restored(&mut self, version: u32) {
        self.give(Input::Restored { checkpoint: LearnerVersion::new(version) });
    }

    // What happened.

    /// Whether the last input caused an action like this.
    pub(crate) fn did(&self, like: impl Fn(&Action) -> bool) -> bool {
        self.last.iter().any(like)
    }

    /// Why a sample was discarded, if it was.
    pub(crate) fn fate(&self, sample: SampleId) -> Option<Discard> {
        self.discarded.iter().find(|(id, _)| *id == sample).map(|(_, reason)| *reason)
    }

    /// Whether a sample was trained.
    pub(crate) fn was_trained(&self, sample: SampleId) -> bool {
        self.trained.iter().any(|trained| trained.id == sample)
    }

    /// The sample, as it was trained.
    pub(crate) fn trained_sample(&self, sample: SampleId) -> &Sample {
        self.trained.iter().find(|trained| trained.id == sample).expect("not trained")
    }

    /// The largest head staleness of what was trained.
    pub(crate) fn worst_staleness(&self) -> u32 {
        self.trained.iter().map(Sample::staleness_head).max().unwrap_or(0)
    }
}

//! Drives a [`Scheduler`] by hand, in virtual time, and checks it after every input.

mod configs;
mod plan;
mod watch;
mod world;

pub(crate) use configs::{any_config, sane_config};
pub(crate) use plan::{Delay, Plan, any_plan, calm_plan, fifo_plan};
pub(crate) use watch::{Decision, Watch};
pub(crate) use world::World;

use headway_shared::action::{Action, Discard, Refusal, Reply};
use headway_shared::config::{Config, JudgeNeeds, SyncMode};
use headway_shared::core::{Fate, Sample, Scheduler};
use headway_shared::id::{GroupId, ReplicaId, RequestId, SampleId, SessionId};
use headway_shared::input::{
    EnvironmentOutcome, Finish, Input, Operator, Request, Score, Segment, Segments, TurnType,
    VoteOutcome, WeightsEvent,
};
use headway_shared::time::{Span, Time};
use headway_shared::version::{DeployVersion, LearnerVersion, RolloutVersion};

/// A score of 1.
pub(crate) const GOOD: Score = 1_000_000;
/// A score of 0.
pub(crate) const ZERO: Score = 0;
/// A score of -1.
pub(crate) const BAD: Score = -1_000_000;
/// The replica of a world with one.
pub(crate) const R0: ReplicaId = ReplicaId(0);
/// The second replica.
pub(crate) const R1: ReplicaId = ReplicaId(1);

/// Whole seconds.
pub(crate) const fn secs(n: u64) -> Span {
    Span::from_secs(n)
}

/// A small configuration: batches of 2, η = 2, judged when generated, weights swapped in flight.
pub(crate) fn small() -> Config {
    let mut config = Config::default();
    config.policy_serving.sync_mode = SyncMode::InFlight;
    config.reward_judging.judge_needs = JudgeNeeds::Turn;
    config.policy_training.batch_size = 2;
    config
}

/// A scheduler with a clock, a memory of what is under way, and a checker.
pub(crate) struct Bench {
    pub(crate) core: Scheduler,
    pub(crate) now: Time,
    pub(crate) watch: Watch,
    /// The actions of the last input.
    pub(crate) last: Vec<Action>,
    /// All actions.
    pub(crate) log: Vec<Action>,
    /// Every input with its time.
    pub(crate) record: Vec<(Time, Input)>,
    /// Samples in the order in which they were trained.
    pub(crate) trained: Vec<Sample>,
    /// Samples in the order in which they were discarded.
    pub(crate) discarded: Vec<(SampleId, Discard)>,
    next_id: u64,
}

impl Bench {
    /// [`small`], edited, and one replica at version 0.
    pub(crate) fn new(edit: impl FnOnce(&mut Config)) -> Bench {
        let mut config = small();
        edit(&mut config);
        let mut bench = Bench::bare(config);
        bench.replica_up(R0, 0);
        bench
    }

    /// No replica yet.
    pub(crate) fn bare(config: Config) -> Bench {
        Bench {
            core: Scheduler::new(config.clone()),
            now: Time::ZERO,
            watch: Watch::new(config),
            last: Vec::new(),
            log: Vec::new(),
            record: Vec::new(),
            trained: Vec::new(),
            discarded: Vec::new(),
            next_id: 1000,
        }
    }

    /// Gives one input, drains the actions, checks everything.
    pub(crate) fn give(&mut self, input: Input) {
        self.watch.on_input(&input);
        self.core.handle(self.now, &input);
        self.last.clear();
        while let Some(action) = self.core.poll_action() {
            self.last.push(action);
            assert!(self.last.len() < 100_000, "one input causes actions without end");
        }
        self.watch.after(self.now, &input, &self.last, &self.core);
        for resolved in self.core.resolved() {
            match resolved.fate {
                Fate::Trained => self.trained.push(resolved.sample.clone()),
                Fate::Discarded(reason) => self.discarded.push((resolved.sample.id, reason)),
            }
        }
        self.log.extend_from_slice(&self.last);
        self.record.push((self.now, input));
    }

    /// Lets time pass, with a tick whenever the core asks for one.
    pub(crate) fn advance(&mut self, span: Span) {
        let target = self.now + span;
        let mut ticks = 0;
        while let Some(due) = self.core.poll_timeout().filter(|due| *due <= target) {
            self.now = self.now.max(due);
            self.give(Input::Tick);
            ticks += 1;
            assert!(ticks < 10_000, "a timer fires for ever");
        }
        self.now = target;
    }

    fn fresh(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    // Requests.

    /// A main request of a session.
    pub(crate) fn request(&mut self, session: u64) -> RequestId {
        self.request_with(session, |_| {})
    }

    /// A main request of a session, edited.
    pub(crate) fn request_with(
        &mut self,
        session: u64,
        edit: impl FnOnce(&mut Request),
    ) -> RequestId {
        let mut request = Request {
            request: RequestId(self.fresh()),
            session: SessionId(session),
            group: None,
            turn: TurnType::Main,
            prompt_tokens: 10,
            streamed: false,
            last: false,
        };
        edit(&mut request);
        self.give(Input::Request(request));
        request.request
    }

    /// A request of a session in a group.
    pub(crate) fn request_in(&mut self, session: u64, group: u64) -> RequestId {
        self.request_with(session, |request| request.group = Some(GroupId(group)))
    }

    /// A request that must become a sample at once.
    pub(crate) fn admit(&mut self, session: u64) -> RequestId {
        let request = self.request(session);
        self.must_be_sample(request);
        request
    }

    /// A request in a group that must become a sample at once.
    pub(crate) fn admit_in(&mut self, session: u64, group: u64) -> RequestId {
        let request = self.request_in(session, group);
        self.must_be_sample(request);
        request
    }

    fn must_be_sample(&self, request: RequestId) {
        let decision = self.decision(request);
        assert!(
            matches!(decision, Decision::Started { sample: Some(_), .. }),
            "{request} should be admitted, but: {decision:?}"
        );
    }

    /// What was decided last about a request.
    pub(crate) fn decision(&self, request: RequestId) -> Decision {
        self.watch.decision(request)
    }

    /// Asserts that a request is refused for this reason.
    #[track_caller]
    pub(crate) fn refused(&self, request: RequestId, reason: Refusal) {
        assert_eq!(self.decision(request), Decision::Refused(reason));
    }

    /// Asserts that a session's request is refused for this reason.
    #[track_caller]
    pub(crate) fn refuses(&mut self, session: u64, reason: Refusal) {
        let request = self.request(session);
        self.refused(request, reason);
    }

    /// The sample that a request became.
    pub(crate) fn sample_of(&self, request: RequestId) -> SampleId {
        match self.decision(request) {
            Decision::Started { sample: Some(sample), .. } => sample,
            other => panic!("{request} is no sample: {other:?}"),
        }
    }

    /// How the turn ended for its client, if it has.
    pub(crate) fn reply(&self, request: RequestId) -> Option<Reply> {
        self.watch.replies.get(&request).copied()
    }

    // Generation.

    /// The running generation of a request ends well.
    pub(crate) fn finish(&mut self, request: RequestId) {
        self.finish_as(request, Finish::Stop, 10);
    }

    /// The running generation of a request ends, with this many tokens in all.
    pub(crate) fn finish_as(&mut self, request: RequestId, finish: Finish, tokens: u32) {
        let attempt = self.watch.attempt(request).expect("the request is not running");
        self.finish_attempt(request, attempt, finish, tokens);
    }

    /// An attempt of a request ends; its tokens are spread over the versions it met.
    pub(crate) fn finish_attempt(
        &mut self,
        request: RequestId,
        attempt: u32,
        finish: Finish,
        tokens: u32,
    ) {
        let generation = self.watch.generation(request, attempt);
        let met = generation.versions.clone();
        let first_token = (tokens > 0).then(|| generation.started.max(Time::ZERO));
        self.give(Input::GenerationEnded {
            request,
            attempt,
            finish,
            first_token,
            segments: spread(&met, tokens),
        });
    }

    /// A turn that is admitted and generated.
    pub(crate) fn turn(&mut self, session: u64) -> SampleId {
        let request = self.admit(session);
        self.finish(request);
        self.sample_of(request)
    }

    /// A turn of a group that is admitted and generated.
    pub(crate) fn turn_in(&mut self, session: u64, group: u64) -> SampleId {
        let request = self.admit_in(session, group);
        self.finish(request);
        self.sample_of(request)
    }

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

/// `tokens` tokens over the versions that a turn met: one for each but the last.
pub(crate) fn spread(met: &[u32], tokens: u32) -> Segments {
    let shown = met.len().min(tokens as usize);
    let rest = (tokens as usize - shown) as u32;
    let mut segments: Segments = met[..shown]
        .iter()
        .map(|version| Segment { version: RolloutVersion::new(*version), tokens: 1 })
        .collect();
    if let Some(last) = segments.last_mut() {
        last.tokens += rest;
    }
    segments
}

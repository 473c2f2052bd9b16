//! The checker: keeps its own books of what is under way, from inputs and actions alone, and
//! compares them with the core after every input.

mod checks;

use std::collections::{BTreeMap, BTreeSet};

use headway_shared::action::{Action, InFlight, Refusal, Reply};
use headway_shared::config::{Aborted, Config, SampleUnit, SyncMode};
use headway_shared::core::Scheduler;
use headway_shared::id::{
    PublicationId, ReplicaId, RequestId, SampleId, SessionId, StepId, VoteId,
};
use headway_shared::input::{Input, Operator, WeightsEvent};
use headway_shared::time::{Span, Time};

/// What was decided about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It was never given.
    Unknown,
    /// It is being generated, or was.
    Started { replica: ReplicaId, sample: Option<SampleId> },
    /// It was refused.
    Refused(Refusal),
    /// It waits.
    Held,
}

/// A generation under way.
#[derive(Clone, Debug)]
pub(crate) struct Generation {
    pub(crate) replica: ReplicaId,
    pub(crate) started: Time,
    /// The versions it met so far, oldest first.
    pub(crate) versions: Vec<u32>,
    pub(crate) aborted: bool,
}

/// The checker.
pub(crate) struct Watch {
    pub(crate) generations: BTreeMap<(RequestId, u32), Generation>,
    /// Votes neither ended nor cancelled.
    pub(crate) votes: BTreeMap<VoteId, SampleId>,
    /// The attempt that a session's environment works on.
    pub(crate) environments: BTreeMap<SessionId, u32>,
    pub(crate) step: Option<StepId>,
    /// The newest publication.
    pub(crate) publication: Option<PublicationId>,
    /// Its export is under way.
    pub(crate) saving: bool,
    pub(crate) loads: BTreeMap<(PublicationId, ReplicaId), u32>,
    pub(crate) replies: BTreeMap<RequestId, Reply>,
    /// What each replica holds, as the world sees it.
    pub(crate) held_weights: BTreeMap<ReplicaId, u32>,
    /// The run was ended by the core.
    pub(crate) failed: bool,
    decisions: BTreeMap<RequestId, Decision>,
    /// The session of each request; none of one whose identity came twice.
    sessions: BTreeMap<RequestId, Option<SessionId>>,
    /// Versions of the tokens that an aborted request has.
    carried: BTreeMap<RequestId, Vec<u32>>,
    /// The session of each sample.
    trajectories: BTreeMap<SampleId, SessionId>,
    trained: BTreeSet<SampleId>,
    discarded: BTreeSet<SampleId>,
    votes_seen: BTreeSet<VoteId>,
    next_sample: u64,
    learner: u32,
    config: Config,
    widest_bound: u32,
    reconfigured: bool,
    mixes: bool,
    /// Samples that went on from the tokens of an aborted attempt.
    resumed: BTreeSet<SampleId>,
    paused: bool,
    /// The last request came with the identity of one that is being generated.
    reused: bool,
    /// Ticks in a row that left something due.
    idle_ticks: u32,
    /// Samples in the rollout queue, in the output queue, and in training.
    lengths: (u32, u32, u32),
}

impl Watch {
    pub(crate) fn new(config: Config) -> Watch {
        Watch {
            generations: BTreeMap::new(),
            votes: BTreeMap::new(),
            environments: BTreeMap::new(),
            step: None,
            publication: None,
            saving: false,
            loads: BTreeMap::new(),
            replies: BTreeMap::new(),
            held_weights: BTreeMap::new(),
            failed: false,
            decisions: BTreeMap::new(),
            sessions: BTreeMap::new(),
            carried: BTreeMap::new(),
            trajectories: BTreeMap::new(),
            trained: BTreeSet::new(),
            discarded: BTreeSet::new(),
            votes_seen: BTreeSet::new(),
            next_sample: 0,
            learner: 0,
            widest_bound: widest(&config),
            mixes: mixes(&config),
            config,
            reconfigured: false,
            resumed: BTreeSet::new(),
            paused: false,
            reused: false,
            idle_ticks: 0,
            lengths: (0, 0, 0),
        }
    }

    pub(crate) fn decision(&self, request: RequestId) -> Decision {
        self.decisions.get(&request).copied().unwrap_or(Decision::Unknown)
    }

    /// The newest attempt of a request that is under way.
    pub(crate) fn attempt(&self, request: RequestId) -> Option<u32> {
        let range = (request, 0)..=(request, u32::MAX);
        self.generations.range(range).next_back().map(|((_, attempt), _)| *attempt)
    }

    /// The requests that are being generated and shall be.
    pub(crate) fn running(&self) -> impl Iterator<Item = RequestId> + '_ {
        let wanted = self.generations.iter().filter(|(_, generation)| !generation.aborted);
        wanted.map(|((request, _), _)| *request)
    }

    pub(crate) fn generation(&self, request: RequestId, attempt: u32) -> &Generation {
        &self.generations[&(request, attempt)]
    }

    /// The newest publication that a replica is told to load and has not.
    pub(crate) fn load_of(&self, replica: ReplicaId) -> Option<PublicationId> {
        self.loads.keys().rev().find(|(_, of)| *of == replica).map(|(publication, _)| *publication)
    }

    /// A replica that has something to load.
    pub(crate) fn loading(&self) -> Option<ReplicaId> {
        self.loads.keys().next_back().map(|(_, replica)| *replica)
    }

    /// Books an input before the core sees it.
    pub(crate) fn on_input(&mut self, input: &Input) {
        match input {
            Input::Request(request) => {
                let reused = self.running().any(|running| running == request.request);
                self.reused = reused;
                let session = Some(request.session);
                let known = self.sessions.entry(request.request);
                known.and_modify(|session| *session = None).or_insert(session);
            }
            Input::GenerationEnded { request, attempt, segments, .. } => {
                let met = segments.iter().map(|segment| segment.version.number()).collect();
                if self.generations.remove(&(*request, *attempt)).is_some() {
                    self.carried.insert(*request, met);
                }
            }
            Input::VoteEnded { vote, .. } => {
                self.votes.remove(vote);
            }
            Input::EnvironmentEnded { session, attempt, .. }
                if self.environments.get(session) == Some(attempt) =>
            {
                self.environments.remove(session);
            }
            Input::StepEnded { step, .. } if self.step == Some(*step) => self.step = None,
            Input::Weights { publication, event } => self.on_weights(*publication, *event),
            Input::ReplicaUp { replica, deploy } => {
                self.held_weights.insert(*replica, deploy.number());
            }
            Input::ReplicaDown { replica } => self.lose(*replica),
            Input::Operator(Operator::Pause) => self.paused = true,
            Input::Operator(Operator::Resume) => self.paused = false,
            _ => {}
        }
    }

    fn lose(&mut self, replica: ReplicaId) {
        self.generations.retain(|_, generation| generation.replica != replica);
        self.loads.retain(|(_, of), _| *of != replica);
    }

    fn on_weights(&mut self, publication: PublicationId, event: WeightsEvent) {
        match event {
            WeightsEvent::Saved | WeightsEvent::SaveFailed => {
                self.saving &= self.publication != Some(publication);
            }
            WeightsEvent::Transferred(_) => {}
            WeightsEvent::Loaded(replica) => {
                if let Some(version) = self.loads.remove(&(publication, replica)) {
                    self.held_weights.insert(replica, version);
                    let here = self.generations.values_mut().filter(|g| g.replica == replica);
                    for generation in here.filter(|g| g.versions.last() != Some(&version)) {
                        generation.versions.push(version);
                    }
                }
            }
            WeightsEvent::TransferFailed(replica) => {
                self.loads.remove(&(publication, replica));
            }
            WeightsEvent::LoadFailed { replica, intact } => {
                if self.loads.remove(&(publication, replica)).is_some() && !intact {
                    self.generations.retain(|_, generation| generation.replica != replica);
                }
            }
        }
    }

    /// Books the actions of an input, and checks them and the core.
    pub(crate) fn after(&mut self, now: Time, input: &Input, actions: &[Action], core: &Scheduler) {
        if core.config() != &self.config {
            self.reconfigured = true;
            self.config = core.config().clone();
            self.widest_bound = self.widest_bound.max(widest(&self.config));
            self.mixes |= mixes(&self.config);
        }
        for action in actions {
            self.on_action(now, action, core);
        }
        self.check_answered(input, actions);
        self.check_resolved(actions, core);
        self.check_core(core);
        let overdue = core.poll_timeout().is_some_and(|due| due <= now);
        self.idle_ticks =
            if matches!(input, Input::Tick) && overdue { self.idle_ticks + 1 } else { 0 };
        assert!(self.idle_ticks < 3, "ticks do not end what is due at {now}");
    }

    fn on_action(&mut self, now: Time, action: &Action, core: &Scheduler) {
        match *action {
            Action::StartGeneration { request, attempt, replica, sample, resume } => {
                if let (1, Some(sample)) = (attempt, sample) {
                    self.becomes(request, sample);
                }
                self.started(now, (request, attempt), replica, sample, resume);
            }
            Action::AbortGeneration { request, attempt, replica } => {
                let generation = self.generations.get_mut(&(request, attempt));
                let generation = generation.expect("aborted what is not running");
                assert!(!generation.aborted, "{request} is aborted twice");
                assert_eq!(generation.replica, replica);
                generation.aborted = true;
            }
            Action::Refuse { request, reason, retry_after } => {
                assert!(retry_after <= Span::from_secs(60), "Retry-After of {retry_after}");
                self.check_refusal(reason, core);
                self.decide(request, Decision::Refused(reason));
            }
            Action::Hold { request } => self.decide(request, Decision::Held),
            Action::Reply { request, reply } => {
                let started = matches!(self.decision(request), Decision::Started { .. });
                assert!(started, "{request} gets a reply and was never started");
                let before = self.replies.insert(request, reply);
                assert_eq!(before, None, "{request} gets two replies");
            }
            Action::ResetEnvironment { session, attempt }
            | Action::StepEnvironment { session, attempt } => {
                let before = self.environments.insert(session, attempt);
                assert!(before.is_none(), "the environment of {session} is at work already");
            }
            Action::CancelEnvironment { session, attempt } => {
                let at_work = self.environments.remove(&session);
                assert_eq!(at_work, Some(attempt), "cancelled what is not at work");
            }
            Action::EndSession { session } => {
                self.environments.remove(&session);
            }
            Action::StartVote { vote, sample } => {
                assert!(self.votes_seen.insert(vote), "{vote} starts twice");
                assert!(sample.0 < self.next_sample, "a vote on an unknown sample");
                self.votes.insert(vote, sample);
            }
            Action::CancelVote { vote } => {
                assert!(self.votes.remove(&vote).is_some(), "{vote} is not under way");
            }
            Action::StartStep { step, learner, samples } => {
                self.step = Some(step);
                assert_eq!(learner, core.learner(), "a step starts from another version");
                assert_eq!(samples as usize, core.batch().count(), "the batch has another size");
                self.check_batch(core);
            }
            Action::CancelStep { step } => {
                assert_eq!(self.step.take(), Some(step), "cancels a step that is not training");
            }
            Action::Publish { publication, version } => {
                assert!(version <= core.learner(), "publishes what does not exist");
                assert!(self.publication < Some(publication), "a publication id comes twice");
                (self.publication, self.saving) = (Some(publication), true);
            }
            Action::Load { publication, replica, version, in_flight, .. } => {
                assert_eq!(self.publication, Some(publication), "loads an old publication");
                let old = self.loads.insert((publication, replica), version.number());
                assert!(old.is_none(), "{replica} is told to load twice");
                let mut here = self.generations.values().filter(|g| g.replica == replica);
                let drained = here.all(|generation| generation.aborted);
                assert!(in_flight != InFlight::Drained || drained, "{replica} is not drained");
            }
            Action::CancelLoad { publication, replica } => {
                let under_way = self.loads.remove(&(publication, replica));
                assert!(under_way.is_some(), "{replica} loads nothing");
                if !core.replica(replica).is_some_and(|view| view.up) {
                    self.lose(replica);
                }
            }
            Action::Discard { sample, .. } => {
                assert!(self.discarded.insert(sample), "{sample} is discarded twice");
            }
            Action::OperatorReply { .. } => {}
            Action::Fail { .. } => {
                assert!(!self.failed, "the run ends twice");
                self.failed = true;
            }
        }
    }

    /// A request becomes a sample, or goes on with its session's.
    fn becomes(&mut self, request: RequestId, sample: SampleId) {
        let session = self.sessions.get(&request).copied().flatten();
        let of = self.trajectories.get(&sample).copied();
        if self.unit() == SampleUnit::Turn || of.is_none() {
            assert_eq!(sample.0, self.next_sample, "sample ids are admission ordinals");
            self.next_sample += 1;
            self.trajectories.extend(session.map(|session| (sample, session)));
        } else if session.is_some() {
            assert_eq!(of, session, "a turn goes on with another session's trajectory");
        }
    }

    pub(super) fn unit(&self) -> SampleUnit {
        self.config.policy_training.sample_unit
    }

    fn started(
        &mut self,
        now: Time,
        (request, attempt): (RequestId, u32),
        replica: ReplicaId,
        sample: Option<SampleId>,
        resume: bool,
    ) {
        if attempt > 1 {
            let Decision::Started { sample: before, .. } = self.decision(request) else {
                panic!("attempt {attempt} of {request}, which never started");
            };
            // A turn whose sample was discarded may still be served.
            let dropped = before.is_some_and(|before| self.discarded.contains(&before));
            assert!(before == sample || dropped, "another attempt is another sample");
        }
        let mut versions = if resume {
            self.carried.get(&request).cloned().unwrap_or_default()
        } else {
            Vec::new()
        };
        if let (true, Some(sample)) = (resume, sample) {
            let aborted = self.config.policy_serving.aborted;
            let may = matches!(aborted, Aborted::Resume | Aborted::Restart) || self.reconfigured;
            assert!(may, "{request} resumes under {aborted:?}");
            self.resumed.insert(sample);
        }
        let held = *self.held_weights.get(&replica).expect("starts on an unknown replica");
        if versions.last() != Some(&held) {
            versions.push(held);
        }
        let generation = Generation { replica, started: now, versions, aborted: false };
        let before = self.generations.insert((request, attempt), generation);
        assert!(before.is_none(), "attempt {attempt} of {request} starts twice");
        self.decide(request, Decision::Started { replica, sample });
    }

    fn decide(&mut self, request: RequestId, decision: Decision) {
        let before = self.decisions.insert(request, decision);
        let fine = match before {
            None | Some(Decision::Held) => decision != Decision::Held || before.is_none(),
            Some(Decision::Started { .. }) => true,
            _ => false,
        };
        assert!(fine, "{request}: {decision:?} after {before:?}");
    }
}

/// The largest bound that may come into force.
fn widest(config: &Config) -> u32 {
    let bound = config.bound_versions();
    if config.adaptive.is_on() { bound.max(config.adaptive.max) } else { bound }
}

/// Whether a turn may meet several versions without being aborted.
fn mixes(config: &Config) -> bool {
    matches!(config.policy_serving.sync_mode, SyncMode::InFlight | SyncMode::PauseKeep)
}

//! A small world for unit tests: answers the core's actions in an order that a list of bytes sets.

use crate::action::Action;
use crate::config::Config;
use crate::core::Scheduler;
use crate::id::{ReplicaId, RequestId, SessionId};
use crate::input::{
    Finish, Input, Operator, Request, Segment, Segments, TurnType, VoteOutcome, WeightsEvent,
};
use crate::time::{Span, Time};
use crate::version::{DeployVersion, RolloutVersion};

const REPLICAS: u32 = 2;

/// Work that the core has started.
#[derive(Clone, Debug)]
struct Work {
    action: Action,
    /// What the replica of a generation held when it started.
    version: u32,
    aborted: bool,
    transferred: bool,
}

/// What happens next: which kind of thing, which of them, and after how many milliseconds.
pub(crate) type Choice = (u8, u8, u16);

/// Feeds a [`Scheduler`] and answers it.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) scheduler: Scheduler,
    pub(crate) now: Time,
    work: Vec<Work>,
    segments: Vec<Segments>,
}

impl World {
    pub(crate) fn new(config: &Config) -> Self {
        let scheduler = Scheduler::new(config.clone());
        Self { scheduler, now: Time::ZERO, work: Vec::new(), segments: Vec::new() }
    }

    /// The inputs that bring the replicas up.
    pub(crate) fn start() -> impl Iterator<Item = Input> {
        let deploy = DeployVersion::new(0);
        (0..REPLICAS).map(move |replica| Input::ReplicaUp { replica: ReplicaId(replica), deploy })
    }

    /// Handles an input, and gives its actions.
    pub(crate) fn handle(&mut self, input: &Input) -> Vec<Action> {
        self.scheduler.handle(self.now, input);
        let actions: Vec<_> = std::iter::from_fn(|| self.scheduler.poll_action()).collect();
        for &action in &actions {
            self.take(action);
        }
        if let Input::ReplicaDown { replica } = input {
            self.work.retain(|work| !runs_on(&work.action, *replica));
        }
        actions
    }

    fn take(&mut self, action: Action) {
        let mut version = 0;
        match action {
            Action::AbortGeneration { request, .. } => {
                let mut running = self.work.iter_mut();
                let same = |work: &&mut Work| matches!(work.action, Action::StartGeneration { request: other, .. } if other == request);
                if let Some(work) = running.find(same) {
                    work.aborted = true;
                }
                return;
            }
            Action::StartGeneration { replica, .. } => {
                let replica = self.scheduler.replica(replica);
                version = replica.map_or(0, |replica| replica.deploy.number());
            }
            Action::StartVote { .. }
            | Action::StartStep { .. }
            | Action::Publish { .. }
            | Action::Load { .. } => {}
            _ => return,
        }
        self.work.push(Work { action, version, aborted: false, transferred: false });
    }

    /// The next input, at a time that it sets.
    pub(crate) fn next(&mut self, (kind, which, millis): Choice) -> Input {
        self.now += Span::from_millis(millis.into());
        match kind % 8 {
            0 | 1 => self.request(which),
            2 => self.surprise(which),
            _ if self.work.is_empty() => Input::Tick,
            _ => self.answer(which),
        }
    }

    fn request(&mut self, which: u8) -> Input {
        let request = RequestId(self.segments.len() as u64);
        self.segments.push(Segments::new());
        Input::Request(Request {
            request,
            session: SessionId(u64::from(which % 6)),
            group: None,
            turn: if which.is_multiple_of(5) { TurnType::Side } else { TurnType::Main },
            prompt_tokens: 10,
            streamed: which.is_multiple_of(2),
            last: which.is_multiple_of(9),
        })
    }

    fn surprise(&self, which: u8) -> Input {
        let session = SessionId(u64::from(which / 8 % 6));
        let replica = ReplicaId(u32::from(which / 8) % REPLICAS);
        let recent = (self.segments.len() as u64).saturating_sub(u64::from(which / 8 % 4));
        match which % 8 {
            0 => Input::ClientLeft { request: RequestId(recent) },
            1 => Input::SessionEnded { session },
            2 => Input::ReplicaDown { replica },
            3 | 4 => {
                let learner = self.scheduler.learner();
                Input::ReplicaUp { replica, deploy: DeployVersion::of(learner) }
            }
            5 => {
                let mut config = self.scheduler.config().clone();
                config.policy_training.max_head_off_policyness = u32::from(which / 64);
                Input::Operator(Operator::Reconfigure(Box::new(config)))
            }
            6 => Input::NextState { session },
            _ => Input::Tick,
        }
    }

    fn answer(&mut self, which: u8) -> Input {
        let index = usize::from(which) % self.work.len();
        if let Action::Load { publication, replica, .. } = self.work[index].action
            && !std::mem::replace(&mut self.work[index].transferred, true)
        {
            return Input::Weights { publication, event: WeightsEvent::Transferred(replica) };
        }
        let Work { action, version, aborted, .. } = self.work.remove(index);
        let fails = which.is_multiple_of(13);
        match action {
            Action::StartGeneration { request, attempt, resume, .. } => {
                let finish = match (aborted, fails) {
                    (true, _) => Finish::Aborted,
                    (false, true) => Finish::Failed,
                    (false, false) => Finish::Stop,
                };
                let segments = self.generate(request, version, u32::from(which) + 1, resume);
                let first_token = Some(self.now);
                Input::GenerationEnded { request, attempt, finish, first_token, segments }
            }
            Action::StartVote { vote, .. } => {
                let score = i32::from(which % 3) * 500_000;
                let outcome = if fails { VoteOutcome::Failed } else { VoteOutcome::Score(score) };
                Input::VoteEnded { vote, outcome, tokens: which.into(), judge_version: 0 }
            }
            Action::StartStep { step, .. } => Input::StepEnded { step, ok: !fails },
            Action::Publish { publication, .. } => {
                let event = if fails { WeightsEvent::SaveFailed } else { WeightsEvent::Saved };
                Input::Weights { publication, event }
            }
            Action::Load { publication, replica, .. } => {
                Input::Weights { publication, event: WeightsEvent::Loaded(replica) }
            }
            _ => Input::Tick,
        }
    }

    /// What a request's attempt has generated, with what it goes on from.
    fn generate(
        &mut self,
        request: RequestId,
        version: u32,
        tokens: u32,
        resume: bool,
    ) -> Segments {
        let segments = &mut self.segments[request.0 as usize];
        if !resume {
            segments.clear();
        }
        let version = RolloutVersion::new(version);
        match segments.last_mut() {
            Some(last) if last.version == version => last.tokens += tokens,
            _ => segments.push(Segment { version, tokens }),
        }
        segments.clone()
    }
}

fn runs_on(action: &Action, down: ReplicaId) -> bool {
    match action {
        Action::StartGeneration { replica, .. } | Action::Load { replica, .. } => *replica == down,
        _ => false,
    }
}

//! A scheduler driven by hand.

use headway_shared::action::{Action, Discard, Refusal, Reply};
use headway_shared::config::Config;
use headway_shared::core::{Fate, Sample, Scheduler};
use headway_shared::id::{GroupId, RequestId, SampleId, SessionId};
use headway_shared::input::{Finish, Input, Request, TurnType};
use headway_shared::time::{Span, Time};

use super::{Decision, R0, Watch, small, spread};

/// A main request, in no group.
pub(crate) fn main_request(id: u64, session: u64) -> Request {
    Request {
        request: RequestId(id),
        session: SessionId(session),
        group: None,
        turn: TurnType::Main,
        prompt_tokens: 10,
        streamed: false,
        last: false,
    }
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
    /// The length of `log` after each input.
    ends: Vec<usize>,
    next_id: u64,
}

impl Drop for Bench {
    /// A test that fails shows what happened last.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let from = self.record.len().saturating_sub(60);
            for (index, (now, input)) in self.record.iter().enumerate().skip(from) {
                let start = if index == 0 { 0 } else { self.ends[index - 1] };
                println!("{now} {input:?} -> {:?}", &self.log[start..self.ends[index]]);
            }
        }
    }
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
            ends: Vec::new(),
            next_id: 1000,
        }
    }

    /// Gives one input, drains the actions, checks everything.
    pub(crate) fn give(&mut self, input: Input) {
        self.core.handle(self.now, &input);
        self.last.clear();
        while let Some(action) = self.core.poll_action() {
            self.last.push(action);
            assert!(self.last.len() < 100_000, "one input causes actions without end");
        }
        self.log.extend_from_slice(&self.last);
        self.ends.push(self.log.len());
        self.record.push((self.now, input));
        let (now, input) = &self.record[self.record.len() - 1];
        let watched = self.watch.observe(*now, input, &self.last, &self.core);
        watched.unwrap_or_else(|what| panic!("{what}"));
        for resolved in self.core.resolved() {
            match resolved.fate {
                Fate::Trained => self.trained.push(resolved.sample.clone()),
                Fate::Discarded(reason) => self.discarded.push((resolved.sample.id, reason)),
            }
        }
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

    pub(crate) fn fresh(&mut self) -> u64 {
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
        let mut request = main_request(self.fresh(), session);
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
        let generation = &self.watch.generations[&(request, attempt)];
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
}

//! A small random world: answers actions after delays, and lets clients come and go.

mod clients;

use std::collections::BTreeMap;

use headway_shared::action::Action;
use headway_shared::config::{Config, SampleUnit};
use headway_shared::digest::mix;
use headway_shared::id::{PublicationId, ReplicaId, RequestId, SessionId, StepId};
use headway_shared::input::{Finish, Input, Measured, VoteOutcome, WeightsEvent};
use headway_shared::time::{Span, Time};
use headway_shared::version::DeployVersion;

use super::{BAD, Bench, Delay, GOOD, Plan, ZERO, spread};

/// A session and where it is.
#[derive(Clone, Copy, Debug)]
struct Client {
    session: u64,
    turn: u32,
    request: Option<RequestId>,
}

#[derive(Clone, Debug)]
enum Event {
    Give(Input),
    Generated(RequestId, u32, Finish),
    Transferred(PublicationId, ReplicaId),
    /// A client does what comes next in its session.
    Act(usize, u64),
    /// The session's last turn is read: its next state, and its end.
    Leave(usize, u64),
    Revive(ReplicaId),
}

/// A bench whose actions are answered.
pub(crate) struct World {
    pub(crate) bench: Bench,
    plan: Plan,
    events: BTreeMap<(Time, u64), Event>,
    sequence: u64,
    draws: u64,
    clients: Vec<Client>,
    of_session: BTreeMap<u64, usize>,
    of_request: BTreeMap<RequestId, usize>,
    sessions: u64,
    requests: u64,
}

impl World {
    pub(crate) fn new(config: Config, mut plan: Plan) -> World {
        let grouped = config.policy_training.group_size > 1;
        if grouped && config.policy_training.sample_unit == SampleUnit::Turn {
            // A session that is turned away would be missed by the groups of its later turns.
            plan.turns = 1;
        }
        let mut world = World {
            bench: Bench::bare(config),
            events: BTreeMap::new(),
            sequence: 0,
            draws: 0,
            clients: Vec::new(),
            of_session: BTreeMap::new(),
            of_request: BTreeMap::new(),
            sessions: 0,
            requests: 0,
            plan,
        };
        for replica in 0..world.plan.replicas {
            world.bench.replica_up(ReplicaId(replica), 0);
        }
        for client in 0..world.plan.clients as usize {
            world.clients.push(Client { session: 0, turn: 0, request: None });
            world.new_session(client);
        }
        world
    }

    /// Runs until the plan's limits, or until nothing happens any more.
    pub(crate) fn run(&mut self) {
        while self.bench.record.len() < self.plan.inputs
            && self.bench.learner() < self.plan.steps
            && !self.bench.watch.failed
            && self.turn()
        {}
    }

    /// The next event or timer; false if there is none.
    pub(crate) fn turn(&mut self) -> bool {
        let event = self.events.first_key_value().map(|(key, _)| *key);
        let due = self.bench.core.poll_timeout();
        match (event, due) {
            (None, None) => return false,
            (Some(key), due) if due.is_none_or(|due| due >= key.0) => {
                let event = self.events.remove(&key).expect("it was there");
                self.bench.now = self.bench.now.max(key.0);
                self.happen(event);
            }
            (_, Some(due)) => {
                self.bench.now = self.bench.now.max(due);
                self.give(Input::Tick);
            }
            (Some(_), None) => unreachable!("an event without a timer is taken above"),
        }
        true
    }

    fn draw(&mut self, below: u32) -> u32 {
        self.draws += 1;
        let word = mix(self.plan.seed ^ mix(self.draws));
        (word % u64::from(below.max(1))) as u32
    }

    fn percent(&mut self, chance: u32) -> bool {
        chance > 0 && self.draw(100) < chance
    }

    fn wait(&mut self, delay: Delay) -> Span {
        let tenths = delay.least + self.draw(delay.most - delay.least + 1);
        Span::from_millis(u64::from(tenths) * 100)
    }

    fn after(&mut self, span: Span, event: Event) {
        self.sequence += 1;
        self.events.insert((self.bench.now + span, self.sequence), event);
    }

    /// An answer, which may be lost or come twice.
    fn answer(&mut self, delay: Delay, event: Event) {
        if self.percent(self.plan.faults.lost) {
            return;
        }
        let span = self.wait(delay);
        if self.percent(self.plan.faults.twice) {
            let again = span + self.wait(delay);
            self.after(again, event.clone());
        }
        self.after(span, event);
    }

    /// Gives an input and answers what it causes.
    pub(crate) fn give(&mut self, input: Input) {
        let trained = match input {
            Input::StepEnded { step, ok: true } => Some(step),
            _ => None,
        };
        self.bench.give(input);
        for action in self.bench.last.clone() {
            self.react(action);
        }
        if let Some(step) = trained.filter(|_| self.bench.core.config().adaptive.is_on()) {
            self.measure(step);
        }
    }

    /// The trainer says what it measured: anything, and sometimes nothing.
    fn measure(&mut self, step: StepId) {
        let value = self.draw(100_000);
        let number = (!value.is_multiple_of(8)).then_some(value);
        let measured =
            Measured { step, logprob_abs_diff: number, clipped_fraction: number, ess: number };
        self.answer(Delay { least: 0, most: 1 }, Event::Give(Input::Measured(measured)));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Give(input) => {
                let ready = self.environment_of(&input);
                self.give(input);
                if let Some((session, outcome)) = ready {
                    self.on_environment(session, outcome);
                }
            }
            Event::Generated(request, attempt, finish) => self.generated(request, attempt, finish),
            Event::Transferred(publication, replica) => {
                let event = WeightsEvent::Transferred(replica);
                self.give(Input::Weights { publication, event });
            }
            Event::Act(client, session) if self.clients[client].session == session => {
                self.ask(client);
            }
            Event::Leave(client, session) if self.clients[client].session == session => {
                let session = SessionId(session);
                self.give(Input::NextState { session });
                self.give(Input::SessionEnded { session });
                self.replace(client, session.0);
            }
            Event::Act(..) | Event::Leave(..) => {}
            Event::Revive(replica) => {
                let deploy = DeployVersion::new(self.bench.learner());
                self.give(Input::ReplicaUp { replica, deploy });
            }
        }
    }

    // Serving.

    fn generated(&mut self, request: RequestId, attempt: u32, finish: Finish) {
        let Some(generation) = self.bench.watch.generations.get(&(request, attempt)) else {
            if self.plan.faults.twice == 0 {
                return;
            }
            // It ended before; an engine that answers twice says something again.
            let segments = spread(&[0], 4);
            self.give(Input::GenerationEnded {
                request,
                attempt,
                finish,
                first_token: Some(Time::ZERO),
                segments,
            });
            return;
        };
        let met = generation.versions.clone();
        let started = generation.started;
        let aborted_early = finish == Finish::Aborted && self.draw(3) == 0;
        let tokens = if aborted_early { 0 } else { met.len() as u32 + self.draw(20) };
        let waited = self.bench.now.since(started).as_nanos();
        let first = started + Span::from_nanos(waited / 4);
        self.give(Input::GenerationEnded {
            request,
            attempt,
            finish,
            first_token: (tokens > 0).then_some(first),
            segments: spread(&met, tokens),
        });
    }

    fn react(&mut self, action: Action) {
        let faults = self.plan.faults;
        match action {
            Action::StartGeneration { request, attempt, replica, .. } => {
                let failed = self.percent(faults.generation);
                let finish = if failed { Finish::Failed } else { Finish::Stop };
                self.answer(self.plan.generate, Event::Generated(request, attempt, finish));
                if self.percent(faults.replica) {
                    let span = self.wait(self.plan.generate);
                    self.after(span, Event::Give(Input::ReplicaDown { replica }));
                    self.after(span + Span::from_secs(5), Event::Revive(replica));
                }
            }
            Action::AbortGeneration { request, attempt, .. } => {
                let event = Event::Generated(request, attempt, Finish::Aborted);
                self.answer(Delay { least: 0, most: 3 }, event);
            }
            Action::Refuse { request, reason, retry_after } => {
                self.on_refusal(request, reason, retry_after);
            }
            Action::Reply { request, reply } => self.on_reply(request, reply),
            Action::ResetEnvironment { session, attempt } => {
                self.environment_answers(session, attempt, false);
            }
            Action::StepEnvironment { session, attempt } => {
                self.environment_answers(session, attempt, true);
            }
            Action::EndSession { session } => {
                if let Some(client) = self.of_session.get(&session.0).copied() {
                    self.replace(client, session.0);
                }
            }
            Action::StartVote { vote, .. } => {
                let outcome = self.opinion();
                let input = Input::VoteEnded { vote, outcome, tokens: 30, judge_version: 0 };
                self.answer(self.plan.vote, Event::Give(input));
            }
            Action::StartStep { step, .. } => {
                let ok = !self.percent(faults.step);
                self.answer(self.plan.train, Event::Give(Input::StepEnded { step, ok }));
            }
            Action::Publish { publication, .. } => {
                let failed = self.percent(faults.weights);
                let event = if failed { WeightsEvent::SaveFailed } else { WeightsEvent::Saved };
                let input = Input::Weights { publication, event };
                self.answer(self.plan.weights, Event::Give(input));
            }
            Action::Load { publication, replica, .. } => {
                self.load(publication, replica);
            }
            _ => {}
        }
    }

    fn opinion(&mut self) -> VoteOutcome {
        if self.percent(self.plan.faults.vote) {
            return if self.draw(2) == 0 { VoteOutcome::Failed } else { VoteOutcome::Invalid };
        }
        if self.plan.zeros == 0 {
            return VoteOutcome::Score(GOOD);
        }
        if self.percent(self.plan.zeros) {
            return VoteOutcome::Score(ZERO);
        }
        VoteOutcome::Score(if self.draw(3) == 0 { BAD } else { GOOD })
    }

    fn load(&mut self, publication: PublicationId, replica: ReplicaId) {
        let fetch = self.wait(self.plan.weights);
        if self.percent(self.plan.faults.weights) {
            let event = WeightsEvent::TransferFailed(replica);
            self.after(fetch, Event::Give(Input::Weights { publication, event }));
            return;
        }
        self.after(fetch, Event::Transferred(publication, replica));
        let event = if self.percent(self.plan.faults.weights) {
            WeightsEvent::LoadFailed { replica, intact: self.draw(2) == 0 }
        } else {
            WeightsEvent::Loaded(replica)
        };
        if !self.percent(self.plan.faults.lost) {
            let loaded = fetch + self.wait(self.plan.weights);
            self.after(loaded, Event::Give(Input::Weights { publication, event }));
        }
    }
}

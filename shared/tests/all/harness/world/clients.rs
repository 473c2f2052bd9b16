//! Clients that ask, wait, come back and leave, and the environments of their sessions.

use headway_shared::action::{Refusal, Reply};
use headway_shared::config::{JudgeNeeds, SampleUnit};
use headway_shared::id::{GroupId, RequestId, SessionId};
use headway_shared::input::{EnvironmentOutcome, Input, Request, TurnType};
use headway_shared::time::Span;

use super::{Client, Event, World};

impl World {
    pub(super) fn new_session(&mut self, client: usize) {
        self.sessions += 1;
        let session = self.sessions;
        self.clients[client] = Client { session, turn: 0, request: None };
        self.of_session.insert(session, client);
        if self.plan.environments {
            self.give(Input::SessionStarted { session: SessionId(session) });
        } else {
            let think = self.wait(self.plan.think);
            self.after(think, Event::Act(client, session));
        }
    }

    /// A new session, unless the core has ended the old one already.
    pub(super) fn replace(&mut self, client: usize, session: u64) {
        if self.clients[client].session == session {
            self.new_session(client);
        }
    }

    pub(super) fn ask(&mut self, client: usize) {
        let Client { session, turn, .. } = self.clients[client];
        self.requests += 1;
        let training = &self.bench.core.config().policy_training;
        let grouped = training.group_size > 1;
        let per_group = u64::from(training.group_size);
        let group = grouped.then(|| {
            let first = (session - 1) / per_group;
            match training.sample_unit {
                SampleUnit::Turn => GroupId(first * u64::from(self.plan.turns) + u64::from(turn)),
                SampleUnit::Session => GroupId(first),
            }
        });
        let needs_nothing = self.bench.core.config().reward_judging.judge_needs == JudgeNeeds::Turn;
        let side = !grouped && self.percent(self.plan.side);
        let request = Request {
            request: RequestId(self.requests),
            session: SessionId(session),
            group,
            turn: if side { TurnType::Side } else { TurnType::Main },
            prompt_tokens: 5 + self.draw(50),
            streamed: self.percent(self.plan.streamed),
            last: !self.plan.environments && turn + 1 == self.plan.turns && needs_nothing,
        };
        self.clients[client].request = Some(request.request);
        self.of_request.insert(request.request, client);
        self.give(Input::Request(request));
        if self.percent(self.plan.faults.doubles) {
            // The same session asks for something else at once, and does not care what becomes of it.
            self.requests += 1;
            let request = Request { request: RequestId(self.requests), ..request };
            self.give(Input::Request(request));
        }
        if self.percent(self.plan.faults.client_leaves) {
            let left = Input::ClientLeft { request: request.request };
            let span = self.wait(self.plan.generate);
            self.after(span, Event::Give(left));
            // Whatever became of it, this client comes back as someone else.
            self.after(span + Span::from_secs(1), Event::Leave(client, session));
        }
    }

    fn client_of(&self, request: RequestId) -> Option<usize> {
        let client = *self.of_request.get(&request)?;
        (self.clients[client].request == Some(request)).then_some(client)
    }

    pub(super) fn on_refusal(&mut self, request: RequestId, reason: Refusal, retry_after: Span) {
        let Some(client) = self.client_of(request) else { return };
        let session = self.clients[client].session;
        if reason == Refusal::BadGroup {
            // Its group was given up meanwhile.
            self.after(Span::from_secs(1), Event::Leave(client, session));
            return;
        }
        let retry = retry_after.max(Span::from_secs(5));
        self.after(retry, Event::Act(client, session));
    }

    pub(super) fn on_reply(&mut self, request: RequestId, reply: Reply) {
        let Some(client) = self.client_of(request) else { return };
        let Client { session, turn, .. } = self.clients[client];
        self.clients[client].request = None;
        self.clients[client].turn += 1;
        let think = self.wait(self.plan.think);
        if reply == Reply::Failed && !self.plan.environments && self.draw(2) == 0 {
            // It asks again in the same session.
            self.clients[client].turn -= 1;
            self.after(think, Event::Act(client, session));
        } else if reply == Reply::Failed {
            self.give(Input::SessionEnded { session: SessionId(session) });
            self.replace(client, session);
        } else if self.plan.environments {
            // The environment steps, and tells when the next turn is due.
        } else if turn + 1 < self.plan.turns {
            self.after(think, Event::Act(client, session));
        } else {
            self.after(think, Event::Leave(client, session));
        }
    }

    // The environment.

    /// The session and outcome of an environment's answer, if it is still wanted.
    pub(super) fn environment_of(&self, input: &Input) -> Option<(u64, EnvironmentOutcome)> {
        let Input::EnvironmentEnded { session, attempt, outcome } = input else { return None };
        let wanted = self.bench.watch.environments.get(session) == Some(attempt);
        wanted.then_some((session.0, *outcome))
    }

    pub(super) fn on_environment(&mut self, session: u64, outcome: EnvironmentOutcome) {
        let Some(client) = self.of_session.get(&session).copied() else { return };
        if self.clients[client].session != session {
            return;
        }
        match outcome {
            EnvironmentOutcome::Ready => self.after(Span::ZERO, Event::Act(client, session)),
            EnvironmentOutcome::Done => self.replace(client, session),
            // The core tries again, or ends the session.
            EnvironmentOutcome::Failed => {}
        }
    }

    pub(super) fn environment_answers(&mut self, session: SessionId, attempt: u32, step: bool) {
        let turns = self.of_session.get(&session.0).map_or(0, |client| self.clients[*client].turn);
        let outcome = if self.percent(self.plan.faults.environment) {
            EnvironmentOutcome::Failed
        } else if step && turns + 1 >= self.plan.turns {
            EnvironmentOutcome::Done
        } else {
            EnvironmentOutcome::Ready
        };
        let input = Input::EnvironmentEnded { session, attempt, outcome };
        self.answer(self.plan.environment, Event::Give(input));
    }
}

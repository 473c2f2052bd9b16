//! Facts from outside, with the payloads that come along.

use headway_shared::id::{GroupId, PublicationId, ReplicaId, RequestId, SessionId, VoteId};
use headway_shared::input::{Finish, Input, Operator, Request, WeightsEvent};
use headway_shared::time::Time;

use super::Driver;
use super::measured::measured;
use super::message::{Arrival, Completion, Look, TurnEvent, Wish};
use super::narrator::Note;
use super::turn::Turn;
use crate::engine::{EngineCommand, EngineEvent, Token, segments};
use crate::judge::Verdict;
use crate::store::Row;
use crate::trainer::TrainerEvent;

impl Driver {
    /// Something that was started has come to an end, or goes on.
    pub(super) fn complete(&mut self, completion: Completion) {
        match completion {
            Completion::Committed(last) => self.committed(last),
            Completion::CommitFailed(why) => self.commit_failed(&why),
            _ if self.is_closed() => {}
            Completion::Engine(replica, event) => self.engine_said(replica, event),
            Completion::Trainer(event) => self.trainer_said(event),
            Completion::Vote(vote, verdict) => {
                let awaited = self.votes.remove(&vote).is_some();
                self.vote_ended(vote, verdict, awaited);
            }
        }
    }

    /// Someone wants something.
    pub(super) fn grant(&mut self, wish: Wish) {
        match wish {
            Wish::Arrival(arrival) => self.arrived(*arrival),
            Wish::SessionDone(name) => {
                if let Some(&session) = self.sessions.get(&name) {
                    self.feed(&Input::SessionEnded { session });
                    self.session_over(session);
                }
            }
            Wish::Operator(operator, asker) => {
                self.operators.push_back(Some(asker));
                self.feed(&Input::Operator(operator));
            }
            Wish::Reconfigure(reconfiguration) => self.reconfigure(*reconfiguration),
            Wish::InForce(asker) => drop(asker.send(self.in_force())),
            Wish::Summary(asker) => {
                let summary = self.observer.summary(self.clock.now(), &self.scheduler);
                let _ = asker.send(summary);
            }
            Wish::Look(asker) => {
                let _ = asker.send(Look {
                    summary: self.observer.summary(self.clock.now(), &self.scheduler),
                    state: self.scheduler.state(),
                    steps: self.narrator.steps().iter().cloned().collect(),
                });
            }
            Wish::Steps(asker) => {
                let _ = asker.send(self.narrator.steps().iter().cloned().collect());
            }
            Wish::Shutdown(within) => self.begin_shutdown(within),
        }
    }

    fn engine_said(&mut self, replica: ReplicaId, event: EngineEvent) {
        // It is down: what it was doing has ended with it, whatever it still says.
        if !self.engines.contains_key(&replica) {
            return;
        }
        let weights = |publication, event| Input::Weights { publication, event };
        match event {
            EngineEvent::Up { deploy } => self.feed(&Input::ReplicaUp { replica, deploy }),
            EngineEvent::Tokens { at, tokens } => {
                for (request, attempt, token) in tokens {
                    self.token(replica, request, attempt, token, at);
                }
            }
            EngineEvent::Ended { request, attempt, finish } => {
                self.generation_ended(replica, request, attempt, finish);
            }
            EngineEvent::Transferred { publication } => {
                self.feed(&weights(publication, WeightsEvent::Transferred(replica)));
            }
            EngineEvent::Loaded { publication } => {
                self.feed(&weights(publication, WeightsEvent::Loaded(replica)));
            }
            EngineEvent::LoadFailed { publication, intact } => {
                let event = WeightsEvent::LoadFailed { replica, intact };
                self.feed(&weights(publication, event));
            }
            EngineEvent::Lost => self.replica_down(replica),
            EngineEvent::Down => {
                self.engines.remove(&replica);
                self.replica_down(replica);
            }
        }
    }

    fn token(
        &mut self,
        replica: ReplicaId,
        request: RequestId,
        attempt: u32,
        token: Token,
        at: Time,
    ) {
        let turn = self.turns.get_mut(&request);
        let here = |turn: &&mut Turn| turn.attempt == attempt && turn.replica == Some(replica);
        let Some(turn) = turn.filter(here) else { return self.strays += 1 };
        let possible = token.logprob.is_finite() && token.logprob <= 0.0;
        if !possible || turn.tokens.len() >= turn.sampling.max_tokens as usize {
            return self.engine_broke_its_word(replica, request, attempt);
        }
        turn.tokens.push(token);
        turn.first_token.get_or_insert(at);
        if turn.streamed
            && let Some(events) = &turn.events
        {
            // Who does not read is noticed by the gateway.
            let _ = events.send(TurnEvent::Tokens(vec![token]));
        }
    }

    /// A token that cannot be: its turn has failed, and whatever the engine still makes of it is
    /// not listened to.
    fn engine_broke_its_word(&mut self, replica: ReplicaId, request: RequestId, attempt: u32) {
        self.tell(replica, EngineCommand::Abort { request, attempt });
        self.generation_ended(replica, request, attempt, Finish::Failed);
    }

    fn generation_ended(
        &mut self,
        replica: ReplicaId,
        request: RequestId,
        attempt: u32,
        finish: Finish,
    ) {
        let turn = self.turns.get_mut(&request);
        let here = |turn: &&mut Turn| turn.attempt == attempt && turn.replica == Some(replica);
        // What its replica was not asked for, or has ended with the run, ends nothing.
        let Some(turn) = turn.filter(here) else { return self.strays += 1 };
        (turn.replica, turn.finish) = (None, finish);
        let (first_token, segments) = (turn.first_token, segments(&turn.tokens));
        self.feed(&Input::GenerationEnded { request, attempt, finish, first_token, segments });
        self.forget_if_over(request);
    }

    /// An answered turn that runs no more is forgotten.
    fn forget_if_over(&mut self, request: RequestId) {
        let over = |turn: &Turn| turn.events.is_none() && turn.replica.is_none();
        if self.turns.get(&request).is_some_and(over) {
            self.turns.remove(&request);
        }
    }

    fn replica_down(&mut self, replica: ReplicaId) {
        for turn in self.turns.values_mut() {
            if turn.replica == Some(replica) {
                turn.replica = None;
            }
        }
        self.feed(&Input::ReplicaDown { replica });
        self.turns.retain(|_, turn| turn.events.is_some() || turn.replica.is_some());
    }

    fn trainer_said(&mut self, event: TrainerEvent) {
        let weights = |publication, event| Input::Weights { publication, event };
        match event {
            // The start has seen the first; a cancelled step ends with another.
            TrainerEvent::Up { .. } => {}
            TrainerEvent::StepEnded { step, ok, metrics } => {
                let follows = ok && self.scheduler.config().adaptive.is_on();
                let measured = follows.then(|| measured(step, &metrics));
                self.metrics = metrics;
                self.feed(&Input::StepEnded { step, ok });
                if let Some(measured) = measured {
                    self.feed(&Input::Measured(measured));
                }
            }
            TrainerEvent::Saved { publication, weights: saved } => {
                // One that comes too late must not take the place of the one that is loaded.
                if self.book.saving == Some(publication) {
                    self.saved = Some((publication, saved));
                }
                self.feed(&weights(publication, WeightsEvent::Saved));
            }
            TrainerEvent::SaveFailed { publication } => {
                self.feed(&weights(publication, WeightsEvent::SaveFailed));
            }
            TrainerEvent::Checkpointed { version } => {
                self.feed(&Input::Checkpointed { version });
                self.checkpointed();
            }
            TrainerEvent::NotCheckpointed => self.checkpointed(),
            TrainerEvent::Down => self.trainer_down(),
        }
    }

    /// What it was doing has failed, and the run ends: nothing would ever be trained again.
    fn trainer_down(&mut self) {
        self.trainer_down = true;
        self.narrator.say(Note::Failed { why: "the trainer is down".to_owned() });
        if let Some(step) = self.book.step {
            self.feed(&Input::StepEnded { step, ok: false });
        }
        if let Some(publication) = self.book.saving {
            self.save_failed(publication);
        }
    }

    fn save_failed(&mut self, publication: PublicationId) {
        self.feed(&Input::Weights { publication, event: WeightsEvent::SaveFailed });
    }

    pub(super) fn vote_ended(&mut self, vote: VoteId, verdict: Verdict, awaited: bool) {
        let Verdict { outcome, tokens, judge_version, trouble } = verdict;
        // One that was cancelled brings none because nobody waits for it.
        if let Some(trouble) = trouble.filter(|_| awaited) {
            self.narrator.trouble(self.clock.now(), trouble);
        }
        self.feed(&Input::VoteEnded { vote, outcome, tokens, judge_version });
    }

    fn arrived(&mut self, arrival: Arrival) {
        let request = arrival.request;
        // Until the last turn of a trajectory is served, its session can be asked for again.
        let keeps_name = arrival.last && self.trajectories();
        let session = self.session(arrival.session, arrival.last && !keeps_name);
        if let Some(text) = arrival.next_state {
            self.next_state(session, &text);
        }
        let group = arrival.group.map(|name| self.group(name));
        let prompt = arrival.question.prompt.len();
        let left = arrival.events.is_closed();
        let turn = Turn {
            session,
            question: arrival.question,
            sampling: arrival.sampling,
            streamed: arrival.streamed,
            last: keeps_name,
            events: Some(arrival.events),
            attempt: 0,
            replica: None,
            sample: None,
            tokens: Vec::new(),
            first_token: None,
            finish: Finish::Failed,
        };
        self.turns.insert(request, turn);
        self.feed(&Input::Request(Request {
            request,
            session,
            group,
            turn: arrival.turn,
            prompt_tokens: u32::try_from(prompt).unwrap_or(u32::MAX),
            streamed: arrival.streamed,
            last: arrival.last,
        }));
        if left {
            self.client_left(request);
        }
    }

    /// The session with this name. One that will see no further turn gives its name back at once.
    fn session(&mut self, name: Option<String>, last: bool) -> SessionId {
        let known = name.as_ref().and_then(|name| self.sessions.get(name).copied());
        let id = known.unwrap_or(SessionId(self.book.next_session));
        if known.is_none() {
            // The next name must get another number, also before its request is handled.
            self.book.next_session += 1;
            let name = name.unwrap_or_else(|| format!("({})", id.0));
            self.sessions.insert(name.clone(), id);
            self.session_names.insert(id, name.clone());
            self.append(Row::SessionNamed { id, name });
        }
        if last {
            self.session_over(id);
        }
        id
    }

    /// The group with this name.
    fn group(&mut self, name: String) -> GroupId {
        if let Some(known) = self.groups.get(&name) {
            return known;
        }
        let id = GroupId(self.book.next_group);
        self.groups.insert(name.clone(), id);
        self.append(Row::GroupNamed { id, name });
        id
    }

    /// The client has gone; it may have been answered.
    pub(super) fn client_left(&mut self, request: RequestId) {
        let Some(turn) = self.turns.get_mut(&request) else { return };
        let ends = turn.last.then_some(turn.session);
        if turn.events.take().is_some() {
            self.feed(&Input::ClientLeft { request });
            self.forget_if_over(request);
            self.end_name(ends);
        }
    }

    /// An operator's wish of the driver's own: nobody waits for the reply.
    pub(super) fn operate(&mut self, operator: Operator) {
        self.operators.push_back(None);
        self.feed(&Input::Operator(operator));
    }
}

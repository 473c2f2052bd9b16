//! What a generated turn adds to its sample.

use std::sync::Arc;

use headway_shared::config::SampleUnit;
use headway_shared::id::{RequestId, SampleId, SessionId};

use super::Driver;
use crate::engine::Token;
use crate::store::Row;
use crate::trajectory::Part;

impl Driver {
    /// A sample is the whole trajectory of a session.
    pub(super) fn trajectories(&self) -> bool {
        self.scheduler.config().policy_training.sample_unit == SampleUnit::Session
    }

    /// A turn was generated: it is recorded with its sample, if it has one.
    pub(super) fn generated(&mut self, seq: u64, request: RequestId, tokens: &Arc<[Token]>) {
        let Some(turn) = self.turns.get(&request) else { return };
        let Some(sample) = turn.sample else { return };
        let (session, finish, question) = (turn.session, turn.finish, turn.question.clone());
        let trajectory = self.trajectories();
        let counted = self.turns_counted(sample);
        let Some(payload) = self.samples.get_mut(&sample) else { return };
        let number = payload.parts.len();
        // The core gives up a trajectory whose turn it cannot use; the turns before it stay its own.
        if trajectory && counted <= number {
            return;
        }
        let ids: Vec<u32> = tokens.iter().map(|token| token.id).collect();
        let response: Arc<str> = self.tokenizer.decode(&ids).into();
        let part = Part::after(&payload.parts, &question.prompt, tokens.clone(), response.clone());
        payload.add(&question, part.clone());
        let row = if trajectory {
            let (turn, question) = (number, payload.question.clone());
            Row::Turn { sample, turn, request, seq, question, part: Box::new(part), finish }
        } else {
            Row::Generated { sample, tokens: tokens.clone(), finish, response }
        };
        self.append(row);
        self.awaiting.add(session, (sample, number));
    }

    /// How many turns of a sample the core has counted.
    fn turns_counted(&self, id: SampleId) -> usize {
        let resolved = self.scheduler.resolved().iter().map(|resolved| &resolved.sample);
        let of = |sample: &headway_shared::core::Sample| sample.turns as usize;
        let alive = self.scheduler.sample(id).map(of);
        alive.or_else(|| resolved.into_iter().find(|sample| sample.id == id).map(of)).unwrap_or(0)
    }

    /// What followed the turns of a session that have waited for it.
    pub(super) fn next_state(&mut self, session: SessionId, text: &Arc<str>) {
        let trajectory = self.trajectories();
        for (sample, number) in self.awaiting.take(session) {
            let Some(payload) = self.samples.get_mut(&sample) else { continue };
            let Some(part) = payload.parts.get_mut(number) else { continue };
            part.next_state = Some(text.clone());
            let turn = trajectory.then_some(number);
            self.append(Row::NextState { sample, turn, text: text.clone() });
        }
    }

    /// The last turn of a session is over for its client. Where it was not served, its trajectory
    /// goes on, and with it the session's name.
    pub(super) fn end_name(&mut self, session: Option<SessionId>) {
        if let Some(session) = session.filter(|&session| !self.scheduler.session_is_open(session)) {
            self.session_over(session);
        }
    }

    /// Names of sessions that the core has ended while nobody was there to see it.
    pub(super) fn end_names(&mut self) {
        let named: Vec<SessionId> = self.session_names.keys().copied().collect();
        named.into_iter().for_each(|session| self.end_name(Some(session)));
    }
}

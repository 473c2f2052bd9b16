//! What an input changes in the books.

use super::labels::Turned;
use super::{Engine, Watch};
use crate::core::Scheduler;
use crate::id::{PublicationId, ReplicaId, RequestId};
use crate::input::{Finish, Input, Operator, WeightsEvent};

impl Watch {
    pub(super) fn on_input(&mut self, input: &Input, core: &Scheduler) {
        self.turned = None;
        self.polled.clear();
        self.last_request = None;
        match input {
            Input::Request(request) => {
                let reused = self.running().any(|running| running == request.request);
                self.reused = reused;
                self.last_request = Some(request.request);
                let session = Some(request.session);
                let known = self.sessions.entry(request.request);
                known.and_modify(|session| *session = None).or_insert(session);
            }
            Input::ClientLeft { request } => self.waiting.retain(|waiting| waiting != request),
            Input::SourceExhausted => self.exhausted = true,
            Input::GenerationEnded { request, attempt, finish, segments, .. } => {
                if *finish == Finish::Aborted {
                    self.waits(*request);
                }
                if let Some(generation) = self.generations.remove(&(*request, *attempt)) {
                    let met = segments.iter().map(|segment| segment.version.number()).collect();
                    self.carried.insert(*request, met);
                    let held = self.engines.get(&generation.replica).map_or(0, |it| it.holds);
                    self.turned = Some(Turned::new(*request, generation, segments, held));
                }
            }
            Input::VoteEnded { vote, outcome, .. } => {
                if let Some(sample) = self.votes.remove(vote) {
                    self.asked.remove(vote);
                    self.polled.insert(sample);
                    self.count_vote(sample, *outcome);
                }
            }
            Input::EnvironmentEnded { session, attempt, .. }
                if self.environments.get(session) == Some(attempt) =>
            {
                self.environments.remove(session);
            }
            Input::StepEnded { step, ok } if self.step == Some(*step) => self.step_ended(*ok),
            Input::Weights { publication, event } => self.on_weights(*publication, *event),
            Input::ReplicaUp { replica, deploy } if deploy.number() <= self.learner => {
                let up = Engine { holds: deploy.number(), alive: true, whole: true };
                let engine = self.engines.entry(*replica).or_insert(up);
                if !(engine.alive && engine.whole) {
                    *engine = up;
                }
            }
            Input::ReplicaDown { replica } => {
                if let Some(engine) = self.engines.get_mut(replica) {
                    (engine.alive, engine.whole) = (false, false);
                }
                self.lose(*replica);
            }
            Input::Restored { checkpoint } if checkpoint.number() < self.learner => {
                // Its step makes no version any more, and nobody says so.
                self.leave_step();
                self.learner += 1;
                self.restored = true;
            }
            Input::Operator(Operator::Pause) => self.paused = true,
            Input::Operator(Operator::Resume) => self.paused = false,
            _ => {}
        }
        // What has been given up is gone, also where nobody says so.
        self.waiting.retain(|request| core.knows(*request));
    }

    /// It may have to start again.
    pub(super) fn waits(&mut self, request: RequestId) {
        if !self.waiting.contains(&request) {
            self.waiting.push_back(request);
        }
    }

    pub(super) fn step_ended(&mut self, ok: bool) {
        if ok {
            (self.step, self.step_failures) = (None, 0);
            self.learner += 1;
        } else {
            self.leave_step();
            self.step_failures += 1;
        }
    }

    /// The step under way makes no version.
    fn leave_step(&mut self) {
        self.step = None;
        self.samples.values_mut().for_each(|life| life.in_step = false);
    }

    fn lose(&mut self, replica: ReplicaId) {
        let lost = self.generations.iter().filter(|(_, it)| it.replica == replica);
        let lost: Vec<_> = lost.map(|((request, _), _)| *request).collect();
        lost.into_iter().for_each(|request| self.waits(request));
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
                    if let Some(engine) = self.engines.get_mut(&replica) {
                        (engine.holds, engine.whole) = (version, engine.alive);
                    }
                    let here = self.generations.values_mut().filter(|it| it.replica == replica);
                    for generation in here.filter(|it| it.versions.last() != Some(&version)) {
                        generation.versions.push(version);
                    }
                }
            }
            WeightsEvent::TransferFailed(replica) => {
                self.loads.remove(&(publication, replica));
            }
            WeightsEvent::LoadFailed { replica, intact } => {
                if self.loads.remove(&(publication, replica)).is_some() && !intact {
                    self.break_weights(replica);
                }
            }
        }
    }

    /// A replica holds no whole weights any more, and all that ran on it is lost.
    pub(super) fn break_weights(&mut self, replica: ReplicaId) {
        if let Some(engine) = self.engines.get_mut(&replica) {
            engine.whole = false;
        }
        self.lose(replica);
    }
}

//! Actions carried out.

use std::sync::Arc;

use headway_shared::action::{Action, Reply};
use headway_shared::id::{ReplicaId, RequestId, SampleId, SessionId, StepId, VoteId};
use headway_shared::input::{Finish, Input, Segments, VoteOutcome, WeightsEvent};
use headway_shared::ratio::Loss;
use headway_shared::version::LearnerVersion;

use super::Driver;
use super::book::no_environment;
use super::effect::Effect;
use super::message::{Answer, Completion, TurnEvent};
use super::turn::Payload;
use crate::engine::{EngineCommand, Generate};
use crate::judge::{Trouble, Verdict};
use crate::store::Row;
use crate::trainer::TrainerCommand;
use crate::trajectory::train_samples;

impl Driver {
    /// Carries out an action of input `seq`.
    pub(super) fn act(&mut self, seq: u64, action: Action) {
        match action {
            Action::StartGeneration { request, attempt, replica, sample, resume } => {
                self.admitted(seq, request, sample);
                self.generate(request, attempt, replica, resume);
            }
            Action::AbortGeneration { request, attempt, replica } => {
                // An engine that takes no more commands is given up after `abort_timeout_sec`.
                self.tell(replica, EngineCommand::Abort { request, attempt });
            }
            Action::Refuse { request, reason, retry_after } => {
                let refused = TurnEvent::Refused { reason, retry_after };
                self.answer(seq, request, refused);
            }
            Action::Reply { request, reply } => self.reply(seq, request, reply),
            Action::EndSession { session } => self.session_over(session),
            Action::StartVote { vote, sample } => self.start_vote(seq, vote, sample),
            Action::CancelVote { vote } => self.cancel_vote(vote),
            Action::StartStep { step, learner, .. } => self.start_step(seq, step, learner),
            Action::CancelStep { step } => {
                self.append(Row::StepEnded { step, ok: false, metrics: Vec::new(), seq });
                self.after_commit(seq, Effect::Tell(TrainerCommand::CancelStep { step }));
            }
            Action::Publish { publication, version } => {
                let save = TrainerCommand::Save { publication, version };
                self.after_commit(seq, Effect::Save(publication, save));
            }
            Action::Load { publication, replica, version, in_flight, kv } => {
                let load =
                    |weights| EngineCommand::Load { publication, version, weights, in_flight, kv };
                match self.saved_weights(publication) {
                    Some(weights) => {
                        let effect = Effect::Load(publication, replica, load(weights));
                        self.after_commit(seq, effect);
                    }
                    None => {
                        self.weights_failed(publication, WeightsEvent::TransferFailed(replica));
                    }
                }
            }
            Action::CancelLoad { publication, replica } => {
                self.tell(replica, EngineCommand::CancelLoad { publication });
            }
            Action::OperatorReply { reply } => {
                if let Some(Some(asker)) = self.operators.pop_front() {
                    self.after_commit(seq, Effect::Operator(asker, reply));
                }
            }
            Action::ResetEnvironment { .. } | Action::StepEnvironment { .. } => {
                self.followups.extend(no_environment(action));
            }
            // A held client waits; a discard is seen in what was resolved; how the run ended is
            // shown with its state.
            Action::Hold { .. }
            | Action::Discard { .. }
            | Action::CancelEnvironment { .. }
            | Action::Fail { .. } => {}
        }
    }

    /// Tells an engine something that it may miss.
    pub(super) fn tell(&self, replica: ReplicaId, command: EngineCommand) -> bool {
        self.engines.get(&replica).is_some_and(|engine| engine.try_send(command).is_ok())
    }

    /// A turn becomes a sample, or part of its session's.
    fn admitted(&mut self, seq: u64, request: RequestId, sample: Option<SampleId>) {
        let (Some(sample), Some(turn)) = (sample, self.turns.get_mut(&request)) else { return };
        if turn.sample.replace(sample).is_some() || self.samples.contains_key(&sample) {
            return;
        }
        let (question, session) = (turn.question.clone(), turn.session);
        self.samples.insert(sample, Payload::new(question.clone()));
        let group = self.scheduler.sample(sample).and_then(|sample| sample.group);
        self.append(Row::Admitted { sample, request, session, group, seq, question });
    }

    fn generate(&mut self, request: RequestId, attempt: u32, replica: ReplicaId, resume: bool) {
        let command = self.turns.get_mut(&request).map(|turn| {
            turn.attempt = attempt;
            turn.replica = Some(replica);
            if !resume {
                turn.tokens.clear();
                turn.first_token = None;
            }
            EngineCommand::Generate(Box::new(Generate {
                request,
                attempt,
                prompt: turn.question.prompt.clone(),
                resume: turn.tokens.clone(),
                sampling: turn.sampling.clone(),
            }))
        });
        if command.is_some_and(|command| self.tell(replica, command)) {
            return;
        }
        if let Some(turn) = self.turns.get_mut(&request) {
            turn.replica = None;
        }
        // It ends with its replica, if that is gone.
        if !self.engines.contains_key(&replica) {
            return;
        }
        self.followups.push_back(Input::GenerationEnded {
            request,
            attempt,
            finish: Finish::Failed,
            first_token: None,
            segments: Segments::new(),
        });
    }

    /// Every so many versions the trainer writes a checkpoint, before it trains on.
    pub(super) fn checkpoint_if_due(&mut self, seq: u64, ok: bool) {
        let every = u64::from(self.options.checkpoint_every);
        if ok && every > 0 && self.scheduler.ledger().steps.is_multiple_of(every) {
            self.after_commit(seq, Effect::Tell(TrainerCommand::Checkpoint));
        }
    }

    /// The turn is over for its client.
    fn reply(&mut self, seq: u64, request: RequestId, reply: Reply) {
        let Some(turn) = self.turns.get(&request) else { return };
        let finish = turn.finish;
        let tokens: Arc<[_]> = turn.tokens.as_slice().into();
        let sample = turn.sample.filter(|sample| self.scheduler.sample(*sample).is_some());
        if reply != Reply::Failed {
            self.generated(seq, request, &tokens);
        }
        let answer = Answer { reply, finish, tokens, sample };
        self.answer(seq, request, TurnEvent::Ended(answer));
    }

    fn answer(&mut self, seq: u64, request: RequestId, event: TurnEvent) {
        let Some(turn) = self.turns.get_mut(&request) else { return };
        let events = turn.events.take();
        let ends = turn.last.then_some(turn.session);
        if turn.replica.is_none() {
            self.turns.remove(&request);
        }
        self.end_name(ends);
        if let Some(events) = events {
            self.after_commit(seq, Effect::Turn(events, event));
        }
    }

    /// Its name may come again, for another session.
    pub(super) fn session_over(&mut self, session: SessionId) {
        if let Some(name) = self.session_names.remove(&session) {
            self.sessions.remove(&name);
            self.append(Row::SessionEnded { id: session });
        }
    }

    fn start_vote(&mut self, seq: u64, vote: VoteId, sample: SampleId) {
        self.append(Row::VoteStarted { vote, sample, seq });
        let Some(payload) = self.samples.get(&sample) else {
            return self.vote_failed(vote);
        };
        let case = payload.case();
        if let Some(verdict) = self.judge.at_once(&case) {
            return self.verdicts.push_back((vote, verdict));
        }
        let asked = tokio::spawn(self.judge.vote(case));
        self.votes.insert(vote, asked.abort_handle());
        let completed = self.completed.clone();
        tokio::spawn(async move {
            // A judge that panics, or is cancelled, has not answered.
            let verdict = asked.await.unwrap_or(Verdict::none(Trouble::BrokenOff));
            let _ = completed.send(Completion::Vote(vote, verdict)).await;
        });
    }

    fn cancel_vote(&mut self, vote: VoteId) {
        if let Some(asked) = self.votes.remove(&vote) {
            asked.abort();
        }
    }

    fn vote_failed(&mut self, vote: VoteId) {
        let outcome = VoteOutcome::Failed;
        self.followups.push_back(Input::VoteEnded { vote, outcome, tokens: 0, judge_version: 0 });
    }

    fn start_step(&mut self, seq: u64, step: StepId, learner: LearnerVersion) {
        let ids = self.scheduler.batch().map(|sample| sample.id).collect();
        let samples = self
            .scheduler
            .batch()
            .flat_map(|sample| {
                let parts = self.samples.get(&sample.id).map(|payload| &*payload.parts);
                train_samples(sample, parts.unwrap_or_default())
            })
            .collect();
        self.append(Row::StepStarted { step, learner, samples: ids, seq });
        let replicas = self.book.replicas().filter_map(|id| self.scheduler.replica(id));
        let deploy = replicas.filter(|replica| replica.up).map(|replica| replica.deploy).max();
        let training = &self.scheduler.config().policy_training;
        let (loss, updates) = (Loss::of(training), training.updates_per_step);
        let command = TrainerCommand::Step { step, learner, deploy, loss, updates, samples };
        self.after_commit(seq, Effect::Step(step, command));
    }
}

//! What an action changes in the books, and what it may not.

use super::{Checked, Decision, Engine, Generation, Life, Watch, must};
use crate::action::{Action, InFlight};
use crate::config::{Aborted, SampleUnit};
use crate::core::Scheduler;
use crate::id::{ReplicaId, RequestId, SampleId};
use crate::time::{Span, Time};

/// Nobody is told to wait longer: official clients would give up.
const LONGEST_WAIT: Span = Span::from_secs(60);

impl Watch {
    pub(super) fn on_action(&mut self, now: Time, action: &Action, core: &Scheduler) -> Checked {
        match *action {
            Action::StartGeneration { request, attempt, replica, sample, resume } => {
                if let (1, Some(sample)) = (attempt, sample) {
                    self.becomes(request, sample, replica, core)?;
                }
                self.waiting.retain(|waiting| *waiting != request);
                self.started(now, (request, attempt), replica, sample, resume)?;
            }
            Action::AbortGeneration { request, attempt, replica } => {
                let generation = self.generations.get_mut(&(request, attempt));
                let Some(generation) = generation else {
                    return Err(format!("{request} is aborted, and is not generated"));
                };
                must!(!generation.aborted, "{request} is aborted twice");
                must!(generation.replica == replica, "{request} is aborted where it is not");
                generation.aborted = true;
                self.waits(request);
            }
            Action::Refuse { request, reason, retry_after } => {
                must!(retry_after <= LONGEST_WAIT, "a client is told to wait for {retry_after}");
                self.check_refusal(request, reason, core)?;
                self.waiting.retain(|waiting| *waiting != request);
                self.decide(request, Decision::Refused(reason))?;
            }
            Action::Hold { request } => {
                self.waits(request);
                self.decide(request, Decision::Held)?;
            }
            Action::Reply { request, reply } => {
                let started = matches!(self.decision(request), Decision::Started { .. });
                must!(started, "{request} gets a reply and was never started");
                self.waiting.retain(|waiting| *waiting != request);
                let before = self.replies.insert(request, reply);
                must!(before.is_none(), "{request} gets two replies");
            }
            Action::ResetEnvironment { session, attempt }
            | Action::StepEnvironment { session, attempt } => {
                let before = self.environments.insert(session, attempt);
                must!(before.is_none(), "the environment of {session} is at work already");
            }
            Action::CancelEnvironment { session, attempt } => {
                let at_work = self.environments.remove(&session);
                must!(at_work == Some(attempt), "an environment is cancelled that is not at work");
            }
            Action::EndSession { session } => {
                self.environments.remove(&session);
            }
            Action::StartVote { vote, sample } => self.vote_started(now, vote, sample)?,
            Action::CancelVote { vote } => self.vote_cancelled(now, vote)?,
            Action::StartStep { step, learner, samples } => {
                must!(self.step.is_none(), "{step:?} starts while another trains");
                self.step = Some(step);
                self.step_from = self.learner;
                must!(learner.number() == self.learner, "a step starts from another version");
                let batch = core.batch().count();
                must!(samples as usize == batch, "a batch of {samples} samples holds {batch}");
                self.check_batch(core)?;
            }
            Action::CancelStep { step } => {
                must!(self.step == Some(step), "a step is cancelled that does not train");
                self.step_ended(false);
            }
            Action::Publish { publication, version } => {
                must!(version.number() <= self.learner, "{version} is published before it is made");
                must!(self.publication < Some(publication), "a publication id comes twice");
                (self.publication, self.saving) = (Some(publication), true);
            }
            Action::Load { publication, replica, version, in_flight, .. } => {
                must!(self.publication == Some(publication), "an old publication is loaded");
                let old = self.loads.insert((publication, replica), version.number());
                must!(old.is_none(), "{replica} is told to load twice");
                let mut here = self.generations.values().filter(|it| it.replica == replica);
                let drained = here.all(|generation| generation.aborted);
                must!(in_flight != InFlight::Drained || drained, "{replica} is not drained");
            }
            Action::CancelLoad { publication, replica } => {
                let under_way = self.loads.remove(&(publication, replica));
                must!(under_way.is_some(), "{replica} loads nothing");
                if !core.replica(replica).is_some_and(|view| view.up) {
                    self.break_weights(replica);
                }
            }
            Action::Discard { sample, reason } => self.discards(sample, reason)?,
            Action::OperatorReply { .. } => {}
            Action::Fail { .. } => {
                must!(!self.failed, "the run ends twice");
                self.failed = true;
            }
        }
        Ok(())
    }

    /// A request becomes a sample, or goes on with its session's.
    fn becomes(
        &mut self,
        request: RequestId,
        sample: SampleId,
        replica: ReplicaId,
        core: &Scheduler,
    ) -> Checked {
        let session = self.sessions.get(&request).copied().flatten();
        let of = self.samples.get(&sample).map(|life| life.session);
        if self.unit() == SampleUnit::Turn || of.is_none() {
            must!(sample.0 == self.next_sample, "{sample} is no ordinal of an admission");
            self.check_place(sample, replica, core)?;
            self.next_sample += 1;
            self.samples.insert(sample, Life { session, ..Life::default() });
        } else if let (Some(session), Some(of)) = (session, of.flatten()) {
            must!(of == session, "a turn of {session} goes on with the trajectory of {of}");
        }
        Ok(())
    }

    fn started(
        &mut self,
        now: Time,
        (request, attempt): (RequestId, u32),
        replica: ReplicaId,
        sample: Option<SampleId>,
        resume: bool,
    ) -> Checked {
        if attempt > 1 {
            let Decision::Started { sample: before, .. } = self.decision(request) else {
                return Err(format!("attempt {attempt} of {request}, which never started"));
            };
            // A turn whose sample was discarded may still be served.
            let dropped = before.is_some_and(|before| !self.samples.contains_key(&before));
            must!(before == sample || dropped, "another attempt of {request} is another sample");
        }
        let mut versions = if resume {
            self.carried.get(&request).cloned().unwrap_or_default()
        } else {
            Vec::new()
        };
        if let (true, Some(sample)) = (resume, sample) {
            let aborted = self.config().policy_serving.aborted;
            let may = matches!(aborted, Aborted::Resume | Aborted::Restart) || self.reconfigured();
            must!(may, "{request} resumes under {aborted:?}");
            if let Some(life) = self.samples.get_mut(&sample) {
                life.resumed = true;
            }
        }
        let Some(&Engine { holds, alive: true, whole: true }) = self.engines.get(&replica) else {
            return Err(format!("{request} starts on {replica}, which does not serve"));
        };
        if versions.last() != Some(&holds) {
            versions.push(holds);
        }
        let since = self.inputs;
        let generation =
            Generation { replica, started: now, versions, aborted: false, sample, since };
        let before = self.generations.insert((request, attempt), generation);
        must!(before.is_none(), "attempt {attempt} of {request} starts twice");
        self.decide(request, Decision::Started { replica, sample })
    }

    fn decide(&mut self, request: RequestId, decision: Decision) -> Checked {
        let before = self.decisions.insert(request, decision);
        let fine = match before {
            None | Some(Decision::Held) => decision != Decision::Held || before.is_none(),
            Some(Decision::Started { .. }) => true,
            _ => false,
        };
        must!(fine, "{request}: {decision:?} after {before:?}");
        Ok(())
    }
}

//! What is worth saying of a run, and when: a pure follower of inputs, actions and time.
//!
//! It decides nothing about the run. What comes often (refusals, failed votes) is summed up: said at
//! once where it is new, then at most every [`INTERVAL`] and with each step.

mod blocked;
mod note;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use headway_shared::action::{Action, OperatorReply, Refusal};
use headway_shared::config::Choice;
use headway_shared::core::{Fate, Scheduler};
use headway_shared::id::{PublicationId, StepId, VoteId};
use headway_shared::input::{Input, Measured, Operator, WeightsEvent};
use headway_shared::time::{Span, Time};

use crate::judge::Trouble;
use crate::trainer::StepMetric;
use blocked::Blocked;
pub(crate) use note::Note;

/// What comes often is said at most so often.
const INTERVAL: Span = Span::from_secs(30);
/// So many steps are remembered.
const MOST_STEPS: usize = 64;
/// The metric that tells whether engine and trainer, and policies of different age, agree.
pub const LOGPROB_DIFF: &str = "train_rollout_logprob_abs_diff";

/// A finished attempt of a train step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSummary {
    /// The step.
    pub step: StepId,
    /// When it ended, since the run's start.
    pub at: Time,
    /// Whether it made a version.
    pub ok: bool,
    /// The learner's version behind it.
    pub version: u32,
    /// Samples trained.
    pub samples: u32,
    /// Their mean staleness, of their first tokens, in versions.
    pub staleness_mean: f64,
    /// The largest.
    pub staleness_max: u32,
    /// Their mean score.
    pub reward_mean: f64,
    /// Mean of abs(proximal - rollout) log-probability, where it is measured and to be logged.
    pub logprob_diff: Option<f64>,
}

/// Something that comes often.
#[derive(Debug)]
struct Summary<const N: usize> {
    /// All, since the process began.
    total: [u64; N],
    /// Of these, not yet said.
    unsaid: [u64; N],
    said_at: Option<Time>,
}

impl<const N: usize> Default for Summary<N> {
    fn default() -> Self {
        Self { total: [0; N], unsaid: [0; N], said_at: None }
    }
}

impl<const N: usize> Summary<N> {
    /// One more; whether it is time to speak.
    fn add(&mut self, index: usize, now: Time) -> bool {
        self.total[index] += 1;
        self.unsaid[index] += 1;
        self.total[index] == 1 || self.said_at.is_none_or(|said| now.since(said) >= INTERVAL)
    }

    /// What has not been said, if anything; it is, now.
    fn take(&mut self, now: Time) -> Option<[u64; N]> {
        let unsaid = std::mem::replace(&mut self.unsaid, [0; N]);
        let any = unsaid.iter().any(|count| *count > 0);
        if any {
            self.said_at = Some(now);
        }
        any.then_some(unsaid)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Narrator {
    /// `train_rollout_logprob_abs_diff` is to be logged.
    logprob_diff: bool,
    notes: Vec<Note>,
    steps: VecDeque<StepSummary>,
    refused: Summary<{ Refusal::COUNT }>,
    failed_votes: Summary<{ Trouble::NAMES.len() }>,
    last_trouble: Option<Trouble>,
    /// When each vote in flight began.
    votes: BTreeMap<VoteId, Time>,
    publications: u64,
    failed_publications: u64,
    window_since: Option<Time>,
    window: Option<Span>,
    publication: Option<(PublicationId, u32)>,
    ended: bool,
    /// The run is being shut down: engines go, and nothing is admitted, because of that.
    ending: bool,
    blocked: Blocked,
    /// Moves of an adaptive bound so far.
    bound_moves: u64,
    /// The trainer was said not to measure what the bound follows.
    unmeasured: bool,
}

impl Narrator {
    /// A follower of a run that stands at `scheduler`.
    pub(crate) fn new(scheduler: &Scheduler, now: Time, logprob_diff: bool) -> Self {
        Self {
            logprob_diff,
            notes: Vec::new(),
            steps: VecDeque::new(),
            refused: Summary::default(),
            failed_votes: Summary::default(),
            last_trouble: None,
            votes: BTreeMap::new(),
            publications: scheduler.ledger().publications,
            failed_publications: scheduler.ledger().failed_publications,
            window_since: None,
            window: None,
            publication: None,
            ended: false,
            ending: false,
            blocked: Blocked::new(now),
            bound_moves: bound_moves(scheduler),
            unmeasured: false,
        }
    }

    /// The newest steps, oldest first.
    pub(crate) fn steps(&self) -> &VecDeque<StepSummary> {
        &self.steps
    }

    /// Failed votes by kind, as [`Trouble::NAMES`] has them.
    pub(crate) const fn failed_votes(&self) -> [u64; Trouble::NAMES.len()] {
        self.failed_votes.total
    }

    /// Something of the driver's own.
    pub(crate) fn say(&mut self, note: Note) {
        self.ending |= matches!(note, Note::Ending { .. });
        self.notes.push(note);
    }

    /// What there is to say, once.
    pub(crate) fn take(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// When to [look](Self::look) at the latest.
    pub(crate) const fn due(&self) -> Time {
        if self.ending { Time::MAX } else { self.blocked.due() }
    }

    /// Time has passed: says which loop blocks, if one has for a while.
    pub(crate) fn look(&mut self, now: Time, scheduler: &Scheduler) {
        if self.ending {
            return;
        }
        if let Some(note) = self.blocked.look(now, scheduler) {
            self.notes.push(note);
        }
    }

    /// A vote brought no score.
    pub(crate) fn trouble(&mut self, now: Time, trouble: Trouble) {
        let speak = self.failed_votes.add(trouble.index(), now);
        self.last_trouble = Some(trouble);
        if speak {
            self.sum_up_votes(now);
        }
    }

    /// The core has handled an input; before it, `training` was the step under way.
    pub(crate) fn observe(
        &mut self,
        now: Time,
        input: &Input,
        actions: &[Action],
        scheduler: &Scheduler,
        metrics: &[StepMetric],
        training: Option<StepId>,
    ) {
        match input {
            // One that was given up is none any more.
            Input::StepEnded { step, .. } if training != Some(*step) => {}
            Input::StepEnded { step, ok } => self.step_ended(now, *step, *ok, scheduler, metrics),
            Input::Weights { publication, event } => self.weights(*publication, *event),
            Input::ReplicaUp { replica, deploy } => {
                self.say(Note::ReplicaUp { replica: *replica, version: deploy.number() });
            }
            Input::ReplicaDown { .. } | Input::Operator(Operator::Pause) if self.ending => {}
            Input::ReplicaDown { replica } => self.say(Note::ReplicaDown { replica: *replica }),
            Input::Restored { checkpoint } => {
                self.say(Note::RolledBack { checkpoint: checkpoint.number() });
            }
            Input::VoteEnded { vote, .. } => drop(self.votes.remove(vote)),
            Input::Checkpointed { version } => {
                self.say(Note::Checkpointed { version: version.number() });
            }
            Input::Operator(operator) => self.operated(operator, actions),
            Input::Measured(measured) => self.measured(measured, scheduler),
            _ => {}
        }
        // The next one can begin with the input that ends this one.
        let open = self.publication;
        self.acted(now, actions, scheduler);
        self.publication_moved(now, open.or(self.publication), scheduler);
    }

    fn step_ended(
        &mut self,
        now: Time,
        step: StepId,
        ok: bool,
        scheduler: &Scheduler,
        metrics: &[StepMetric],
    ) {
        let trained = scheduler.resolved().iter().filter(|resolved| resolved.fate == Fate::Trained);
        let (mut samples, mut staleness, mut staleness_max, mut score) = (0_u32, 0_u64, 0, 0_i64);
        for resolved in trained {
            samples += 1;
            staleness += u64::from(resolved.sample.staleness_head());
            staleness_max = staleness_max.max(resolved.sample.staleness_head());
            score += i64::from(resolved.sample.score);
        }
        let mean = |sum: f64| sum / f64::from(samples.max(1));
        let wanted = |metric: &&StepMetric| {
            self.logprob_diff && metric.name == LOGPROB_DIFF && metric.staleness.is_none()
        };
        let summary = StepSummary {
            step,
            at: now,
            ok,
            version: scheduler.learner().number(),
            samples,
            staleness_mean: mean(staleness as f64),
            staleness_max,
            reward_mean: mean(score as f64 / 1e6),
            logprob_diff: metrics.iter().find(wanted).map(|metric| metric.value),
        };
        if self.steps.len() == MOST_STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(summary.clone());
        self.say(Note::Step(summary));
        self.blocked.progressed(now);
        self.sum_up_refusals(now);
        self.sum_up_votes(now);
    }

    /// An adaptive bound moves, or cannot.
    fn measured(&mut self, measured: &Measured, scheduler: &Scheduler) {
        let adaptive = &scheduler.config().adaptive;
        let signal = adaptive.signal.word();
        if measured.of(adaptive.signal).is_none() && !std::mem::replace(&mut self.unmeasured, true)
        {
            self.say(Note::Unmeasured { signal });
        }
        let moves = bound_moves(scheduler);
        if std::mem::replace(&mut self.bound_moves, moves) < moves
            && let Some(moved) = scheduler.last_bound_move()
        {
            self.say(Note::BoundMoved { signal, target: adaptive.target, moved });
        }
    }

    fn weights(&mut self, publication: PublicationId, event: WeightsEvent) {
        let what = match event {
            WeightsEvent::SaveFailed => "its weights could not be saved",
            WeightsEvent::TransferFailed(_) => "the transfer failed",
            WeightsEvent::LoadFailed { intact: true, .. } => {
                "the load failed; the old weights serve"
            }
            WeightsEvent::LoadFailed { .. } => {
                "the load broke half-way; the replica is down until \
                                                it has loaded"
            }
            WeightsEvent::Saved | WeightsEvent::Transferred(_) | WeightsEvent::Loaded(_) => return,
        };
        let replica = match event {
            WeightsEvent::TransferFailed(replica) | WeightsEvent::LoadFailed { replica, .. } => {
                Some(replica)
            }
            _ => None,
        };
        self.say(Note::WeightsFailed { publication, replica, what });
    }

    fn operated(&mut self, operator: &Operator, actions: &[Action]) {
        let done = actions.contains(&Action::OperatorReply { reply: OperatorReply::Done });
        let (command, config) = match operator {
            Operator::Pause => ("pause", None),
            Operator::Resume => ("resume", None),
            Operator::Publish => ("publish", None),
            Operator::Reconfigure(config) => ("reconfigure", Some(config.digest())),
        };
        self.say(Note::Operator { command, done, config });
    }

    fn acted(&mut self, now: Time, actions: &[Action], scheduler: &Scheduler) {
        let limit = scheduler.config().reward_judging.judge_timeout;
        for action in actions {
            match *action {
                Action::StartVote { vote, .. } => drop(self.votes.insert(vote, now)),
                Action::CancelVote { vote } => {
                    let began = self.votes.remove(&vote);
                    let late = |began: Time| limit > Span::ZERO && now.since(began) >= limit;
                    if began.is_some_and(late) {
                        self.trouble(now, Trouble::TimedOut);
                    }
                }
                Action::Refuse { reason, .. } if self.refused.add(reason.index(), now) => {
                    self.sum_up_refusals(now);
                }
                Action::Publish { publication, version } => {
                    self.publication = Some((publication, version.number()));
                }
                Action::CancelLoad { publication, replica } => self.say(Note::WeightsFailed {
                    publication,
                    replica: Some(replica),
                    what: "the load took too long and is abandoned",
                }),
                Action::CancelStep { step } => self.say(Note::StepGivenUp { step }),
                Action::Fail { error } => {
                    self.ended = true;
                    self.say(Note::Failed { why: error.to_string() });
                }
                _ => {}
            }
        }
    }

    /// A window opens or closes, a publication ends.
    fn publication_moved(
        &mut self,
        now: Time,
        publication: Option<(PublicationId, u32)>,
        scheduler: &Scheduler,
    ) {
        match (scheduler.in_sync_window(), self.window_since) {
            (true, None) => (self.window_since, self.window) = (Some(now), None),
            (false, Some(since)) => {
                (self.window_since, self.window) = (None, Some(now.since(since)));
            }
            _ => {}
        }
        let (done, failed) =
            (scheduler.ledger().publications, scheduler.ledger().failed_publications);
        if done > self.publications {
            self.publications = done;
            self.publication = self.publication.filter(|next| Some(*next) != publication);
            if let Some((publication, version)) = publication {
                let window = self.window.take();
                self.say(Note::Published { publication, version, window });
            }
        }
        if failed > self.failed_publications {
            self.failed_publications = failed;
            if let Some((publication, version)) = publication {
                let (window, again) = (self.window.take(), !self.ended);
                self.say(Note::PublicationFailed { publication, version, window, again });
            }
        }
    }

    fn sum_up_refusals(&mut self, now: Time) {
        if let Some(counts) = self.refused.take(now) {
            let counts = Refusal::ALL.iter().map(|reason| reason.name()).zip(counts).collect();
            self.say(Note::Refused { counts: Counts(counts) });
        }
    }

    fn sum_up_votes(&mut self, now: Time) {
        if let Some(counts) = self.failed_votes.take(now) {
            let counts = Trouble::NAMES.into_iter().zip(counts).collect();
            let last = self.last_trouble.clone();
            self.say(Note::VotesFailed { counts: Counts(counts), last });
        }
    }

    /// The run is over: says what is still unsaid.
    pub(crate) fn finish(&mut self, now: Time) {
        self.sum_up_refusals(now);
        self.sum_up_votes(now);
    }
}

fn bound_moves(scheduler: &Scheduler) -> u64 {
    scheduler.ledger().bound_raised + scheduler.ledger().bound_lowered
}

/// How many of each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counts(Vec<(&'static str, u64)>);

impl Counts {
    fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds = self.0.iter().filter(|(_, count)| *count > 0);
        kinds.enumerate().try_for_each(|(index, (name, count))| {
            write!(f, "{}{count} {name}", if index == 0 { "" } else { ", " })
        })
    }
}

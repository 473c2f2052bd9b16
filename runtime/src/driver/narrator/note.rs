//! Lines of the log.

use headway_shared::core::BoundMove;
use headway_shared::digest::Digest;
use headway_shared::guard::{Report, Verdict};
use headway_shared::id::{PublicationId, ReplicaId, StepId};
use headway_shared::time::Span;
use tracing::{error, info, warn};

use super::{Counts, StepSummary};
use crate::judge::Trouble;

/// Something worth a line. None holds a key, a token, a prompt or an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Note {
    /// The run begins.
    Started {
        config: Digest,
        decision_version: u32,
    },
    /// The run goes on where its record ends.
    Recovered {
        inputs: u64,
        in_flight: u64,
        step: bool,
        checkpoint: u32,
        learner: u32,
    },
    /// A step ended.
    Step(StepSummary),
    /// A step took too long.
    StepGivenUp {
        step: StepId,
    },
    /// Weights have reached every replica; how long requests got a 503 for it.
    Published {
        publication: PublicationId,
        version: u32,
        window: Option<Span>,
    },
    /// They have not.
    PublicationFailed {
        publication: PublicationId,
        version: u32,
        window: Option<Span>,
        /// It is tried again.
        again: bool,
    },
    /// Something of a publication failed.
    WeightsFailed {
        publication: PublicationId,
        replica: Option<ReplicaId>,
        what: &'static str,
    },
    ReplicaUp {
        replica: ReplicaId,
        version: u32,
    },
    ReplicaDown {
        replica: ReplicaId,
    },
    RolledBack {
        checkpoint: u32,
    },
    Checkpointed {
        version: u32,
    },
    /// An adaptive bound has moved.
    BoundMoved {
        signal: &'static str,
        /// In millionths, as the move's signal.
        target: u32,
        moved: BoundMove,
    },
    /// The trainer does not report what an adaptive bound follows.
    Unmeasured {
        signal: &'static str,
    },
    /// Requests were refused.
    Refused {
        counts: Counts,
    },
    /// Votes brought no score.
    VotesFailed {
        counts: Counts,
        last: Option<Trouble>,
    },
    /// Nothing has been trained for a while.
    Blocked {
        stall: String,
        since: Span,
        /// There were so many requests, all side turns.
        only_side: Option<u64>,
        /// It may be as it should.
        expected: bool,
    },
    /// An operator wanted something.
    Operator {
        command: &'static str,
        done: bool,
        config: Option<Digest>,
    },
    /// The run has left its envelope, or is back in it.
    Guard {
        report: Report,
    },
    /// The run cannot go on.
    Failed {
        why: String,
    },
    /// A stage of the shutdown.
    Ending {
        stage: &'static str,
        running: u32,
        votes: u32,
        training: bool,
    },
    /// The run is over.
    Ended {
        steps: u64,
        trained: u64,
        inputs: u64,
    },
}

/// What the log says of a window.
fn seconds(window: Option<Span>) -> Option<f64> {
    window.map(Span::as_secs_f64)
}

impl Note {
    /// Writes the line.
    pub(crate) fn log(&self) {
        match self {
            Self::Started { config, decision_version } => {
                info!(target: "headway", %config, decision_version, "the run begins");
            }
            Self::Recovered { inputs, in_flight, step, checkpoint, learner } => info!(
                target: "headway", inputs, in_flight, step, checkpoint, learner,
                "the run goes on where its record ends; what was in flight has failed"
            ),
            Self::Step(step) => log_step(step),
            Self::StepGivenUp { step } => warn!(
                target: "headway", step = step.0,
                "a train step took longer than `train_timeout_sec` and is given up"
            ),
            Self::Refused { counts } => {
                info!(target: "headway", total = counts.total(), "requests refused: {counts}");
            }
            Self::VotesFailed { counts, last } => {
                let last = last.as_ref().map(ToString::to_string).unwrap_or_default();
                let total = counts.total();
                warn!(target: "headway", total, last, "votes without a score: {counts}");
            }
            Self::Blocked { stall, since, only_side, expected } => {
                log_blocked(stall, *since, *only_side, *expected);
            }
            Self::Operator { command, done, config } => {
                let config = config.map(|digest| digest.to_string());
                info!(target: "headway", command, done, config, "an operator's command");
            }
            Self::Guard { report } => log_guard(report),
            Self::Failed { why } => error!(target: "headway", "the run cannot go on: {why}"),
            Self::Ending { stage, running, votes, training } => {
                info!(target: "headway", running, votes, training, "the run ends: {stage}");
            }
            Self::Ended { steps, trained, inputs } => {
                info!(target: "headway", steps, trained, inputs, "the run has ended");
            }
            Self::BoundMoved { signal, target, moved } => {
                let BoundMove { at, from, to, signal: value } = moved;
                let (value, target) = (f64::from(*value) / 1e6, f64::from(*target) / 1e6);
                info!(
                    target: "headway", version = at.number(), from, to, signal, value, target_value = target,
                    "the adaptive bound moves: max_head_off_policyness is {to} from here on"
                );
            }
            Self::Unmeasured { signal } => warn!(
                target: "headway", signal,
                "the trainer did not report what the adaptive bound follows: it stays where it is"
            ),
            _ => self.log_weights(),
        }
    }

    /// What is about replicas and weights.
    fn log_weights(&self) {
        match self {
            Self::Published { publication, version, window } => info!(
                target: "headway", publication = publication.0, version, window_sec = seconds(*window),
                "weights have reached every replica"
            ),
            Self::PublicationFailed { publication, version, window, again } => warn!(
                target: "headway", publication = publication.0, version, window_sec = seconds(*window), again,
                "a publication failed"
            ),
            Self::WeightsFailed { publication, replica, what } => {
                let replica = replica.map(|replica| replica.0);
                warn!(target: "headway", publication = publication.0, replica, "{what}");
            }
            Self::ReplicaUp { replica, version } => {
                info!(target: "headway", replica = replica.0, version, "a replica is up");
            }
            Self::ReplicaDown { replica } => {
                warn!(target: "headway", replica = replica.0, "a replica is down");
            }
            Self::RolledBack { checkpoint } => warn!(
                target: "headway", checkpoint,
                "the learner is back at an older checkpoint; samples of lost policies are discarded"
            ),
            Self::Checkpointed { version } => {
                info!(target: "headway", version, "a checkpoint is on disk");
            }
            _ => {}
        }
    }
}

fn log_guard(report: &Report) {
    match report.verdict {
        Verdict::RollBack => error!(
            target: "headway",
            "the run has left its envelope, and goes back to the previous configuration: {report}"
        ),
        Verdict::Deviates => warn!(target: "headway", "the run has left its envelope: {report}"),
        _ => info!(target: "headway", "the run is back in its envelope"),
    }
}

fn log_step(summary: &StepSummary) {
    let StepSummary { step, ok, version, samples, staleness_max, .. } = summary;
    if !ok {
        return warn!(target: "headway", step = step.0, version, "a train step failed");
    }
    let round = |value: f64| (value * 1e4).round() / 1e4;
    info!(
        target: "headway", step = step.0, version, samples,
        staleness_mean = round(summary.staleness_mean),
        staleness_max,
        reward_mean = round(summary.reward_mean),
        train_rollout_logprob_abs_diff = summary.logprob_diff,
        "a train step"
    );
}

fn log_blocked(stall: &str, since: Span, only_side: Option<u64>, expected: bool) {
    let since_sec = since.as_secs_f64().round();
    match only_side {
        Some(requests) => warn!(
            target: "headway", since_sec, requests,
            "nothing trains: all traffic is side turns; a turn trains with the header \
             `X-Turn-Type: main`"
        ),
        None if expected => info!(target: "headway", since_sec, "no step; {stall}"),
        None => warn!(target: "headway", since_sec, "no step; {stall}"),
    }
}

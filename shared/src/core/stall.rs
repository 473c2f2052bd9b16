//! Why nothing is trained: the loop that blocks.

use std::fmt;

use super::{SampleState, Scheduler};
use crate::action::RunError;
use crate::config::{Choice, GateKind};

/// What the trainer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// The run has ended.
    Ended(RunError),
    /// An operator has paused the run.
    Paused,
    /// No replica holds whole weights.
    NoReplica,
    /// Weights are on their way, and requests are answered with 503 until they are there.
    Publishing,
    /// Nothing that trains has been asked for: every request so far was a side turn, or there was
    /// none.
    NoMainRequest,
    /// Requests are waiting, and the gate has no place for them.
    Gate {
        /// The gate.
        gate: GateKind,
        /// How many wait.
        held: u64,
    },
    /// Samples are being generated.
    Serving {
        /// How many.
        samples: u64,
    },
    /// Samples wait for their next state, or for the end of their session.
    Environment {
        /// How many, parked ones included.
        samples: u64,
    },
    /// Samples are being judged, or wait for it.
    Judging {
        /// How many.
        samples: u64,
        /// Votes in flight.
        votes: u64,
    },
    /// Samples wait for their group mates.
    GroupMates {
        /// How many.
        samples: u64,
    },
    /// The filter discards every group.
    Filter {
        /// How many in a row.
        groups: u64,
    },
    /// A train step is running.
    Step,
    /// Too few entries are ready for a batch.
    Batch {
        /// Samples or groups that are ready.
        ready: u64,
        /// Samples or groups that a batch needs.
        batch: u64,
    },
}

/// Fewer filtered groups in a row may be chance.
const FILTERED_IN_A_ROW: u64 = 8;

impl Stall {
    /// The loop that blocks.
    #[must_use]
    pub const fn blocking_loop(self) -> &'static str {
        match self {
            Self::Ended(_) | Self::Paused => "the run",
            Self::NoMainRequest => "clients",
            Self::NoReplica | Self::Publishing | Self::Gate { .. } | Self::Serving { .. } => {
                "policy serving"
            }
            Self::Environment { .. } => "environment hosting",
            Self::Judging { .. } => "reward judging",
            Self::Step | Self::GroupMates { .. } | Self::Filter { .. } | Self::Batch { .. } => {
                "policy training"
            }
        }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks: ", self.blocking_loop())?;
        match self {
            Self::Ended(error) => write!(f, "it has ended ({error})"),
            Self::Paused => write!(f, "an operator has paused it"),
            Self::NoReplica => write!(f, "no replica holds whole weights"),
            Self::Publishing => write!(f, "weights are being updated"),
            Self::NoMainRequest => write!(f, "no main turn has been asked for"),
            Self::Gate { gate, held } => {
                write!(f, "the gate `{}` has no place for {held} held requests", gate.word())
            }
            Self::Serving { samples } => write!(f, "{samples} samples are being generated"),
            Self::Environment { samples } => {
                write!(f, "{samples} samples wait for what follows their turn")
            }
            Self::Judging { samples, votes } => {
                write!(f, "{samples} samples wait for their score, with {votes} votes in flight")
            }
            Self::GroupMates { samples } => {
                write!(f, "{samples} scored samples wait for their group mates")
            }
            Self::Filter { groups } => write!(
                f,
                "{groups} groups in a row had equal scores, and `filter = \"zero_variance\"` \
                 discards such groups"
            ),
            Self::Step => write!(f, "a train step has not ended"),
            Self::Batch { ready, batch } => {
                write!(f, "{ready} are ready and a batch needs {batch}, and no more are coming")
            }
        }
    }
}

impl Scheduler {
    /// What the trainer waits for.
    ///
    /// It names where most of what is admitted is, so it is a diagnosis of a run that stands still,
    /// and of a running one no more than a hint.
    #[must_use]
    pub fn stall(&self) -> Stall {
        if let Some(error) = self.ended {
            return Stall::Ended(error);
        }
        if self.trainer.is_training() {
            return Stall::Step;
        }
        if self.operator_paused {
            return Stall::Paused;
        }
        if self.replicas.totals().up == 0 {
            return Stall::NoReplica;
        }
        let groups = self.ledger.filtered_in_a_row;
        if groups >= FILTERED_IN_A_ROW {
            return Stall::Filter { groups };
        }
        let count = |states: &[SampleState]| -> u64 {
            states.iter().map(|&state| self.ledger.count(state)).sum()
        };
        let ready = u64::from(self.output.entries);
        let batch = u64::from(self.config.policy_training.batch_size);
        let stages = [
            Stall::Serving { samples: count(&[SampleState::Generating]) },
            Stall::Environment {
                samples: count(&[
                    SampleState::AwaitingState,
                    SampleState::AwaitingSessionEnd,
                    SampleState::Parked,
                ]),
            },
            Stall::Judging {
                samples: count(&[
                    SampleState::RolloutBlocked,
                    SampleState::RolloutQueue,
                    SampleState::Judging,
                ]),
                votes: self.votes.len() as u64,
            },
            Stall::GroupMates { samples: count(&[SampleState::GroupWait]) },
        ];
        let samples = |stage: &Stall| match *stage {
            Stall::Serving { samples }
            | Stall::Environment { samples }
            | Stall::Judging { samples, .. }
            | Stall::GroupMates { samples } => samples,
            _ => 0,
        };
        let awaits_push = ready >= batch && self.push_is_due();
        let fullest = stages.into_iter().max_by_key(samples).filter(|stage| samples(stage) > 0);
        match fullest {
            Some(stage) => stage,
            None if self.weights.gate_closed() || awaits_push => Stall::Publishing,
            None if self.ledger.held > 0 => {
                let gate = self.config.policy_training.gate;
                Stall::Gate { gate, held: self.ledger.held }
            }
            None if self.ledger.offered == 0 => Stall::NoMainRequest,
            None => Stall::Batch { ready, batch },
        }
    }
}

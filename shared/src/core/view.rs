//! What a driver may see of the core.

use serde::{Deserialize, Serialize};

use super::{Ledger, Resolved, Sample, Scheduler};
use crate::action::RunError;
use crate::config::Config;
use crate::id::{PublicationId, ReplicaId, RequestId, SampleId, SessionId};
use crate::time::Time;
use crate::version::{DeployVersion, LearnerVersion};

/// What is where, now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gauges {
    /// Turns being generated, side turns included.
    pub running: u32,
    /// Requests waiting for a place.
    pub held: u32,
    /// Samples in the rollout queue.
    pub rollout_queue: u32,
    /// Samples in the output queue.
    pub output_queue: u32,
    /// Votes in flight.
    pub votes: u32,
    /// Environments in use.
    pub environments: u32,
    /// Samples outstanding.
    pub outstanding: u32,
    /// Samples parked.
    pub parked: u32,
    /// A train step is running.
    pub training: bool,
    /// New requests are answered with 503.
    pub closed: bool,
    /// Replicas that hold whole weights.
    pub replicas_up: u32,
    /// Of these, replicas with at least one turn running.
    pub replicas_busy: u32,
    /// Sum over replicas that are up of their publish lag.
    pub publish_lag_sum: u32,
    /// What the gate binds now, in learner versions: η, for gates that have one.
    pub bound: u32,
}

/// A replica, as the core sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaView {
    /// What it holds.
    pub deploy: DeployVersion,
    /// It holds whole weights.
    pub up: bool,
    /// It takes new turns.
    pub open: bool,
    /// Turns running on it.
    pub running: u32,
}

/// Getters.
impl Scheduler {
    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The latest time it was given.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The learner's version.
    #[must_use]
    pub fn learner(&self) -> LearnerVersion {
        self.learner
    }

    /// The counters.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Why the run cannot go on, if so.
    #[must_use]
    pub fn error(&self) -> Option<RunError> {
        self.ended
    }

    /// What is where, now.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        let totals = self.replicas.totals();
        Gauges {
            running: totals.running,
            held: self.ledger.held as u32,
            rollout_queue: self.rollout.samples,
            output_queue: self.output.samples,
            votes: self.votes.len() as u32,
            environments: self.environments,
            outstanding: self.ledger.outstanding() as u32,
            parked: self.ledger.parked() as u32,
            training: self.trainer.is_training(),
            closed: self.closed(),
            replicas_up: totals.up,
            replicas_busy: totals.busy,
            publish_lag_sum: totals.publish_lag(self.learner),
            bound: self.bound_steps(),
        }
    }

    /// An operator has wished for a publication, and it has not yet reached every replica.
    #[must_use]
    pub fn publication_wished(&self) -> bool {
        self.weights.wished
    }

    /// The publication under way.
    #[must_use]
    pub fn publication(&self) -> Option<PublicationId> {
        self.weights.current.map(|publication| publication.id())
    }

    /// New requests are answered with 503 because replicas load weights: a sync window.
    #[must_use]
    pub fn in_sync_window(&self) -> bool {
        self.weights.gate_closed()
    }

    /// A replica, if it is known.
    #[must_use]
    pub fn replica(&self, replica: ReplicaId) -> Option<ReplicaView> {
        let replica = &self.replicas[self.replica_index(replica)?];
        Some(ReplicaView {
            deploy: replica.deploy,
            up: replica.up(),
            open: replica.open(),
            running: replica.turns.len(),
        })
    }

    /// A request that is held, runs, or waits to run again, or whose abort has not ended.
    #[must_use]
    pub fn knows(&self, request: RequestId) -> bool {
        self.turn_of.get(request.0).is_some()
    }

    /// How many requests it [knows](Self::knows).
    #[must_use]
    pub fn requests(&self) -> usize {
        self.turns.len()
    }

    /// A session has begun and not ended.
    #[must_use]
    pub fn session_is_open(&self, session: SessionId) -> bool {
        self.session_of.get(session.0).is_some()
    }

    /// The samples of the step that is training, in batch order; empty when none is.
    pub fn batch(&self) -> impl Iterator<Item = &Sample> {
        self.trainer.batch.iter().map(|&slot| &self.samples[slot].sample)
    }

    /// The samples that left the ledger during the last [`handle`](Self::handle), in order.
    #[must_use]
    pub fn resolved(&self) -> &[Resolved] {
        &self.resolved
    }

    /// An admitted sample that has not left the ledger.
    #[must_use]
    pub fn sample(&self, id: SampleId) -> Option<&Sample> {
        Some(&self.samples[self.slot_of_sample(id)?].sample)
    }
}

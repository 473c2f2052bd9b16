//! The state machine's surface.

use serde::{Deserialize, Serialize};

use crate::action::{Action, Discard};
use crate::config::Config;
use crate::core::{Ledger, Sample};
use crate::id::ReplicaId;
use crate::input::Input;
use crate::time::Time;
use crate::version::{DeployVersion, LearnerVersion};

/// What became of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// Trained, in a step that made a new version.
    Trained,
    /// Discarded.
    Discarded(Discard),
}

/// A sample that left the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// The sample, as it was.
    pub sample: Sample,
    /// What became of it.
    pub fate: Fate,
}

/// What is where, now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
}

/// A replica, as the core sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaView {
    /// What it holds.
    pub deploy: DeployVersion,
    /// It holds whole weights.
    pub up: bool,
    /// Turns running on it.
    pub running: u32,
}

/// The scheduling core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scheduler {
    config: Config,
}

impl Scheduler {
    /// A scheduler at learner version 0, with no replica.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config }
    }

    /// One fact from outside. `now` never goes backwards (an earlier one counts as the latest).
    pub fn handle(&mut self, now: Time, input: &Input) {
        let _ = (now, input);
    }

    /// The next decision; drain it to `None` after each [`handle`](Self::handle).
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        None
    }

    /// When to call `handle(now, &Input::Tick)` at the latest. Any `handle` can change it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The learner's version.
    #[must_use]
    pub fn learner(&self) -> LearnerVersion {
        LearnerVersion::default()
    }

    /// The counters.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        unreachable!()
    }

    /// What is where, now.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        Gauges::default()
    }

    /// A replica, if it is known.
    #[must_use]
    pub fn replica(&self, replica: ReplicaId) -> Option<ReplicaView> {
        let _ = replica;
        None
    }

    /// The samples of the step that is training, in batch order; empty when none is.
    pub fn batch(&self) -> impl Iterator<Item = &Sample> {
        std::iter::empty()
    }

    /// The samples that left the ledger during the last [`handle`](Self::handle), in order.
    #[must_use]
    pub fn resolved(&self) -> &[Resolved] {
        &[]
    }

    /// An admitted sample that has not left the ledger.
    #[must_use]
    pub fn sample(&self, id: crate::id::SampleId) -> Option<&Sample> {
        let _ = id;
        None
    }
}

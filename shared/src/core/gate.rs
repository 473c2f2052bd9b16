//! The rules that admit requests, one file each.
//!
//! A gate says how many more places a replica may take. It sees counts by state and versions,
//! never the samples themselves, and keeps what its own rule needs to remember.

mod areal;
mod headway;
mod none;
mod openclaw;
mod sync;

use serde::{Deserialize, Serialize};

use crate::config::{Config, GateKind};
use areal::Areal;

/// What a gate may look at. Places, batches and entries are samples, or groups where
/// `group_size` is above 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateView {
    /// η.
    pub(crate) eta: i64,
    /// Places per train step (B).
    pub(crate) batch: i64,
    /// The replica's version.
    pub(crate) deploy: i64,
    /// Publish lag of the replica.
    pub(crate) lag: i64,
    /// Places admitted and not yet trained or discarded.
    pub(crate) outstanding: i64,
    /// Of these, places whose result is not known yet.
    pub(crate) unresolved: i64,
    /// `max_concurrent_rollouts`.
    pub(crate) max_concurrent: i64,
}

/// The gate in force.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Gate {
    Headway,
    Areal(Areal),
    Openclaw,
    Sync,
    None,
}

impl Gate {
    /// The gate of a configuration, for a run whose learner is at version `learner`.
    pub(crate) fn new(config: &Config, learner: u32) -> Self {
        match config.policy_training.gate {
            GateKind::Headway => Self::Headway,
            GateKind::Areal => Self::Areal(Areal::at(learner, config.policy_training.batch_size)),
            GateKind::Openclaw => Self::Openclaw,
            GateKind::Sync => Self::Sync,
            GateKind::None
            | GateKind::Verl
            | GateKind::Roll
            | GateKind::PrimeRl
            | GateKind::Skyrl
            | GateKind::NemoRlWindow
            | GateKind::PipelineRl
            | GateKind::OneStepOff
            | GateKind::SlimeTrainAsync => Self::None,
        }
    }

    /// How many more places the replica may take; none if it is not positive.
    pub(crate) fn capacity(&self, view: &GateView) -> i64 {
        match self {
            Self::Headway => headway::capacity(view),
            Self::Areal(areal) => areal.capacity(view),
            Self::Openclaw => openclaw::capacity(),
            Self::Sync => sync::capacity(view),
            Self::None => none::capacity(),
        }
    }

    /// The gate answers 503, whatever the capacity.
    pub(crate) fn window_closed(&self, ready: i64, batch: i64) -> bool {
        matches!(self, Self::Openclaw) && openclaw::window_closed(ready, batch)
    }

    /// A train step may start while weights are being published.
    pub(crate) fn trains_while_publishing(&self) -> bool {
        !matches!(self, Self::Openclaw | Self::Sync)
    }

    /// A drain takes the whole output queue and loses what does not fit into the batch.
    pub(crate) fn loses_surplus(&self) -> bool {
        matches!(self, Self::Openclaw)
    }

    /// A short step must leave nothing outstanding that would exceed the bound by it.
    pub(crate) fn guards_short_steps(&self) -> bool {
        matches!(self, Self::Headway | Self::Sync)
    }

    /// A result was accepted.
    pub(crate) fn accepted(&mut self) {
        if let Self::Areal(areal) = self {
            areal.accepted();
        }
    }
}

//! The rules that admit requests, one file each.
//!
//! A gate says how many more places a replica may take. It sees counts by state and versions,
//! never the samples themselves, and keeps what its own rule needs to remember.

mod areal;
mod headway;
mod nemo_rl_window;
mod none;
mod one_step_off;
mod openclaw;
mod pipeline_rl;
mod prime_rl;
mod roll;
mod skyrl;
mod slime_train_async;
mod sync;
mod verl;

use serde::{Deserialize, Serialize};

use crate::action::Discard;
use crate::config::{Config, GateKind};
use areal::Areal;
use pipeline_rl::PipelineRl;
use roll::Roll;
use skyrl::Skyrl;
use verl::Verl;

/// What a gate may look at. Places, batches and entries are samples, or groups where
/// `group_size` is above 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateView {
    /// η, or what the gate binds instead.
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
    /// Of these, places of the batch in training.
    pub(crate) training: i64,
    /// `max_concurrent_rollouts`.
    pub(crate) max_concurrent: i64,
    /// Places that over-sampling adds to what the rule gives.
    pub(crate) reserve: i64,
}

/// Where a run stands when a gate begins to count, in places.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    /// The learner's version: steps done.
    pub(crate) learner: u32,
    /// The newest weights that are served.
    pub(crate) deploy: u32,
    /// Admitted and not yet trained or discarded.
    pub(crate) outstanding: i64,
    /// Of these, places whose result is not known yet.
    pub(crate) unresolved: i64,
    /// Of these, places of the batch in training.
    pub(crate) training: i64,
}

impl Standing {
    /// Under way, or queued.
    fn waiting(self) -> i64 {
        self.outstanding - self.training
    }

    /// All that was ever admitted and not discarded, at a batch per step.
    fn submitted(self, batch: i64) -> i64 {
        batch.saturating_mul(i64::from(self.learner)).saturating_add(self.outstanding)
    }

    /// Of these, what has its result.
    fn completed(self, batch: i64) -> i64 {
        self.submitted(batch) - self.unresolved
    }
}

/// The gate in force.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Gate {
    Headway,
    Areal(Areal),
    Openclaw,
    Verl(Verl),
    Roll(Roll),
    PrimeRl,
    Skyrl(Skyrl),
    NemoRlWindow,
    PipelineRl(PipelineRl),
    OneStepOff,
    SlimeTrainAsync,
    Sync,
    None,
}

/// What it decides.
impl Gate {
    /// The gate of a configuration, for a run that stands so.
    pub(crate) fn new(config: &Config, standing: Standing) -> Self {
        let batch = i64::from(config.policy_training.batch_size);
        match config.policy_training.gate {
            GateKind::Headway => Self::Headway,
            GateKind::Areal => {
                Self::Areal(Areal::at(standing.learner, config.policy_training.batch_size))
            }
            GateKind::Openclaw => Self::Openclaw,
            GateKind::Verl => Self::Verl(Verl::new(config.verl_budget(), standing)),
            GateKind::Roll => Self::Roll(Roll::new(config.roll_ahead(), batch, standing)),
            GateKind::PrimeRl => Self::PrimeRl,
            GateKind::Skyrl => Self::Skyrl(Skyrl::new(batch, standing)),
            GateKind::NemoRlWindow => Self::NemoRlWindow,
            GateKind::PipelineRl => {
                Self::PipelineRl(PipelineRl::new(config.pipeline_rl_budget(), batch, standing))
            }
            GateKind::OneStepOff => Self::OneStepOff,
            GateKind::SlimeTrainAsync => Self::SlimeTrainAsync,
            GateKind::Sync => Self::Sync,
            GateKind::None => Self::None,
        }
    }

    /// A gate of the new configuration would count from other numbers.
    pub(crate) fn changes(old: &Config, new: &Config) -> bool {
        let numbers = |config: &Config| {
            let training = &config.policy_training;
            let own = match training.gate {
                GateKind::Verl => config.verl_budget(),
                GateKind::Roll => config.roll_ahead(),
                GateKind::PipelineRl => config.pipeline_rl_budget(),
                _ => 0,
            };
            (training.gate, training.batch_size, own)
        };
        numbers(old) != numbers(new)
    }

    /// How many more places the replica may take; none if it is not positive.
    pub(crate) fn capacity(&self, view: &GateView) -> i64 {
        let places = self.rule(view);
        // There is a reserve only for weights that the rule admits: over-sampling opens no gate
        // that is shut whatever is outstanding.
        if places > 0 { places } else { places.saturating_add(view.reserve) }
    }

    fn rule(&self, view: &GateView) -> i64 {
        match self {
            Self::Headway => headway::capacity(view),
            Self::Areal(areal) => areal.capacity(view),
            Self::Openclaw => openclaw::capacity(),
            Self::Verl(verl) => verl.capacity(view),
            Self::Roll(roll) => roll.capacity(view),
            Self::PrimeRl => prime_rl::capacity(),
            Self::Skyrl(skyrl) => skyrl.capacity(view),
            Self::NemoRlWindow => nemo_rl_window::capacity(),
            Self::PipelineRl(pipeline) => pipeline.capacity(view),
            Self::OneStepOff => one_step_off::capacity(view),
            Self::SlimeTrainAsync => slime_train_async::capacity(view),
            Self::Sync => sync::capacity(view),
            Self::None => none::capacity(),
        }
    }

    /// What a rule that counts for itself has counted, and what it allowed before the first step.
    pub(crate) fn own_counts(&self) -> Option<(i64, i64)> {
        match self {
            Self::Areal(areal) => Some((areal.counted(), 0)),
            Self::Verl(verl) => Some(verl.counts()),
            Self::Roll(roll) => Some(roll.counts()),
            Self::Skyrl(skyrl) => Some((skyrl.counted(), 0)),
            Self::PipelineRl(pipeline) => Some(pipeline.counts()),
            _ => None,
        }
    }

    /// The gate answers 503, whatever the capacity.
    pub(crate) fn window_closed(&self, ready: i64, batch: i64) -> bool {
        matches!(self, Self::Openclaw) && openclaw::window_closed(ready, batch)
    }

    /// A train step may start while weights are being published.
    pub(crate) fn trains_while_publishing(&self) -> bool {
        matches!(self, Self::Headway | Self::Areal(_) | Self::PrimeRl | Self::None)
    }

    /// Weights that are due are pushed when the next batch is complete, and its step waits for
    /// them.
    pub(crate) fn pushes_before_step(&self) -> bool {
        matches!(self, Self::OneStepOff | Self::SlimeTrainAsync)
    }

    /// A drain takes the whole output queue and loses what does not fit into the batch.
    pub(crate) fn loses_surplus(&self) -> bool {
        matches!(self, Self::Openclaw)
    }

    /// A short step must leave nothing outstanding that would exceed the bound by it.
    pub(crate) fn guards_short_steps(&self) -> bool {
        matches!(self, Self::Headway | Self::Sync | Self::OneStepOff | Self::SlimeTrainAsync)
    }

    /// What is above the bound is discarded in the output queue only, and on its arrival there.
    pub(crate) fn evicts_in_buffer(&self) -> bool {
        matches!(self, Self::NemoRlWindow)
    }

    /// A sample that is too old takes its whole group with it.
    pub(crate) fn discards_whole_groups(&self) -> bool {
        matches!(self, Self::PrimeRl | Self::NemoRlWindow)
    }
}

/// What it counts.
impl Gate {
    /// A place was admitted, or came back from parking.
    pub(crate) fn took_place(&mut self) {
        match self {
            Self::Verl(verl) => verl.took_place(),
            Self::PipelineRl(pipeline) => pipeline.submitted(1),
            _ => {}
        }
    }

    /// A result was accepted.
    pub(crate) fn accepted(&mut self) {
        match self {
            Self::Areal(areal) => areal.accepted(),
            Self::Roll(roll) => roll.completed(1),
            Self::Skyrl(skyrl) => skyrl.accepted(1),
            _ => {}
        }
    }

    /// A result found the output queue full and was dropped: AReaL has counted it.
    pub(crate) fn dropped_on_arrival(&mut self) {
        if let Self::Areal(areal) = self {
            areal.accepted();
        }
    }

    /// A place was discarded, after its result was accepted or before.
    pub(crate) fn discarded(&mut self, was_accepted: bool, reason: Discard) {
        let accepted = i64::from(was_accepted);
        match self {
            Self::Verl(verl) if reason != Discard::OutputQueueFull => verl.gave_back(),
            Self::Roll(roll) => roll.completed(-accepted),
            Self::Skyrl(skyrl) => skyrl.accepted(-accepted),
            Self::PipelineRl(pipeline) => pipeline.submitted(-1),
            _ => {}
        }
    }

    /// A place was parked: it will be taken again, or never.
    pub(crate) fn parked(&mut self) {
        self.discarded(false, Discard::StaleParked);
    }

    /// So many rejected results hold a place, as `batch_counts = "results"` has it; or, if negative,
    /// hold it no longer.
    pub(crate) fn rejected(&mut self, places: i64) {
        match self {
            Self::Roll(roll) => roll.completed(places),
            Self::Skyrl(skyrl) => skyrl.accepted(places),
            Self::PipelineRl(pipeline) => pipeline.submitted(places),
            Self::Verl(verl) => verl.rejected(places),
            _ => {}
        }
    }

    /// New weights are served.
    pub(crate) fn weights_served(&mut self, standing: Standing) {
        if let Self::Verl(verl) = self {
            verl.weights_served(standing);
        }
    }
}

//! A trainer in this process, on libtorch: GRPO with the off-policy corrections of
//! [`headway_shared::ratio`], AdamW, checkpoints.
//!
//! A step scores its batch under the parameters as they are (proximal) and under the copy that
//! serving holds (deploy), then updates with each part of the batch in turn; a token's learner
//! log-probability is the one its own update saw. Every step reports what its ratios were, by both
//! their ends and by staleness; some also run the lag probe: the batch under up to 16 earlier
//! parameters.

mod adamw;
mod checkpoint;
mod export;
mod gaps;
mod learner;
mod loss;
mod metrics;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use headway_shared::id::StepId;
use headway_shared::version::LearnerVersion;
use tch::Device;

pub use self::adamw::AdamW;
pub use self::export::Exports;
use self::learner::{Habits, Learner, Step};
use super::{Probe, Trainer, TrainerCommand, TrainerEvent, TrainerMailbox};
use crate::engine::{Export, Weights};
use crate::model::{ModelError, Net, Shape};

/// The most snapshots that the lag probe has a use for.
pub const MAX_SNAPSHOTS: usize = 16;

/// What a trainer is made of.
#[derive(Clone, Debug)]
pub struct TchTrainer {
    /// The model's sizes.
    pub shape: Shape,
    /// Where it computes; see [`device`](crate::model::device).
    pub device: Device,
    /// The parameters to begin with, where there is no checkpoint.
    pub fresh: Arc<Weights>,
    /// Where checkpoints are; `None`: there are none, and none can be written.
    pub checkpoints: Option<PathBuf>,
    /// Where weights are written for engines of other processes; `None`: the engine is in this one.
    pub exports: Option<Exports>,
    /// How parameters are updated.
    pub optimizer: AdamW,
    /// The temperature that the engines sample with; above 0.
    pub temperature: f64,
    /// How many earlier parameters are kept, at most [`MAX_SNAPSHOTS`]. They are what a deployed
    /// copy is scored by, and the lag probe.
    pub snapshots: usize,
    /// Every how many steps the lag probe runs; 0: never.
    pub probe_interval: u32,
    /// Called around the writing of a checkpoint: tests end the process there.
    pub probe: Probe,
}

impl TchTrainer {
    /// A trainer that keeps 16 snapshots and no checkpoints, and runs the lag probe every 10 steps.
    #[must_use]
    pub fn new(shape: Shape, device: Device, fresh: Arc<Weights>) -> Self {
        Self {
            shape,
            device,
            fresh,
            checkpoints: None,
            exports: None,
            optimizer: AdamW::default(),
            temperature: 1.0,
            snapshots: MAX_SNAPSHOTS,
            probe_interval: 10,
            probe: Probe::default(),
        }
    }

    fn begin(&self) -> Result<Learner, ModelError> {
        let folder = self.checkpoints.as_deref();
        let found = folder.and_then(|at| checkpoint::newest(at, &self.shape, self.device));
        match found {
            Some(found) => Ok(found),
            None => {
                let net = Net::new(&self.shape, &self.fresh, self.device)?;
                Learner::new(net, LearnerVersion::new(0))
            }
        }
    }
}

fn up(learner: &Learner) -> TrainerEvent {
    let step = learner.applied.as_ref().map(|applied| applied.step);
    TrainerEvent::Up { checkpoint: learner.version, step }
}

impl Trainer for TchTrainer {
    fn run(self, mut mailbox: TrainerMailbox) {
        // To return is to be down.
        let mut learner = match self.begin() {
            Ok(begun) => begun,
            Err(error) => return tracing::error!(target: "headway", "the trainer: {error}"),
        };
        let mut event = Some(up(&learner));
        loop {
            if let Some(event) = event.take()
                && mailbox.events.blocking_send(event).is_err()
            {
                return;
            }
            match mailbox.commands.blocking_recv() {
                None | Some(TrainerCommand::Shutdown) => return,
                Some(command) => match self.obey(command, &mut learner) {
                    Ok(said) => event = said,
                    Err(error) => return tracing::error!(target: "headway", "the trainer: {error}"),
                },
            }
        }
    }
}

impl TchTrainer {
    /// An error leaves parameters that nobody knows: the trainer is down.
    fn obey(
        &self,
        command: TrainerCommand,
        learner: &mut Learner,
    ) -> Result<Option<TrainerEvent>, ModelError> {
        Ok(match command {
            TrainerCommand::Step { step, learner: from, deploy, loss, updates, samples } => {
                let interval = self.probe_interval;
                let step = Step {
                    step,
                    learner: from,
                    deploy,
                    loss,
                    updates: updates as usize,
                    samples: &samples,
                    probe: interval > 0 && from.number() % interval == 0,
                };
                Some(self.step(&step, learner))
            }
            TrainerCommand::CancelStep { step } => {
                self.cancel(step, learner)?;
                Some(up(learner))
            }
            TrainerCommand::Save { publication, version } => {
                let weights = learner.weights_of(version).map_err(|error| error.to_string());
                Some(match weights.and_then(|weights| self.hand_over(version, weights)) {
                    Ok(weights) => TrainerEvent::Saved { publication, weights },
                    Err(error) => {
                        tracing::error!(target: "headway", "{publication} could not be exported: {error}");
                        TrainerEvent::SaveFailed { publication }
                    }
                })
            }
            TrainerCommand::Checkpoint => {
                let Some(folder) = self.checkpoints.as_deref() else {
                    return Ok(Some(TrainerEvent::NotCheckpointed));
                };
                let version = learner.version;
                Some(match checkpoint::write(folder, learner, &self.probe) {
                    Ok(()) => TrainerEvent::Checkpointed { version },
                    Err(error) => {
                        tracing::error!(target: "headway", "no checkpoint of {version}: {error}");
                        TrainerEvent::NotCheckpointed
                    }
                })
            }
            TrainerCommand::Shutdown => None,
        })
    }

    /// Weights as the engines take them.
    fn hand_over(&self, version: LearnerVersion, weights: Weights) -> Result<Export, String> {
        match &self.exports {
            Some(exports) => exports.write(version, &weights).map_err(|error| error.to_string()),
            None => Ok(Arc::new(weights).into()),
        }
    }

    /// Undoes a step, if it was the last that was trained, and removes what it left.
    fn cancel(&self, step: StepId, learner: &mut Learner) -> Result<(), ModelError> {
        if learner.applied.as_ref().is_none_or(|applied| applied.step != step) {
            return Ok(());
        }
        if let Some(folder) = &self.checkpoints {
            checkpoint::remove(folder, learner.version);
        }
        if !learner.go_back()? {
            *learner = self.begin()?;
        }
        Ok(())
    }

    fn step(&self, step: &Step<'_>, learner: &mut Learner) -> TrainerEvent {
        let done = learner.applied.as_ref();
        if let Some(done) =
            done.filter(|done| (done.step, done.learner) == (step.step, step.learner))
        {
            let metrics = done.metrics.clone();
            return TrainerEvent::StepEnded { step: step.step, ok: true, metrics };
        }
        let habits = Habits {
            optimizer: self.optimizer,
            temperature: self.temperature,
            snapshots: self.snapshots.min(MAX_SNAPSHOTS),
        };
        let (ok, metrics) = match learner.train(step, &habits) {
            Ok(metrics) => (true, metrics),
            Err(error) => {
                tracing::error!(target: "headway", "{} failed: {error}", step.step);
                (false, Vec::new())
            }
        };
        TrainerEvent::StepEnded { step: step.step, ok, metrics }
    }
}

//! What a trainer receives and sends.
//!
//! A trainer holds the learner's parameters. It lives on a thread of its own ([`spawn`]), takes
//! [`TrainerCommand`]s in order and sends [`TrainerEvent`]s. It begins with its newest checkpoint
//! (or fresh parameters) and says so with [`TrainerEvent::Up`]. Versions are the core's: a command
//! says which version the parameters are, and after a rollback they go on upward: until it has
//! trained a step, what a trainer holds is what the first command calls it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::thread;

use headway_shared::id::{GroupId, PublicationId, SampleId, StepId};
use headway_shared::ratio::Loss;
use headway_shared::version::{DeployVersion, LearnerVersion, RolloutVersion};
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::driver::Point;
use crate::engine::Export;

pub mod external;
mod sequences;
#[cfg(feature = "torch")]
pub mod tch;

pub use sequences::{advantages, by_sample};

/// A sample as the trainer sees it: the prompts and what was generated, token by token. The four
/// lists are equally long.
///
/// A trajectory whose turns are not one sequence comes as several of these in a row, with the same
/// identity, group, reward and mask: they count as one sample (see [`advantages`]).
#[derive(Clone, Debug, PartialEq)]
pub struct TrainSample {
    /// The sample.
    pub id: SampleId,
    /// Its group, where `group_size` is above 1.
    pub group: Option<GroupId>,
    /// Every token: prompts, what was generated, and what followed it.
    pub tokens: Vec<u32>,
    /// Which tokens the policy generated: only these carry loss.
    pub loss_mask: Vec<bool>,
    /// Log-probabilities as recorded at generation; meaningless where `loss_mask` is false.
    pub rollout_logprobs: Vec<f32>,
    /// Versions as stamped at generation; meaningless where `loss_mask` is false.
    pub versions: Vec<RolloutVersion>,
    /// Its score; 1 is a full reward.
    pub reward: f64,
    /// It has a place in the batch and no gradient.
    pub masked: bool,
}

/// What a trainer is told.
#[derive(Clone, Debug)]
pub enum TrainerCommand {
    /// Train one step. Ends with [`TrainerEvent::StepEnded`]. Told again, it is answered again and
    /// not trained again.
    Step {
        /// The step.
        step: StepId,
        /// The version that it starts from; the next one is what it makes. Where the step before
        /// started from the same, that one counts as failed: the parameters go back first.
        learner: LearnerVersion,
        /// The newest version that a serving replica holds; `None`: there is none.
        deploy: Option<DeployVersion>,
        /// The off-policy correction, as the configuration has it now.
        loss: Loss,
        /// Optimizer updates, each with its part of the samples.
        updates: u32,
        /// Its samples, in batch order.
        samples: Vec<TrainSample>,
    },
    /// The step counts as failed, whatever became of it: it took too long. The parameters go back
    /// to what they were before it, and a checkpoint that it made is removed. Ends with
    /// [`TrainerEvent::Up`], also where the step is unknown.
    CancelStep {
        /// The step.
        step: StepId,
    },
    /// Export the parameters of `version`, also where a step has been made since. Ends with
    /// [`TrainerEvent::Saved`] or [`TrainerEvent::SaveFailed`].
    Save {
        /// The publication.
        publication: PublicationId,
        /// The version.
        version: LearnerVersion,
    },
    /// Write a checkpoint now, under the version that the last step made, or that of the checkpoint
    /// it began with. Ends with [`TrainerEvent::Checkpointed`] or
    /// [`TrainerEvent::NotCheckpointed`].
    Checkpoint,
    /// End the thread.
    Shutdown,
}

/// A number that a step reports.
#[derive(Clone, Debug, PartialEq)]
pub struct StepMetric {
    /// Its name, such as `learner_rollout_p99`.
    pub name: Cow<'static, str>,
    /// It is about the tokens of this staleness; `None`: about the whole step.
    pub staleness: Option<u32>,
    /// The number.
    pub value: f64,
}

/// What a trainer says.
#[derive(Clone, Debug, PartialEq)]
pub enum TrainerEvent {
    /// It is ready, and holds these parameters.
    Up {
        /// Their version, at the start that of the checkpoint; 0: fresh parameters.
        checkpoint: LearnerVersion,
        /// The step that made them, if one did: where the run was
        /// killed between the checkpoint and the record, it tells that the step is done.
        step: Option<StepId>,
    },
    /// A step ended.
    StepEnded {
        /// The step.
        step: StepId,
        /// Whether it made a new version; if not, the parameters are what they were.
        ok: bool,
        /// What it measured.
        metrics: Vec<StepMetric>,
    },
    /// The parameters are exported.
    Saved {
        /// The publication.
        publication: PublicationId,
        /// The parameters.
        weights: Export,
    },
    /// They could not be exported.
    SaveFailed {
        /// The publication.
        publication: PublicationId,
    },
    /// A checkpoint of this version is whole on disk.
    Checkpointed {
        /// The version.
        version: LearnerVersion,
    },
    /// The checkpoint that was asked for could not be written, or there is no place for any.
    NotCheckpointed,
    /// The trainer is gone: the step and the export in flight have failed. Sent by [`spawn`] when
    /// the thread ends.
    Down,
}

/// Called at each [`Point`] of writing a checkpoint.
#[derive(Clone, Default)]
pub struct Probe(pub Option<Arc<dyn Fn(Point) + Send + Sync>>);

impl Probe {
    /// The trainer is here.
    pub fn at(&self, point: Point) {
        if let Some(probe) = &self.0 {
            probe(point);
        }
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probe")
    }
}

/// What a trainer's thread holds of the outside.
#[derive(Debug)]
pub struct TrainerMailbox {
    /// Commands. Closed: the run is over.
    pub commands: mpsc::Receiver<TrainerCommand>,
    /// Events.
    pub events: mpsc::Sender<TrainerEvent>,
    /// The run's clock.
    pub clock: Clock,
}

/// A trainer.
pub trait Trainer: Send + 'static {
    /// Trains until it is told to shut down or its commands are closed.
    fn run(self, mailbox: TrainerMailbox);
}

/// A trainer as the driver holds it.
#[derive(Debug)]
pub struct TrainerLink {
    /// Takes commands.
    pub commands: mpsc::Sender<TrainerCommand>,
    /// Gives events.
    pub events: mpsc::Receiver<TrainerEvent>,
}

/// Commands and events that may wait: one step, exports, checkpoints.
const ROOM: usize = 64;

/// Starts a trainer on a thread of its own.
///
/// # Errors
/// What the operating system says where it starts no thread.
pub fn spawn(clock: Clock, trainer: impl Trainer) -> std::io::Result<TrainerLink> {
    let (commands, receiver) = mpsc::channel(ROOM);
    let (sender, events) = mpsc::channel(ROOM);
    let down = Goodbye(sender.clone());
    let mailbox = TrainerMailbox { commands: receiver, events: sender, clock };
    thread::Builder::new().name("trainer".to_owned()).spawn(move || {
        let _down = down;
        trainer.run(mailbox);
    })?;
    Ok(TrainerLink { commands, events })
}

/// Says that the trainer is down, however its thread ends.
struct Goodbye(mpsc::Sender<TrainerEvent>);

impl Drop for Goodbye {
    fn drop(&mut self) {
        // Nobody listens where the run is over.
        let _ = self.0.blocking_send(TrainerEvent::Down);
    }
}

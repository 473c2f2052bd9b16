//! A trainer that follows a script: a step counts its version up, and can write that number to a
//! file as its checkpoint.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use headway_runtime::driver::Point;
use headway_runtime::engine::{WeightTensor, Weights};
use headway_runtime::shared::id::StepId;
use headway_runtime::shared::version::LearnerVersion;
use headway_runtime::trainer::{
    Probe, StepMetric, TrainSample, Trainer, TrainerCommand, TrainerEvent, TrainerMailbox,
};

#[derive(Debug, Default)]
struct State {
    held: bool,
    failing_saves: u32,
    failing_steps: u32,
    /// Versions that were made, trained for a step that was then cancelled.
    undone: Vec<u32>,
    batches: Vec<Vec<TrainSample>>,
    metrics: Vec<StepMetric>,
}

/// A test's hand on the trainer.
#[derive(Clone, Debug, Default)]
pub(super) struct TrainerControl(Arc<(Mutex<State>, Condvar)>);

impl TrainerControl {
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
        result
    }

    /// Steps do not end.
    pub(super) fn hold(&self, held: bool) {
        self.change(|state| state.held = held);
    }

    pub(super) fn fail_saves(&self, times: u32) {
        self.change(|state| state.failing_saves = times);
    }

    pub(super) fn fail_steps(&self, times: u32) {
        self.change(|state| state.failing_steps = times);
    }

    /// What the next steps measure beside the loss.
    pub(super) fn measures(&self, metrics: Vec<StepMetric>) {
        self.change(|state| state.metrics = metrics);
    }

    /// The versions that steps made which were then cancelled.
    pub(super) fn undone(&self) -> Vec<u32> {
        self.change(|state| state.undone.clone())
    }

    /// What was trained on.
    pub(super) fn batches(&self) -> Vec<Vec<TrainSample>> {
        self.change(|state| state.batches.clone())
    }

    fn wait_while_held(&self) {
        let (lock, changed) = &*self.0;
        let held = |state: &mut State| state.held;
        let state = lock.lock().unwrap();
        drop(changed.wait_timeout_while(state, Duration::from_secs(20), held).unwrap());
    }
}

/// The trainer. Its checkpoint is written with every step.
pub(super) struct Scripted {
    pub(super) control: TrainerControl,
    pub(super) checkpoint: Option<PathBuf>,
    pub(super) probe: Probe,
}

impl Trainer for Scripted {
    fn run(self, mut mailbox: TrainerMailbox) {
        let mut version = 0;
        let (mut made_by, mut previous) = (None, None);
        if let Some(text) = self.checkpoint.as_ref().and_then(|path| fs::read_to_string(path).ok())
        {
            let numbers: Vec<u64> = text.split(' ').map(|word| word.parse().unwrap()).collect();
            version = u32::try_from(numbers[0]).unwrap();
            made_by = Some(StepId(numbers[1]));
            previous = numbers.get(2).map(|step| StepId(*step));
        }
        let say = |event| drop(mailbox.events.blocking_send(event));
        say(TrainerEvent::Up { checkpoint: LearnerVersion::new(version), step: made_by });
        while let Some(command) = mailbox.commands.blocking_recv() {
            match command {
                TrainerCommand::Step { step, learner, samples, .. } => {
                    self.control.wait_while_held();
                    let ok = self.control.change(|state| {
                        let fails = state.failing_steps > 0;
                        state.failing_steps = state.failing_steps.saturating_sub(1);
                        if !fails {
                            state.batches.push(samples);
                        }
                        !fails
                    });
                    if ok {
                        version = learner.next().number();
                        previous = made_by.replace(step);
                        self.write(version, made_by, previous);
                    }
                    let mut metrics = self.control.change(|state| state.metrics.clone());
                    metrics.push(StepMetric { name: "loss".into(), staleness: None, value: 0.5 });
                    say(TrainerEvent::StepEnded { step, ok, metrics });
                    if ok && self.checkpoint.is_some() {
                        say(TrainerEvent::Checkpointed { version: LearnerVersion::new(version) });
                    }
                }
                TrainerCommand::CancelStep { step } => {
                    if made_by == Some(step) {
                        self.control.change(|state| state.undone.push(version));
                        (version, made_by) = (version - 1, previous.take());
                        self.write(version, made_by, previous);
                    }
                    let checkpoint = LearnerVersion::new(version);
                    say(TrainerEvent::Up { checkpoint, step: made_by });
                }
                TrainerCommand::Save { publication, version } => {
                    let fails = self.control.change(|state| {
                        let fails = state.failing_saves > 0;
                        state.failing_saves = state.failing_saves.saturating_sub(1);
                        fails
                    });
                    if fails {
                        say(TrainerEvent::SaveFailed { publication });
                        continue;
                    }
                    let data = vec![version.number() as f32];
                    let tensor = WeightTensor { name: "version".into(), shape: vec![1], data };
                    let weights = Arc::new(Weights { tensors: vec![tensor] }).into();
                    say(TrainerEvent::Saved { publication, weights });
                }
                TrainerCommand::Checkpoint => {
                    say(TrainerEvent::Checkpointed { version: LearnerVersion::new(version) });
                }
                TrainerCommand::Shutdown => return,
            }
        }
    }
}

impl Scripted {
    /// Whole or not at all: the version, the step that made it, the step before.
    fn write(&self, version: u32, made_by: Option<StepId>, previous: Option<StepId>) {
        let (Some(path), Some(made_by)) = (&self.checkpoint, made_by) else { return };
        let previous = previous.map_or(String::new(), |step| format!(" {}", step.0));
        let draft = path.with_extension("new");
        self.probe.at(Point::BeforeCheckpoint);
        fs::write(&draft, format!("{version} {}{previous}", made_by.0)).unwrap();
        self.probe.at(Point::BeforeRename);
        fs::rename(&draft, path).unwrap();
        self.probe.at(Point::AfterRename);
    }
}

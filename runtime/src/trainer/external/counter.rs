//! The counter: what is to be done, and who has it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headway_shared::id::{PublicationId, StepId};
use headway_shared::time::{Span, Time};
use headway_shared::version::LearnerVersion;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::book::{Book, Done, Place};
use super::desk::{Call, Denied, Pull, Report, Standing, Task, Written};
use super::wire;
use crate::clock::Clock;
use crate::engine::Export;
use crate::trainer::{TrainerCommand, TrainerEvent};

/// A task that somebody has.
struct Lease {
    name: String,
    trainer: String,
    until: Time,
}

/// A step that is to be done.
struct Step {
    step: StepId,
    version: u32,
    batch: String,
    task: Value,
    lease: Option<Lease>,
}

/// Weights that are to be written.
struct Save {
    publication: PublicationId,
    version: u32,
    lease: Option<Lease>,
}

/// Someone who waits for something to do.
struct Waiting {
    pull: Pull,
    until: Time,
    answer: oneshot::Sender<Result<Option<Task>, Denied>>,
}

/// See [the module above](super).
pub(super) struct Counter {
    events: mpsc::Sender<TrainerEvent>,
    clock: Clock,
    lease: Span,
    path: PathBuf,
    book: Book,
    step: Option<Step>,
    save: Option<Save>,
    waiting: VecDeque<Waiting>,
    leases: u64,
}

impl Counter {
    pub(super) fn new(
        events: mpsc::Sender<TrainerEvent>,
        clock: Clock,
        lease: Span,
        path: PathBuf,
        book: Book,
    ) -> Self {
        let (step, save, waiting) = (None, None, VecDeque::new());
        Self { events, clock, lease, path, book, step, save, waiting, leases: 0 }
    }

    /// Serves both sides until the driver's is closed.
    pub(super) async fn serve(
        mut self,
        mut commands: mpsc::Receiver<TrainerCommand>,
        mut calls: mpsc::Receiver<Call>,
    ) {
        self.up().await;
        loop {
            self.hand_out();
            let timer = self.next_deadline().unwrap_or(Time::MAX);
            let timer = tokio::time::sleep_until(self.clock.instant(timer));
            tokio::select! {
                biased;
                command = commands.recv() => match command {
                    None | Some(TrainerCommand::Shutdown) => return,
                    Some(command) => self.obey(command).await,
                },
                Some(call) = calls.recv() => self.answer(call).await,
                () = timer => {}
            }
        }
    }

    async fn say(&self, event: TrainerEvent) {
        // Nobody listens where the run is over.
        let _ = self.events.send(event).await;
    }

    /// Says what the trainer has reached.
    async fn up(&self) {
        let checkpoint = LearnerVersion::new(self.book.version());
        let step = self.book.done.as_ref().map(|done| StepId(done.step));
        self.say(TrainerEvent::Up { checkpoint, step }).await;
    }

    /// The last step counts as failed. Where the file cannot say so, a restart does.
    fn take_back(&mut self) {
        let mut book = self.book.clone();
        book.take_back();
        if let Err(error) = book.write(&self.path) {
            tracing::error!(target: "headway", "{}: {error}", self.path.display());
        }
        self.book = book;
    }

    async fn obey(&mut self, command: TrainerCommand) {
        match command {
            TrainerCommand::Step { step, learner, deploy, loss, updates, samples } => {
                let batch = wire::batch_name(learner, &samples);
                let task = wire::step(&batch, learner, deploy, &loss, updates, &samples);
                let version = learner.number();
                if let Some(done) = self.book.done.as_ref().filter(|done| done.version == version) {
                    if done.step == step.0 {
                        let (ok, metrics) = (true, Vec::new());
                        return self.say(TrainerEvent::StepEnded { step, ok, metrics }).await;
                    }
                    self.take_back();
                }
                self.step = Some(Step { step, version, batch, task, lease: None });
            }
            TrainerCommand::CancelStep { step } => {
                self.step.take_if(|waiting| waiting.step == step);
                if self.book.done.as_ref().is_some_and(|done| done.step == step.0) {
                    self.take_back();
                }
                self.up().await;
            }
            TrainerCommand::Save { publication, version } => {
                let version = version.number();
                match self.book.place(version) {
                    Some(place) => self.say(saved(publication, &place.path)).await,
                    None => self.save = Some(Save { publication, version, lease: None }),
                }
            }
            // Every report is on disk; what the parameters are is the trainer's to keep.
            TrainerCommand::Checkpoint => {
                let version = LearnerVersion::new(self.book.version());
                self.say(TrainerEvent::Checkpointed { version }).await;
            }
            TrainerCommand::Shutdown => {}
        }
    }

    async fn answer(&mut self, call: Call) {
        // Who asked may have gone.
        match call {
            Call::Pull(pull, answer) => {
                let until = self.clock.now() + pull.wait;
                self.waiting.push_back(Waiting { pull, until, answer });
            }
            Call::Extend(lease, answer) => drop(answer.send(self.extend(&lease))),
            Call::Report(report, answer) => {
                let said = self.report(report).await;
                let _ = answer.send(said);
            }
            Call::Written(written, answer) => {
                let said = self.written(written).await;
                let _ = answer.send(said);
            }
            Call::Standing(answer) => drop(answer.send(self.standing())),
        }
    }

    /// When something changes by itself: a lease or somebody's patience ends.
    fn next_deadline(&self) -> Option<Time> {
        let waits = self.waiting.iter().map(|waiting| waiting.until);
        let leases = [
            self.step.as_ref().and_then(|step| step.lease.as_ref()),
            self.save.as_ref().and_then(|save| save.lease.as_ref()),
        ];
        // A lease that is over changes nothing for those who do not wait.
        let leases = leases.into_iter().flatten().map(|lease| lease.until);
        waits.chain(leases.filter(|_| !self.waiting.is_empty())).min()
    }

    /// Gives what is to be done to those who wait for it.
    fn hand_out(&mut self) {
        let now = self.clock.now();
        for _ in 0..self.waiting.len() {
            let Some(waiting) = self.waiting.pop_front() else { return };
            if waiting.answer.is_closed() {
                continue;
            }
            match self.task_for(&waiting.pull, now) {
                Ok(None) if waiting.until > now => self.waiting.push_back(waiting),
                found => {
                    if waiting.answer.send(found).is_err() {
                        // Whoever it was leased to never got it.
                        self.release(&waiting.pull.trainer);
                    }
                }
            }
        }
    }

    fn task_for(&mut self, pull: &Pull, now: Time) -> Result<Option<Task>, Denied> {
        let free = |lease: &Option<Lease>| {
            lease.as_ref().is_none_or(|held| held.until <= now || held.trainer == pull.trainer)
        };
        let (lease, span) = (self.leases + 1, self.lease);
        let lend = |name: &str| Lease {
            // Unlike any name of this process and of those before it: the run's time goes on.
            name: format!("{name}-{lease}-{}", now.as_nanos()),
            trainer: pull.trainer.clone(),
            until: now + span,
        };
        if let Some(save) = self.save.as_mut().filter(|save| free(&save.lease)) {
            let held = save.lease.insert(lend("save"));
            let task = json!({
                "task": "save",
                "lease": held.name,
                "lease_sec": span.as_secs_f64(),
                "version": save.version,
            });
            self.leases += 1;
            return Ok(Some(task.to_string().into()));
        }
        let Some(step) = self.step.as_mut().filter(|step| free(&step.lease)) else {
            return Ok(None);
        };
        // After a rollback the step starts from an older version's parameters, under a new number.
        let own = [step.version, self.book.version()];
        if pull.version.is_some_and(|version| !own.contains(&version)) {
            return Err(self.other_version(pull.version));
        }
        let held = step.lease.insert(lend("train"));
        let mut task = step.task.clone();
        task["lease"] = json!(held.name);
        task["lease_sec"] = json!(span.as_secs_f64());
        self.leases += 1;
        Ok(Some(task.to_string().into()))
    }

    fn other_version(&self, has: Option<u32>) -> Denied {
        let (has, wants) = (has.unwrap_or(0), self.book.version());
        let load = match self.book.weights.last() {
            Some(place) => format!("version {} is in {}", place.version, place.path),
            None => "no weights were reported yet: version 0 is what the run began with".to_owned(),
        };
        Denied::OtherVersion(format!(
            "this trainer's parameters are version {has}, and the next step starts from version \
             {wants}; load that version ({load})"
        ))
    }

    fn release(&mut self, trainer: &str) {
        let step = self.step.as_mut().map(|step| &mut step.lease);
        let save = self.save.as_mut().map(|save| &mut save.lease);
        for lease in [step, save].into_iter().flatten() {
            lease.take_if(|lease| lease.trainer == trainer);
        }
    }

    fn extend(&mut self, name: &str) -> Result<Span, Denied> {
        let until = self.clock.now() + self.lease;
        let step = self.step.as_mut().and_then(|step| step.lease.as_mut());
        let save = self.save.as_mut().and_then(|save| save.lease.as_mut());
        match [step, save].into_iter().flatten().find(|lease| lease.name == name) {
            Some(lease) => {
                lease.until = until;
                Ok(self.lease)
            }
            None => Err(Denied::LeaseLost(format!(
                "there is no lease {name}: it ended and the task went to another trainer, or was \
                 given up; throw away what was computed and pull again"
            ))),
        }
    }

    async fn report(&mut self, report: Report) -> Result<bool, Denied> {
        let Report { version, batch, lease, ok, metrics, weights } = report;
        let done = self.book.done.as_ref();
        if done.is_some_and(|done| done.version == version && done.batch == batch) {
            return Ok(false);
        }
        let now = self.clock.now();
        let Some(step) =
            self.step.as_ref().filter(|step| step.version == version && step.batch == batch)
        else {
            return Err(self.other_batch(version, &batch));
        };
        if let Some(held) = step.lease.as_ref().filter(|held| held.until > now)
            && lease.as_deref() != Some(held.name.as_str())
        {
            return Err(Denied::LeaseLost(format!(
                "batch {batch} is leased to trainer {} now (lease {}); throw away what was \
                 computed and pull again",
                held.trainer, held.name
            )));
        }
        let id = step.step;
        if ok {
            let mut book = self.book.clone();
            book.push(Done { step: id.0, version, batch });
            if let Some(path) = weights {
                book.put(Place { version: version + 1, path });
            }
            self.keep(book)?;
        }
        self.step = None;
        self.say(TrainerEvent::StepEnded { step: id, ok, metrics }).await;
        Ok(true)
    }

    fn other_batch(&self, version: u32, batch: &str) -> Denied {
        let now = match &self.step {
            Some(step) => {
                format!("the step to do starts from version {}, batch {}", step.version, step.batch)
            }
            None => format!("no step is to be done; the run is at version {}", self.book.version()),
        };
        Denied::OtherBatch(format!(
            "batch {batch} from version {version} is not to be trained: {now}; throw away what was \
             computed and pull again"
        ))
    }

    async fn written(&mut self, written: Written) -> Result<bool, Denied> {
        let Written { version, path } = written;
        // After a rollback what is to be saved is an older version's parameters, under a new number.
        let asked = self.save.as_ref().map_or(0, |save| save.version);
        let newest = self.book.version();
        if version > newest.max(asked) {
            return Err(Denied::OtherVersion(format!(
                "there is no version {version}: the last reported step made version {newest}"
            )));
        }
        if let Some(path) = &path {
            let mut book = self.book.clone();
            book.put(Place { version, path: path.clone() });
            self.keep(book)?;
        }
        let Some(save) = self.save.take_if(|save| save.version == version) else {
            return Ok(false);
        };
        let event = match &path {
            Some(path) => saved(save.publication, path),
            None => TrainerEvent::SaveFailed { publication: save.publication },
        };
        self.say(event).await;
        Ok(true)
    }

    /// Nothing is acknowledged that a restart would not know.
    fn keep(&mut self, book: Book) -> Result<(), Denied> {
        book.write(&self.path).map_err(|error| {
            Denied::Unkept(format!("{}: cannot be written: {error}", self.path.display()))
        })?;
        self.book = book;
        Ok(())
    }

    fn standing(&self) -> Standing {
        let lease = self.step.as_ref().and_then(|step| step.lease.as_ref());
        let now = self.clock.now();
        let lease = lease.filter(|lease| lease.until > now);
        Standing {
            version: self.book.version(),
            weights: self.book.weights.last().map(|place| (place.version, place.path.clone())),
            leased: lease.map(|lease| (lease.name.clone(), lease.trainer.clone())),
            step: self.step.is_some(),
        }
    }
}

fn saved(publication: PublicationId, path: &str) -> TrainerEvent {
    TrainerEvent::Saved { publication, weights: Export::Directory(Arc::from(Path::new(path))) }
}

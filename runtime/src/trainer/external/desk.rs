//! What a trainer asks and is answered, before it is HTTP.

use std::sync::Arc;

use headway_shared::time::Span;
use tokio::sync::{mpsc, oneshot};

use crate::trainer::StepMetric;

/// A trainer wants something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// Its name. What is leased to a name is given to it again when it asks again: it has crashed.
    pub trainer: String,
    /// The version that its parameters are, where it says so: it gets no step that starts from
    /// another.
    pub version: Option<u32>,
    /// How long it waits for something to do.
    pub wait: Span,
}

/// Something to do, as JSON.
pub type Task = Arc<str>;

/// A trainer has done a step, or could not.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The version that the step started from.
    pub version: u32,
    /// Its batch.
    pub batch: String,
    /// The lease, where the trainer still knows it.
    pub lease: Option<String>,
    /// It made a version. If not, the trainer's parameters are what they were.
    pub ok: bool,
    /// What it measured.
    pub metrics: Vec<StepMetric>,
    /// The directory of the new weights, as the engines see it, where they were written.
    pub weights: Option<String>,
}

/// A trainer has written its weights, or could not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Their version.
    pub version: u32,
    /// The directory, as the engines see it; `None`: they could not be written.
    pub path: Option<String>,
}

/// How the training stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The version that the last reported step made; 0: none was reported.
    pub version: u32,
    /// The newest weights that were reported, with their version.
    pub weights: Option<(u32, String)>,
    /// Who holds the step that is to be done: its lease and its trainer.
    pub leased: Option<(String, String)>,
    /// A step waits to be done, or is being done.
    pub step: bool,
}

/// A trainer is told no: what it says or wants is not so (any more).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The lease is over, and the task is somebody else's or done.
    #[error("{0}")]
    LeaseLost(String),
    /// The batch is not the one that is to be trained.
    #[error("{0}")]
    OtherBatch(String),
    /// The trainer's parameters are of another version.
    #[error("{0}")]
    OtherVersion(String),
    /// What was reported cannot be kept, so it is not acknowledged.
    #[error("{0}")]
    Unkept(String),
    /// The run is over.
    #[error("the run is over")]
    Over,
}

/// A question with the place for its answer.
#[derive(Debug)]
pub enum Call {
    /// Something to do; `None`: there was nothing within the time.
    Pull(Pull, oneshot::Sender<Result<Option<Task>, Denied>>),
    /// More time for a lease: how long it now lasts.
    Extend(String, oneshot::Sender<Result<Span, Denied>>),
    /// A step ended; false: that was known.
    Report(Report, oneshot::Sender<Result<bool, Denied>>),
    /// Weights were written; false: nobody waits for them.
    Written(Written, oneshot::Sender<Result<bool, Denied>>),
    /// How the training stands.
    Standing(oneshot::Sender<Standing>),
}

/// Where the gateway asks on behalf of trainers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Desk(mpsc::Sender<Call>);

impl Desk {
    pub(super) const fn new(calls: mpsc::Sender<Call>) -> Self {
        Self(calls)
    }

    async fn ask<T>(&self, call: impl FnOnce(oneshot::Sender<T>) -> Call) -> Result<T, Denied> {
        let (sender, answer) = oneshot::channel();
        self.0.send(call(sender)).await.map_err(|_| Denied::Over)?;
        answer.await.map_err(|_| Denied::Over)
    }

    /// Asks for something to do; `None`: there was nothing within the time.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn pull(&self, pull: Pull) -> Result<Option<Task>, Denied> {
        self.ask(|answer| Call::Pull(pull, answer)).await?
    }

    /// Extends a lease; how long it now lasts.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn extend(&self, lease: String) -> Result<Span, Denied> {
        self.ask(|answer| Call::Extend(lease, answer)).await?
    }

    /// Reports a step; false: it was reported before.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn report(&self, report: Report) -> Result<bool, Denied> {
        self.ask(|answer| Call::Report(report, answer)).await?
    }

    /// Reports weights; false: nobody waits for them.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn written(&self, written: Written) -> Result<bool, Denied> {
        self.ask(|answer| Call::Written(written, answer)).await?
    }

    /// How the training stands.
    ///
    /// # Errors
    /// [`Denied::Over`].
    pub async fn standing(&self) -> Result<Standing, Denied> {
        self.ask(Call::Standing).await
    }
}

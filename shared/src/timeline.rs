//! A run as a timeline: who did what from when to when, and how many there were of what.
//!
//! A [`Tracer`] watches a run, live or simulated, as the observer of its [metrics](crate::metrics)
//! does: by (now, input, actions). It tells a [`Sink`] each [`Slice`] when it is over, and each
//! [`Counter`] when it has changed. It holds what is under way and nothing else, so that a run of any
//! length can be written while it goes on.

mod lanes;
#[cfg(test)]
mod tests;
mod tracer;

pub use tracer::Tracer;

use crate::id::{PublicationId, ReplicaId, RequestId, SampleId, SessionId, StepId, VoteId};
use crate::time::Time;

/// A row of the timeline. Slices of one lane do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// The times in which new requests are answered with 503.
    Window,
    /// Weights on their way to a replica.
    Weights {
        /// The replica.
        replica: ReplicaId,
    },
    /// A turn of the batch of a replica. Slots count from 0; a turn takes the lowest that is free.
    Turn {
        /// The replica.
        replica: ReplicaId,
        /// The slot.
        slot: u32,
    },
    /// A reset or step of an environment.
    Environment {
        /// The slot.
        slot: u32,
    },
    /// A vote. A cancelled vote keeps its slot until the judge has let go of it, so that there can be
    /// more slots than `judge_concurrency`.
    Judge {
        /// The slot.
        slot: u32,
    },
    /// Train steps.
    Trainer,
    /// Exports of weights.
    Export,
}

/// What happens in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// An attempt of a turn is generated.
    Turn {
        /// The request.
        request: RequestId,
        /// The attempt.
        attempt: u32,
        /// The sample it is for; `None`: it is not recorded.
        sample: Option<SampleId>,
        /// Its session, where it is for a sample.
        session: Option<SessionId>,
        /// Tokens that it reported, with `resume` those of attempts before it included.
        tokens: u32,
        /// What its replica held when it started.
        version: u32,
        /// What the replica loaded under it, and when.
        swaps: &'a [(Time, u32)],
    },
    /// An environment is reset or steps.
    Environment {
        /// The session.
        session: SessionId,
        /// The attempt.
        attempt: u32,
    },
    /// A judge is asked.
    Vote {
        /// The vote.
        vote: VoteId,
        /// The sample; `None`: it was asked before the timeline began.
        sample: Option<SampleId>,
    },
    /// A batch is trained on.
    Step {
        /// The step.
        step: StepId,
        /// The version it starts from.
        learner: u32,
        /// How many samples.
        samples: u32,
    },
    /// Weights are exported.
    Export {
        /// The publication.
        publication: PublicationId,
        /// The version.
        version: u32,
    },
    /// Weights are transferred to a replica, and loaded there.
    Load {
        /// The publication.
        publication: PublicationId,
        /// The version.
        version: u32,
        /// When they had been transferred.
        transferred: Option<Time>,
    },
    /// New requests are answered with 503.
    Window {
        /// Replicas load weights: it is a sync window.
        sync: bool,
    },
}

/// Where on its way a sample passes a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Its first turn.
    Begin,
    /// A later turn, a vote, a train step that failed.
    Step,
    /// The train step that it ends in.
    End,
}

/// A stretch of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice<'a> {
    /// Where.
    pub lane: Lane,
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
    /// What.
    pub what: What<'a>,
    /// How it ended, in a word: [`WHOLE`], or what kept it from that.
    pub ended: &'static str,
    /// The samples that pass it.
    pub flows: &'a [(SampleId, Flow)],
}

/// How a slice ended that came to what it was started for.
pub const WHOLE: &str = "whole";

/// How a slice ended that had not ended when the timeline did.
pub const UNDER_WAY: &str = "under way";

/// A number that changes over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Samples in the rollout queue.
    RolloutQueue,
    /// Samples in the output queue.
    OutputQueue,
    /// Samples outstanding.
    Outstanding,
    /// Samples parked.
    Parked,
    /// Turns being generated.
    Running,
    /// Requests that wait for a place.
    Held,
    /// Votes in flight, cancelled ones left out.
    Votes,
    /// What the gate binds, in learner versions.
    Bound,
    /// The learner's version.
    Learner,
    /// The version that a replica holds.
    Deploy(ReplicaId),
}

/// Takes a timeline as it comes: slices in the order of their ends, counters in the order of time.
pub trait Sink {
    /// A slice is over.
    fn slice(&mut self, slice: &Slice<'_>);

    /// From `at` on, a counter has this value, until it is told again. A counter that was never told
    /// of is 0.
    fn counter(&mut self, at: Time, counter: Counter, value: u32);
}

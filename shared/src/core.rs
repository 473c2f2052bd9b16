//! The scheduling core: a pure state machine that decides what a run does next.
//!
//! No clock, no I/O, no threads, no randomness, no floats. See [`Scheduler`] for the contract.
//!
//! Each loop stands in the file of its name: `admission` and `gate` decide about requests,
//! `serving` runs turns on replicas, `environment` waits for next states, `judging` scores,
//! `training` makes batches and versions, `sync` brings the versions to the replicas.
//! `outcome` is where samples leave, and `timers` where time passes.

mod admission;
mod ages;
mod audit;
mod environment;
mod gate;
mod judging;
mod ledger;
mod outcome;
mod queue;
mod reconfigure;
mod sample;
mod scheduler;
mod serving;
mod slab;
mod state;
mod sync;
mod timers;
mod training;

pub use ledger::{Ledger, SampleState, Violation};
pub use sample::{STAGES, STALENESS_PARTS, Sample, Stage};
pub use scheduler::{Fate, Gauges, ReplicaView, Resolved, Scheduler};

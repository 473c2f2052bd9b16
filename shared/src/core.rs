//! The scheduling core: a pure state machine that decides what a run does next.
//!
//! No clock, no I/O, no threads, no randomness, no floats. See [`Scheduler`] for the contract.

mod ledger;
mod sample;
mod scheduler;

pub use ledger::{Ledger, SampleState, Violation};
pub use sample::{STAGES, STALENESS_PARTS, Sample, Stage};
pub use scheduler::{Fate, Gauges, ReplicaView, Resolved, Scheduler};

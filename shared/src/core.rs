//! The scheduling core: a pure state machine that decides what a run does next.
//!
//! No clock, no I/O, no threads, no randomness, no floats. See [`Scheduler`] for the contract.
//!
//! Each loop stands in the file of its name. Requests: `admission` with the rules in `gate`,
//! `waiting`, `groups`, `stragglers`. Serving: `serving`, and `sync` for the weights. Environments:
//! `environment`. Judging: `judging`. Training: `output`, `training`, `late` for what is too old,
//! `surplus` for what is too much, and `adaptive` for the bound that follows a measurement. `outcome` is where samples leave the `ledger`, and `timers` where
//! time passes; `slab`, `queue`, `ages` and `fleet` are what they stand in, and `audit` recounts it all.
//! `trajectory` is what differs where a sample is a whole session. `view` and `state_view` are what
//! others may see.

mod adaptive;
mod admission;
mod ages;
mod audit;
mod environment;
mod fleet;
mod gate;
mod groups;
mod judging;
mod late;
mod ledger;
mod outcome;
mod output;
mod planted;
mod queue;
mod reconfigure;
mod sample;
mod scheduler;
mod serving;
mod slab;
mod stall;
mod state;
mod state_view;
mod stragglers;
mod surplus;
mod sync;
mod timers;
mod training;
mod trajectory;
mod view;
mod waiting;
mod works;

pub use adaptive::BoundMove;
pub use ledger::{Ledger, SampleState, Violation};
pub use sample::{STAGES, STALENESS_PARTS, Sample, Stage};
pub use scheduler::{Fate, Resolved, Scheduler};
pub use stall::Stall;
pub use state_view::{
    Capacity, Deliberation, PublicationState, QueueState, ReplicaState, State, Syncing,
};
pub use view::{Gauges, ReplicaView};

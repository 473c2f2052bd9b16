//! Sweeps: a grid of points, each replicated, run in parallel, in an order of their own.

pub mod over;
mod plan;
mod replicate;
mod silence;

pub use over::{Axis, Choice, grid};
pub use plan::{Outcome, Plan, Planned, Progress, RunError, Trouble};
pub use replicate::replicate;

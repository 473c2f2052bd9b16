//! Sweeps: a grid of points, each replicated, run in parallel, in an order of their own.
//!
//! A sweep keeps a [`journal`] of its runs while it is at work. From it a killed one
//! [goes on](resume); and a [shard] of a sweep is its journal, which [`merge`] joins with the others.

mod contribution;
pub mod journal;
pub mod merge;
mod outline;
pub mod over;
mod plan;
mod replicate;
pub mod resume;
pub mod shard;
mod silence;
mod trouble;
mod warm_up;

pub use contribution::Contribution;
pub use outline::{Outline, OutlinedPoint};
pub use over::{Axis, Choice, grid};
pub use plan::{Keep, Misfit, Outcome, Plan, Planned, Progress, RunError, Watcher};
pub use replicate::replicate;
pub use trouble::Trouble;
pub(crate) use trouble::{caught, wrong_with};

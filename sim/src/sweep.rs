//! Sweeps: a grid of points, each replicated, run in parallel, in an order of their own.

pub mod over;
mod plan;
mod replicate;
mod silence;
mod trouble;
mod warm_up;

pub use over::{Axis, Choice, grid};
pub use plan::{Misfit, Outcome, Plan, Planned, Progress, RunError};
pub use replicate::replicate;
pub use trouble::Trouble;
pub(crate) use trouble::{caught, wrong_with};

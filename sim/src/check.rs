//! Scenarios as regression tests: what a run decides, and what comes of it, beside what was accepted.
//!
//! A [`Golden`] holds what was accepted of a scenario: the digest of all decisions, every metric with
//! its noise, and a [`Log`] of decisions, so that a difference is not only seen but shown: the first
//! decision that differs, with the state around it, and the metrics that moved.

mod case;
mod difference;
mod golden;
mod log;
mod many;
mod play;

pub use case::{Case, github, junit};
pub use difference::{Difference, Divergence, How, Moved, Taken};
pub use golden::{FORMAT_VERSION, Golden, GoldenError, Pairs};
pub use log::{BLOCK, DamagedLog, Log};
pub use many::{Blessed, Outcome, Target, bless_all, check_all, runs_to_bless};
pub use play::{Limits, beginning};

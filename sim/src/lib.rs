//! The simulated world of Headway, and everything that computes offline.

pub mod compare;
pub mod import;
pub mod kernel;
pub mod report;
pub mod run;
pub mod scenario;
pub mod stats;
pub mod sweep;
pub mod world;

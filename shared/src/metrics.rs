//! Metrics of a run, computed by an observer of (now, input, actions).
//!
//! The driver of a run, simulated or live, shows an [`Observer`] each input that the core handled
//! with the actions that came of it. A [`Summary`] has a value for each of [`METRICS`].

mod counts;
mod histogram;
mod idtable;
mod levels;
mod lost;
mod observer;
mod series;
mod summary;
mod table;
#[cfg(test)]
mod tests;
mod totals;
mod trained;
mod turns;
mod votes;

pub use counts::Counts;
pub use histogram::Histogram;
pub use observer::Observer;
pub use series::{Row, Series};
pub use summary::Summary;
pub use table::{Kind, METRICS, Metric, markdown};

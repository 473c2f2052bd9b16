//! What the simulator and the live runtime of Headway share: the scheduling core, its
//! configuration, records of runs, and metrics.
//!
//! The heart is [`core::Scheduler`], a pure state machine. A driver feeds it one [`input::Input`]
//! at a time with the time it happened, then drains its [`action::Action`]s:
//!
//! ```text
//!            facts                                decisions
//!   world ──────────► Scheduler::handle ──► Scheduler::poll_action ──► world
//!                            ▲                      │
//!                            └── Tick at Scheduler::poll_timeout
//! ```
//!
//! The simulator (`headway-sim`) is a driver with a virtual clock; the runtime (`headway-runtime`)
//! is one with a real clock, real engines and real clients.

pub mod action;
pub mod config;
pub mod core;
pub mod digest;
pub mod id;
pub mod input;
pub mod metrics;
pub mod record;
pub mod replay;
pub mod snapshot;
#[cfg(test)]
mod testing;
pub mod time;
pub mod version;

//! A tuned configuration on its way to a live run.

mod difference;
pub(crate) mod file;
#[cfg(feature = "live")]
pub(crate) mod live;
mod plan;
mod replace;
pub(crate) mod tuned;

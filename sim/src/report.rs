//! Results as files, tables and plots.

pub mod csv;
pub mod folder;
pub mod json;
pub mod number;
pub mod plot;
pub mod results;
pub(crate) mod stored;
pub mod tables;
pub mod tensorboard;

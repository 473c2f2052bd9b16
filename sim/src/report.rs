//! Results as files, tables and plots.

pub mod csv;
pub mod folder;
pub mod gantt;
pub mod json;
pub mod number;
pub mod perfetto;
pub mod plot;
pub mod results;
pub(crate) mod stored;
pub mod tables;

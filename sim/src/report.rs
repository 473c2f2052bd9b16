//! Results as files, tables, plots and pages.

pub mod about;
pub mod cell;
pub mod csv;
pub mod described;
pub mod documents;
pub mod folder;
pub mod gantt;
pub mod html;
pub mod json;
pub mod number;
pub mod perfetto;
pub mod plot;
pub mod results;
pub(crate) mod stored;
pub mod tables;
pub mod tensorboard;

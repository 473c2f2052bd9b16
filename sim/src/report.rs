//! Results as files, tables, plots and pages.

pub mod about;
pub mod csv;
pub mod folder;
pub mod html;
pub mod json;
pub mod number;
pub mod plot;
pub mod results;
pub(crate) mod stored;
pub mod tables;

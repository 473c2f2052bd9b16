//! The configuration: the sections that a scenario and a live run share.
//!
//! [`Config`] is the canonical form: whole numbers, spans and enums, every key present. It is what
//! the core reads, what a record's header holds, and what a reconfiguration carries.

mod sections;

pub use sections::*;

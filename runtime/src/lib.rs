//! The live runtime of Headway: a thin driver around the scheduling core of
//! [`headway_shared`].
//!
//! The runtime decides nothing. Whatever it needs decided, the core decides; this crate turns the
//! core's actions into I/O and the outcomes of that I/O into inputs.

pub use headway_shared as shared;

//! Records of runs: a header, stamped inputs, and the digest of the actions each caused.
//!
//! ```text
//! "HEADWAY\n"  format: u16  length: u32  header (postcard)  check: u32
//! kind: u8  length: u32  entry (postcard)  check: u32        any number of times
//! ```
//!
//! Numbers are little-endian. An entry is an input with its time and the digest of its actions, a
//! snapshot of the core, or the end, which holds the digest of all decisions. Every check covers
//! all bytes before it in the file, so that a lost, changed, or moved entry is found where it
//! stands. A record without an end was cut short.

mod decisions;
mod format;
mod reader;
mod recorded_run;
#[cfg(test)]
mod tests;
mod writer;

pub use decisions::Decisions;
pub use format::{FORMAT_VERSION, Header, RecordError};
pub use reader::{Entry, Reader};
pub use recorded_run::RecordedRun;
pub use writer::Writer;

/// Changes whenever the core may decide otherwise on the same inputs: a record or snapshot of
/// another version cannot be replayed.
pub const DECISION_VERSION: u32 = 5;

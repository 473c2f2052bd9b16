//! What `headway check` looks at: scenarios, and records.

pub(crate) mod records;
pub(crate) mod scenarios;

use headway_sim::check::Case;
use serde_json::Value;

/// One thing that was checked.
pub(crate) struct Checked {
    /// For continuous integration.
    pub(crate) case: Case,
    /// For people.
    pub(crate) shown: String,
    /// For programs.
    pub(crate) document: Value,
}

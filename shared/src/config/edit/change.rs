//! How two configurations differ.

use crate::config::keys::{Key, keys};
use crate::config::sections::Config;

/// A key that has another value.
#[derive(Clone, Debug)]
pub struct Change {
    /// The key; never one that says again what others say.
    pub key: &'static Key,
    /// The value before, as TOML; `None`: absent.
    pub old: Option<String>,
    /// The value after.
    pub new: Option<String>,
}

impl Change {
    /// The value before, to be read.
    #[must_use]
    pub fn old_text(&self) -> &str {
        self.old.as_deref().unwrap_or("absent")
    }

    /// The value after, to be read.
    #[must_use]
    pub fn new_text(&self) -> &str {
        self.new.as_deref().unwrap_or("absent")
    }
}

/// The keys in which two configurations differ, in the order of the sections.
#[must_use]
pub fn changes(before: &Config, after: &Config) -> Vec<Change> {
    let differs = |key: &'static Key| {
        let (old, new) = (key.describe(before).value, key.describe(after).value);
        (old != new).then_some(Change { key, old, new })
    };
    keys().iter().filter(|key| !key.is_alias()).filter_map(differs).collect()
}

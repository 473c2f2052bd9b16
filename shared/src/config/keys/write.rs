//! The scheduling sections as TOML.

use std::fmt::Write;

use super::{Key, keys};
use crate::config::diagnostic::{Findings, Sources};
use crate::config::node::Table;
use crate::config::reader::Reader;
use crate::config::sections::Config;

/// Keys that say again what other keys say, each with those keys: they are never written.
const ALIASES: [(&str, &[&str]); 6] = [
    ("policy_serving.weight_sync_pause", &["policy_serving.sync_mode"]),
    ("policy_training.max_head_offpolicyness", &["policy_training.max_head_off_policyness"]),
    ("policy_training.queue_type", &["queue.rollout.queue_type", "queue.output.queue_type"]),
    ("queue.max_size", &["queue.rollout.max_size", "queue.output.max_size"]),
    ("queue.queue_type", &["queue.rollout.queue_type", "queue.output.queue_type"]),
    ("queue.drop_policy", &["queue.rollout.drop_policy", "queue.output.drop_policy"]),
];

/// The keys that say in full what the key at `path` says; of most keys the key itself.
#[must_use]
pub fn spelled_out(path: &str) -> Vec<&str> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == path);
    alias.map_or_else(|| vec![path], |(_, names)| names.to_vec())
}

impl Key {
    /// It says again what another key says, such as `weight_sync_pause`.
    #[must_use]
    pub fn is_alias(&self) -> bool {
        ALIASES.iter().any(|(alias, _)| *alias == self.path())
    }

    /// Without it, `config` would be another.
    fn is_needed(&self, config: &Config, defaults: &Config) -> bool {
        let value = self.describe(config).value;
        if value != self.describe(defaults).value {
            return true;
        }
        // What it is where it is absent, as far as that follows from other keys.
        let mut absent = config.clone();
        let (sources, findings) = (Sources::default(), Findings::default());
        let mut reader = Reader::new(Table::EMPTY, sources.start(), &findings);
        (self.read)(&mut reader, self.name, &mut absent);
        self.default_text.is_some() && self.describe(&absent).value != value
    }
}

/// The scheduling sections as TOML: the keys whose defaults would not do, and those whose paths are
/// in `also`. `within` is the table that they stand in, such as `guard.previous`; empty: the root.
///
/// What it writes loads as `config`.
#[must_use]
pub fn sections_toml(config: &Config, within: &str, also: &[String]) -> String {
    let defaults = Config::default();
    let mut text = String::new();
    let mut section = "";
    for key in keys().iter().filter(|key| !key.is_alias()) {
        if !key.is_needed(config, &defaults) && !also.contains(&key.path()) {
            continue;
        }
        let Some(value) = key.describe(config).value else { continue };
        if key.section != section {
            section = key.section;
            let gap = if text.is_empty() { "" } else { "\n" };
            let dot = if within.is_empty() { "" } else { "." };
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{gap}[{within}{dot}{section}]");
        }
        let _ = writeln!(text, "{} = {value}", key.name);
    }
    text
}

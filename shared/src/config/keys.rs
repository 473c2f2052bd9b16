//! The reference of every key of the scheduling sections.

mod commented;
mod field;
mod reference;
mod table;
mod write;

use std::fmt;

pub use commented::commented_toml;
pub use field::Described;
pub use reference::reference;
pub use write::{sections_toml, spelled_out};

use super::near::nearest;
use super::node::{Entry, Table};
use super::reader::Reader;
use super::sections::Config;

/// When a changed key takes effect in a running system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// With the next decision.
    AtOnce,
    /// For the next admitted request.
    NextAdmission,
    /// With the next train step.
    NextStep,
    /// With the next publication of weights.
    NextPublication,
    /// After a restart.
    Restart,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtOnce => "at once",
            Self::NextAdmission => "next admission",
            Self::NextStep => "next step",
            Self::NextPublication => "next publication",
            Self::Restart => "restart",
        })
    }
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The section it stands in, such as `policy_training` or `queue.output`.
    pub section: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// When a change takes effect.
    pub effect: Effect,
    /// What it means, in Markdown.
    pub about: &'static str,
    /// Where the default follows from other keys: how.
    pub default_text: Option<&'static str>,
    describe: fn(&Config) -> Described,
    read: fn(&mut Reader<'_>, &'static str, &mut Config),
}

impl Key {
    /// Section and name, with a dot.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// Its value in `config`, with what else could be written.
    #[must_use]
    pub fn describe(&self, config: &Config) -> Described {
        (self.describe)(config)
    }
}

/// Every key, in the order of the sections.
#[must_use]
pub const fn keys() -> &'static [Key] {
    table::KEYS
}

/// Takes the keys of one section out of its table.
pub(super) fn read_section(section: &str, reader: &mut Reader<'_>, config: &mut Config) {
    for key in keys().iter().filter(|key| key.section == section) {
        (key.read)(reader, key.name, config);
    }
}

/// Keys that say what other keys say too. The first of each row, given in an upper layer, makes
/// the rest void in the lower ones; where the rest is asked for, the first may have been meant.
const RIVALS: &[(&str, &[&str])] = &[
    ("policy_training.max_head_off_policyness", &["policy_training.max_head_offpolicyness"]),
    ("policy_training.max_head_offpolicyness", &["policy_training.max_head_off_policyness"]),
    ("policy_serving.sync_mode", &["policy_serving.weight_sync_pause"]),
    ("policy_serving.weight_sync_pause", &["policy_serving.sync_mode"]),
    ("queue.max_size", &["queue.rollout.max_size", "queue.output.max_size"]),
    (
        "queue.queue_type",
        &["policy_training.queue_type", "queue.rollout.queue_type", "queue.output.queue_type"],
    ),
    (
        "policy_training.queue_type",
        &["queue.queue_type", "queue.rollout.queue_type", "queue.output.queue_type"],
    ),
    ("queue.drop_policy", &["queue.rollout.drop_policy", "queue.output.drop_policy"]),
    // A scenario's ways to say how fast a replica decodes.
    (
        "world.serving.decode_rates",
        &[
            "world.serving.decode_table",
            "world.serving.decode_base_sec",
            "world.serving.decode_per_sequence_sec",
        ],
    ),
    (
        "world.serving.decode_table",
        &[
            "world.serving.decode_rates",
            "world.serving.decode_base_sec",
            "world.serving.decode_per_sequence_sec",
        ],
    ),
    (
        "world.serving.decode_base_sec",
        &["world.serving.decode_rates", "world.serving.decode_table"],
    ),
];

/// Where an upper layer says in another way what a lower one said, the lower one is dropped.
pub(super) fn drop_rivals(lower: &mut Table, upper: &Table) {
    for (given, void) in RIVALS {
        if upper.find(given).is_some() {
            void.iter().for_each(|path| lower.remove(path));
        }
    }
}

/// `--set` is a question, "what if?": it beats what `settings.json` says again, which between files
/// is a contradiction.
pub(super) fn drop_setting(lower: &mut Table, set: &Table) {
    let pauses = ["policy_serving.sync_mode", "policy_serving.weight_sync_pause"];
    if pauses.iter().any(|path| set.find(path).is_some()) {
        lower.remove("serving.pause_on_weight_sync");
    }
}

/// Where a document gives the value of a key, under whichever name.
#[must_use]
pub fn locate<'t>(tree: &'t Table, path: &str) -> Option<&'t Entry> {
    let rivals = RIVALS.iter().filter(|(_, void)| void.contains(&path)).map(|(given, _)| *given);
    std::iter::once(path).chain(rivals).find_map(|path| tree.find(path))
}

/// A key that is not known, or not unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownKey {
    /// Several keys end like this.
    Ambiguous {
        /// What was written.
        key: String,
        /// The paths that it could be.
        paths: Vec<String>,
    },
    /// None does.
    Unknown {
        /// What was written.
        key: String,
        /// The most similar name.
        near: Option<String>,
    },
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ambiguous { key, .. } => write!(f, "`{key}` could be one of several keys"),
            Self::Unknown { key, .. } => write!(f, "unknown key `{key}`"),
        }
    }
}

impl std::error::Error for UnknownKey {}

impl UnknownKey {
    /// What to write instead.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Ambiguous { paths, .. } => format!("write one of {}", paths.join(", ")),
            Self::Unknown { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Self::Unknown { near: None, .. } => {
                "write the whole path, such as `policy_training.batch_size`".to_owned()
            }
        }
    }
}

/// The whole path of a key: `max_head_off_policyness` is
/// `policy_training.max_head_off_policyness`. A path that begins at a section stays as it is, known
/// or not: whoever reads the section judges it. `tree` adds the keys that a document has.
///
/// # Errors
/// No key, or several, end like this.
pub fn resolve(key: &str, tree: &Table) -> Result<String, UnknownKey> {
    let mut paths: Vec<String> = keys().iter().map(Key::path).chain(tree.paths()).collect();
    paths.sort();
    paths.dedup();
    if paths.iter().any(|path| path == key) {
        return Ok(key.to_owned());
    }
    let ending = format!(".{key}");
    let ends: Vec<String> = paths.iter().filter(|path| path.ends_with(&ending)).cloned().collect();
    let broadest = RIVALS.iter().find(|(given, void)| {
        ends.iter().all(|path| path == given || void.contains(&path.as_str()))
    });
    match (ends.as_slice(), broadest) {
        ([path], _) => Ok(path.clone()),
        ([_, ..], Some((given, _))) => Ok((*given).to_owned()),
        ([_, ..], None) => Err(UnknownKey::Ambiguous { key: key.to_owned(), paths: ends }),
        ([], _) if key.contains('.') && key.split('.').all(|name| !name.is_empty()) => {
            Ok(key.to_owned())
        }
        ([], _) => {
            let names: Vec<&str> =
                paths.iter().filter_map(|path| path.rsplit('.').next()).collect();
            let near = nearest(key, &names).map(str::to_owned);
            Err(UnknownKey::Unknown { key: key.to_owned(), near })
        }
    }
}

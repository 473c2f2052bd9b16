//! What the writer and the reader agree on.

use serde::{Deserialize, Serialize};

use super::DECISION_VERSION;
use crate::config::Config;
use crate::digest::Digest;
use crate::input::Input;

/// The version of the layout of the file.
pub const FORMAT_VERSION: u16 = 1;

pub(super) const MAGIC: [u8; 8] = *b"HEADWAY\n";
/// The longest header and the longest entry that is not a snapshot, in bytes: far more than any
/// needs, and little enough to be read whatever the length field of a broken file says.
pub(super) const MAX_ENTRY: usize = 1 << 20;

pub(super) const INPUT: u8 = 1;
pub(super) const SNAPSHOT: u8 = 2;
pub(super) const END: u8 = 3;

/// What a record is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The decision version of the core that ran: [`DECISION_VERSION`] in a new record.
    pub decision_version: u32,
    /// The scenario's name.
    pub scenario: String,
    /// The digest of the whole scenario.
    pub scenario_digest: Digest,
    /// The seed.
    pub seed: u64,
    /// Which replication of that seed.
    pub replication: u32,
    /// The configuration that the core started with.
    pub config: Config,
}

/// The header's form in the file: the configuration is text, so that a record stays readable
/// where the structs have changed.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredHeader {
    decision_version: u32,
    scenario: String,
    scenario_digest: Digest,
    seed: u64,
    replication: u32,
    config: String,
    config_digest: Digest,
}

impl Header {
    /// The header of a run of this build.
    #[must_use]
    pub fn new(
        scenario: &str,
        scenario_digest: Digest,
        seed: u64,
        replication: u32,
        config: &Config,
    ) -> Self {
        Self {
            decision_version: DECISION_VERSION,
            scenario: scenario.to_owned(),
            scenario_digest,
            seed,
            replication,
            config: config.clone(),
        }
    }

    pub(super) fn store(&self) -> StoredHeader {
        StoredHeader {
            decision_version: self.decision_version,
            scenario: self.scenario.clone(),
            scenario_digest: self.scenario_digest,
            seed: self.seed,
            replication: self.replication,
            config: self.config.canonical_json(),
            config_digest: self.config.digest(),
        }
    }
}

impl StoredHeader {
    /// `None` if the configuration is not one of this build.
    pub(super) fn restore(self) -> Option<Header> {
        // The digest is that of the text: keys that came later have their defaults, and a key that this
        // build does not know is an error.
        let config: Config = serde_json::from_str(&self.config).ok()?;
        (Digest::of(self.config.as_bytes()) == self.config_digest).then_some(Header {
            decision_version: self.decision_version,
            scenario: self.scenario,
            scenario_digest: self.scenario_digest,
            seed: self.seed,
            replication: self.replication,
            config,
        })
    }
}

/// An input's form in the file.
#[derive(Serialize)]
pub(super) struct InputRef<'a> {
    /// Nanoseconds since the input before.
    pub(super) after: u64,
    pub(super) input: &'a Input,
    pub(super) actions: [u8; 8],
}

/// The same, as it is read.
#[derive(Deserialize)]
pub(super) struct StoredInput {
    pub(super) after: u64,
    pub(super) input: Input,
    pub(super) actions: [u8; 8],
}

/// Covers every byte of the file before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Check(Digest);

impl Check {
    /// Adds an entry, and returns what follows it in the file.
    pub(super) fn add(&mut self, kind: u8, entry: &[u8]) -> [u8; 4] {
        self.0.fold(u64::from(kind));
        self.0.fold(Digest::of(entry).value());
        (self.0.value() as u32).to_le_bytes()
    }
}

/// Why a record cannot be read (further). Entries count from 0; those before it are good.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file could not be read.
    #[error("cannot read the record: {0}")]
    Io(#[from] std::io::Error),
    /// It does not begin as a record does.
    #[error("this is not a record of a Headway run")]
    NotARecord,
    /// It was written in a layout that this build does not know.
    #[error("the record has format {found}; this build reads format {FORMAT_VERSION}")]
    OtherFormat {
        /// Its format version.
        found: u16,
    },
    /// The header is cut short or changed.
    #[error("the header of the record is damaged")]
    DamagedHeader,
    /// Its configuration is not one of this build.
    #[error("the configuration in the record's header is not one that this build knows")]
    UnknownConfig,
    /// The record ends before its end.
    #[error("the record is cut short at entry {entry}")]
    Truncated {
        /// The first entry that is not whole.
        entry: u64,
    },
    /// An entry is not what was written.
    #[error("the record is damaged at entry {entry}")]
    Corrupt {
        /// Which entry.
        entry: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Operator;

    #[test]
    fn a_configuration_without_keys_that_came_later_is_read_and_one_with_later_keys_is_not() {
        let header = Header::new("any", Digest::new(), 1, 0, &Config::default());
        let stored = |config: String| StoredHeader {
            config_digest: Digest::of(config.as_bytes()),
            config,
            ..header.store()
        };
        let text = Config::default().canonical_json();
        let key = "\"publish_interval\":1,";
        assert!(text.contains(key), "{text}");
        assert_eq!(stored(text.replace(key, "")).restore(), Some(header.clone()));
        let later = text.replace(key, &format!("{key}\"of_tomorrow\":1,"));
        assert_eq!(stored(later).restore(), None);
        let changed = StoredHeader { config_digest: Digest::new(), ..stored(text) };
        assert_eq!(changed.restore(), None);
    }

    #[test]
    fn a_reconfiguration_is_text_in_a_record_and_an_object_in_a_database() {
        let mut config = Config::default();
        config.policy_training.batch_size = 7;
        let input = Input::Operator(Operator::Reconfigure(Box::new(config.clone())));
        let bytes = postcard::to_stdvec(&input).unwrap();
        let text = config.canonical_json();
        assert!(bytes.windows(text.len()).any(|window| window == text.as_bytes()));
        assert_eq!(postcard::from_bytes::<Input>(&bytes).unwrap(), input);
        let json = serde_json::to_string(&input).unwrap();
        assert!(json.contains("{\"policy_serving\":{"), "{json}");
        assert_eq!(serde_json::from_str::<Input>(&json).unwrap(), input);
    }
}

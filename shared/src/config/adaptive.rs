//! `[policy_training.adaptive]`, and the form of a configuration that may lack it.

use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

use super::choices::Signal;
use super::sections::{Config, MILLION};

/// `[policy_training.adaptive]`: η follows a measured signal between two limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Adaptive {
    /// What it follows.
    pub signal: Signal,
    /// Where the signal is to stay, in millionths; 0: nobody has said.
    pub target: u32,
    /// The smallest η, in learner versions.
    pub min: u32,
    /// The largest η, in learner versions.
    pub max: u32,
    /// What is added to η where the signal is better than its target, in learner versions.
    pub increase: u32,
    /// What η is multiplied by where the signal is worse, in millionths, below 1.
    pub decrease: u32,
    /// Train steps that a decision is made of.
    pub every_steps: u32,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self {
            signal: Signal::Off,
            target: 0,
            min: 1,
            max: 8,
            increase: 1,
            decrease: MILLION / 2,
            every_steps: 8,
        }
    }
}

impl Adaptive {
    /// η may move.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.signal != Signal::Off
    }
}

/// The sections' names, in their order.
const SECTIONS: [&str; 6] = [
    "policy_serving",
    "environment_hosting",
    "reward_judging",
    "policy_training",
    "queue",
    "policy_training.adaptive",
];

/// As derived, but that text leaves out an adaptive bound that nobody has set: a configuration's
/// digest is made of its text, and those that were there before the section keep theirs.
impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = !serializer.is_human_readable() || self.adaptive != Adaptive::default();
        let fields = if whole { SECTIONS.len() } else { SECTIONS.len() - 1 };
        let mut sections = serializer.serialize_struct("Config", fields)?;
        sections.serialize_field(SECTIONS[0], &self.policy_serving)?;
        sections.serialize_field(SECTIONS[1], &self.environment_hosting)?;
        sections.serialize_field(SECTIONS[2], &self.reward_judging)?;
        sections.serialize_field(SECTIONS[3], &self.policy_training)?;
        sections.serialize_field(SECTIONS[4], &self.queue)?;
        if whole {
            sections.serialize_field(SECTIONS[5], &self.adaptive)?;
        }
        sections.end()
    }
}

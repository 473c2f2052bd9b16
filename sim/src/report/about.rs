//! Where a result comes from: the command that repeats it, and what its scenario says of itself.

use super::described::described;
use crate::scenario::Scenario;
use headway_shared::config::keys::sections_toml;

described! {
    /// Where a result comes from. It holds no time of day, host or absolute path.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct About {
        /// The command that repeats it; empty: it is not known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub command: String,
        /// What the scenario is about.
        pub description: String,
        /// Where its numbers come from.
        pub sources: Vec<String>,
        /// Which of its numbers are assumed.
        pub assumed: Vec<String>,
        /// What its numbers were fitted to; empty: to nothing.
        pub fitted_to: String,
        /// The scheduling sections as TOML, without what is as the defaults have it. What a result varies is
        /// as the scenario has it.
        pub configuration: String,
    }
}

impl About {
    /// What a scenario says of itself.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Self {
        let fitted = scenario.calibration.as_ref();
        Self {
            command: String::new(),
            description: scenario.description.clone(),
            sources: scenario.sources.clone(),
            assumed: scenario.assumed.clone(),
            fitted_to: fitted.map_or_else(String::new, |fitted| fitted.from.clone()),
            configuration: sections_toml(&scenario.config, "", &[]),
        }
    }

    /// What is to be known of the scenario's numbers before anybody relies on them.
    pub(crate) fn assumptions(&self) -> Option<String> {
        let count = match self.assumed.len() {
            0 => return None,
            1 => "One of the scenario's numbers is assumed".to_owned(),
            _ => "Some of the scenario's numbers are assumed".to_owned(),
        };
        Some(format!("{count}: {}.", self.assumed.join("; ").trim_end_matches('.')))
    }
}

//! What was accepted of a scenario, as two files.

use std::fmt::Write;
use std::io;
use std::path::Path;

use headway_shared::digest::Digest;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::log::Log;
use crate::report::described::{Described, described};
use crate::report::number;

/// The version of the layout of a golden's files.
pub const FORMAT_VERSION: u32 = 1;

described! {
    /// What was accepted of a scenario.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Golden {
        /// The layout.
        pub format: u32,
        /// The scenario's name.
        pub scenario: String,
        /// Its [digest](crate::scenario::Scenario::digest).
        pub scenario_digest: String,
        /// Its seed.
        pub seed: u64,
        /// The build that decided.
        pub headway: String,
        /// Its decision version.
        pub decision_version: u32,
        /// The run was ended after so many inputs; 0: it ended by itself.
        pub max_inputs: u64,
        /// Why it ended, in a word.
        pub ended: String,
        /// When, in seconds.
        #[serde(serialize_with = "rounded")]
        pub end_sec: f64,
        /// Inputs.
        pub inputs: u64,
        /// Decisions.
        pub actions: u64,
        /// The digest of all decisions and their times.
        pub digest: String,
        /// Inputs of which the log has the actions.
        pub log_inputs: u64,
        /// The digest of the log's bytes.
        pub log_digest: String,
        /// Runs from which the noise was taken, this one included.
        pub replications: u32,
        /// For each metric its value in this run and its noise: half the width of the interval in which
        /// one more replication lies, at 95%. Either is null where it is undefined.
        pub metrics: Pairs,
    }
}

/// Two numbers for each metric.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pairs(pub Map<String, Value>);

impl Described for Pairs {
    fn schema() -> Value {
        let number = json!({ "type": ["number", "null"] });
        let pair = json!({ "type": "array", "items": number, "minItems": 2, "maxItems": 2 });
        json!({ "type": "object", "additionalProperties": pair })
    }
}

fn rounded<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    number::json(Some(*value)).serialize(serializer)
}

/// Why there is no golden to compare with.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    /// None was accepted yet.
    #[error("it has no golden")]
    Missing,
    /// A file cannot be read.
    #[error("{file} cannot be read: {error}")]
    Io {
        /// The file's name.
        file: String,
        /// Why.
        error: io::Error,
    },
    /// A file is not what was written.
    #[error("{file} is damaged: {what}")]
    Damaged {
        /// The file's name.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// A later build wrote it.
    #[error("{file} has format {found}; this build reads format {FORMAT_VERSION}")]
    OtherFormat {
        /// The file's name.
        file: String,
        /// Its format.
        found: u64,
    },
}

impl Golden {
    /// The file with what people read.
    #[must_use]
    pub fn file(scenario: &str) -> String {
        format!("{scenario}.json")
    }

    /// The file with the decision log.
    #[must_use]
    pub fn log_file(scenario: &str) -> String {
        format!("{scenario}.log.z")
    }

    /// Reads what was accepted of a scenario.
    ///
    /// # Errors
    /// [`GoldenError`].
    pub fn load(folder: &Path, scenario: &str) -> Result<(Self, Log), GoldenError> {
        let (file, log_file) = (Self::file(scenario), Self::log_file(scenario));
        let text = match read(folder, &file) {
            Err(GoldenError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                return Err(GoldenError::Missing);
            }
            bytes => bytes?,
        };
        let golden = Self::parse(&file, &text, scenario)?;
        let damaged =
            |what: &str| GoldenError::Damaged { file: log_file.clone(), what: what.into() };
        let bytes = read(folder, &log_file)?;
        if Digest::of(&bytes).to_string() != golden.log_digest {
            return Err(damaged(&format!("its digest is not the one in {file}")));
        }
        let log = Log::from_bytes(&bytes).map_err(|error| damaged(&error.to_string()))?;
        if log.inputs() != golden.log_inputs {
            return Err(damaged("it has another number of inputs than was accepted"));
        }
        Ok((golden, log))
    }

    fn parse(file: &str, text: &[u8], scenario: &str) -> Result<Self, GoldenError> {
        let damaged = |what: String| GoldenError::Damaged { file: file.to_owned(), what };
        let value: Value =
            serde_json::from_slice(text).map_err(|error| damaged(error.to_string()))?;
        let found = value.get("format").and_then(Value::as_u64);
        if let Some(found) = found.filter(|&found| found != u64::from(FORMAT_VERSION)) {
            return Err(GoldenError::OtherFormat { file: file.to_owned(), found });
        }
        let golden: Self =
            serde_json::from_value(value).map_err(|error| damaged(error.to_string()))?;
        if golden.scenario != scenario {
            return Err(damaged(format!("it is of the scenario {}", golden.scenario)));
        }
        let sound = |pair: &Value| {
            pair.as_array().is_some_and(|pair| {
                pair.len() == 2 && pair.iter().all(|value| value.is_null() || value.is_number())
            })
        };
        match golden.metrics.0.iter().find(|(_, pair)| !sound(pair)) {
            Some((name, _)) => Err(damaged(format!("{name} is no pair of numbers"))),
            None => Ok(golden),
        }
    }

    /// A metric's value and its noise; `None`: it has no such metric.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<(Option<f64>, Option<f64>)> {
        let pair = self.metrics.0.get(name)?.as_array()?;
        Some((pair.first()?.as_f64(), pair.get(1)?.as_f64()))
    }

    /// Writes down the noise of its metrics, in their order, and from how many runs it is.
    pub(super) fn set_noise(&mut self, noise: &[Option<f64>], runs: u32) {
        for ((_, pair), noise) in self.metrics.0.iter_mut().zip(noise) {
            if let Some(place) = pair.get_mut(1) {
                *place = number::json(*noise);
            }
        }
        self.replications = runs;
    }

    /// As it stands in its file: a line for each fact and metric, so that a diff can be read.
    #[must_use]
    pub fn to_text(&self) -> String {
        // It is an object of plain values: it can be written.
        let Ok(Value::Object(fields)) = serde_json::to_value(self) else { return String::new() };
        let mut text = "{\n".to_owned();
        for (key, value) in fields.iter().filter(|(key, _)| *key != "metrics") {
            let _ = writeln!(text, "  \"{key}\": {value},");
        }
        text += "  \"metrics\": {";
        let mut comma = "";
        for (name, pair) in &self.metrics.0 {
            let _ = write!(text, "{comma}\n    {}: {pair}", Value::from(name.as_str()));
            comma = ",";
        }
        text + "\n  }\n}\n"
    }
}

fn read(folder: &Path, file: &str) -> Result<Vec<u8>, GoldenError> {
    std::fs::read(folder.join(file))
        .map_err(|error| GoldenError::Io { file: file.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden() -> Golden {
        let mut metrics = Map::new();
        metrics.insert("refused_share".into(), serde_json::json!([0.25, 0.01]));
        metrics.insert("judged".into(), serde_json::json!([null, null]));
        Golden {
            format: FORMAT_VERSION,
            scenario: "tour".into(),
            scenario_digest: "0".repeat(16),
            seed: u64::MAX,
            headway: "0.1.0".into(),
            decision_version: 4,
            max_inputs: 0,
            ended: "steps".into(),
            end_sec: 12.5,
            inputs: 3,
            actions: 4,
            digest: "1".repeat(16),
            log_inputs: 0,
            log_digest: Digest::of(&Log::default().to_bytes()).to_string(),
            replications: 4,
            metrics: Pairs(metrics),
        }
    }

    #[test]
    fn a_golden_comes_back_from_its_files_and_each_metric_has_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let golden = golden();
        assert!(golden.to_text().contains("\n    \"refused_share\": [0.25,0.01],\n"));
        std::fs::write(dir.path().join("tour.json"), golden.to_text()).unwrap();
        std::fs::write(dir.path().join("tour.log.z"), Log::default().to_bytes()).unwrap();
        let (found, log) = Golden::load(dir.path(), "tour").unwrap();
        assert_eq!((&found, log), (&golden, Log::default()));
        assert_eq!(found.metric("refused_share"), Some((Some(0.25), Some(0.01))));
        assert_eq!((found.metric("judged"), found.metric("x")), (Some((None, None)), None));
    }

    #[test]
    fn what_is_missing_changed_or_newer_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let load = || Golden::load(dir.path(), "tour").map(drop).unwrap_err();
        let write = |file: &str, text: &[u8]| std::fs::write(dir.path().join(file), text).unwrap();
        assert!(matches!(load(), GoldenError::Missing));
        let text = golden().to_text();
        write("tour.json", text.as_bytes());
        assert!(matches!(load(), GoldenError::Io { .. }), "the log is missing");
        write("tour.log.z", b"HWYLOG1\nx");
        assert!(load().to_string().contains("its digest is not the one in tour.json"));
        for (from, to, said) in [
            ("\"format\": 1", "\"format\": 7", "has format 7; this build reads format 1"),
            ("\"tour\"", "\"other\"", "it is of the scenario other"),
            ("[0.25,0.01]", "[0.25]", "refused_share is no pair of numbers"),
            ("\"seed\"", "\"sead\"", "missing field `seed`"),
            ("{\n", "", "tour.json is damaged"),
        ] {
            write("tour.json", text.replacen(from, to, 1).as_bytes());
            assert!(load().to_string().contains(said), "{}", load());
        }
    }
}

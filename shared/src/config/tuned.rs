//! `tuned.toml`: the configuration that `headway tune` found, where it comes from, and what it
//! promises.
//!
//! The scheduling sections stand in it as a scenario and a live configuration have them, so that a
//! tuned file is read by the same rules, with the same messages.

mod read;
mod write;

pub(super) use read::probe;

use super::diagnostic::Diagnostics;
use super::envelope::Envelope;
use super::sections::Config;
use crate::digest::Digest;
use crate::metrics::Metric;

/// Where a tuned configuration comes from: enough to make it again.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// The scenario's name.
    pub scenario: String,
    /// Its file, as it was given.
    pub scenario_file: String,
    /// The digest of the scenario as it was tuned, the overrides included.
    pub scenario_digest: Digest,
    /// What was laid over the scenario, as it was given: `--set KEY=VALUE`, `--config FILE`,
    /// `--seed N`.
    pub overrides: Vec<String>,
    /// The seed of all random streams.
    pub seed: u64,
    /// Replications of the finalists.
    pub replications: u32,
    /// Simulated runs that it took.
    pub runs: u64,
    /// The version of Headway that made it.
    pub headway: String,
    /// The version of the core's decisions.
    pub decision_version: u32,
    /// The metric that was maximised.
    pub maximize: String,
    /// What had to be kept, such as `staleness_head_p99 <= 4`.
    pub subject_to: Vec<String>,
    /// What was searched, each as `KEY=VALUES`.
    pub space: Vec<String>,
}

/// A tuned file.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// Where it comes from.
    pub provenance: Provenance,
    /// Whole runs: a metric, its mean, and the half-width of the mean's 90% interval.
    pub predicted: Vec<(&'static Metric, f64, f64)>,
    /// What the windows of a healthy run keep.
    pub envelope: Envelope,
    /// The scheduling sections.
    pub config: Config,
}

impl Tuned {
    /// Reads the text of a tuned file; `name` is what messages call it. Returns it with what is
    /// suspicious about it.
    ///
    /// # Errors
    /// Everything that is wrong with it: it is no TOML, no tuned file, it lacks something, its
    /// scheduling sections break a rule, or they are not those that were tuned.
    pub fn load(name: &str, text: &str) -> Result<(Self, Diagnostics), Diagnostics> {
        read::load(name, text)
    }

    /// The text of the file. It holds the scheduling keys that differ from their defaults and
    /// those that were searched, in the order of [`keys`](super::keys::keys).
    #[must_use]
    pub fn to_toml(&self) -> String {
        write::text(self)
    }
}

#[cfg(test)]
mod tests;

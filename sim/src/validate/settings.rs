//! In what runs differ: keys of the scheduling sections, and of the world where it was said.

use headway_shared::config::{Config, keys};

use super::Run;
use crate::scenario::Scenario;

/// Keys that say what others say, and keys that no simulation depends on.
const LEFT_OUT: [&str; 11] = [
    "policy_serving.engine",
    "policy_serving.host",
    "policy_serving.port",
    "policy_serving.weight_sync_pause",
    "reward_judging.rule",
    "policy_training.engine",
    "policy_training.max_head_offpolicyness",
    "policy_training.queue_type",
    "queue.max_size",
    "queue.queue_type",
    "queue.drop_policy",
];

/// The keys in which any run differs from the scenario, and what each run has there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings {
    /// As short as they can be told apart.
    pub(super) keys: Vec<String>,
    /// By run, a value for each key.
    pub(super) values: Vec<Vec<String>>,
}

impl Settings {
    pub(super) fn of(scenario: &Scenario, runs: &[Run]) -> Self {
        let mut columns: Vec<(String, Vec<String>)> = Vec::new();
        for key in keys::keys().iter().filter(|key| !LEFT_OUT.contains(&key.path().as_str())) {
            let written = |config: &Config| {
                let value = key.describe(config).value.unwrap_or_default();
                value.trim_matches('"').to_owned()
            };
            let here = written(&scenario.config);
            let values: Vec<String> =
                runs.iter().map(|run| written(&run.measured.config)).collect();
            if values.iter().any(|value| *value != here) {
                columns.push((key.path(), values));
            }
        }
        for set in runs.iter().flat_map(|run| &run.set) {
            let Some((key, _)) = set.split_once('=') else { continue };
            if columns.iter().any(|(known, _)| known == key) {
                continue;
            }
            // The last one wins, as in the scenario.
            let value = |run: &Run| {
                let mut found = run.set.iter().rev().filter_map(|set| set.split_once('='));
                found.find(|(name, _)| *name == key).map_or("", |(_, value)| value).to_owned()
            };
            columns.push((key.to_owned(), runs.iter().map(value).collect()));
        }
        let paths: Vec<String> = columns.iter().map(|(path, _)| path.clone()).collect();
        let values = (0..runs.len())
            .map(|run| columns.iter().map(|(_, values)| values[run].clone()).collect());
        Self {
            keys: paths.iter().map(|path| short(path, &paths)).collect(),
            values: values.collect(),
        }
    }
}

/// The last name of a path; the whole of one of the world, or where another ends like it.
fn short(path: &str, all: &[String]) -> String {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let alike = all.iter().filter(|other| last(other) == last(path)).count();
    if alike > 1 || path.starts_with("world.") { path.to_owned() } else { last(path) }
}

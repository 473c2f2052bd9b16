//! What every shipped scenario decides is committed: whoever changes a decision sees it here.

use std::fs;

use headway_sim::run::{RunFailure, RunOptions, simulate};

use super::committed;
use super::world_support::load_shipped;

/// The beginning of a run, long enough to meet the warm-up of most things, and quick.
const MAX_INPUTS: u64 = 20_000;

/// The names of all shipped scenarios, sorted.
fn shipped() -> Vec<String> {
    let entries = fs::read_dir(committed::root().join("scenarios")).unwrap();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".toml").map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

#[test]
fn every_shipped_scenario_says_what_it_is_and_where_its_numbers_come_from() {
    for name in shipped() {
        let (scenario, _) = load_shipped(&name);
        assert_eq!(scenario.name, name);
        assert!(!scenario.title.is_empty() && !scenario.description.is_empty(), "{name}");
        assert!(!scenario.sources.is_empty() && !scenario.assumed.is_empty(), "{name}");
    }
}

#[test]
fn every_shipped_scenario_decides_as_committed() {
    let mut table = "scenario,inputs,digest\n".to_owned();
    for name in shipped() {
        let (scenario, _) = load_shipped(&name);
        let options = RunOptions { max_inputs: MAX_INPUTS, ..RunOptions::default() };
        let result = match simulate(&scenario, 0, options) {
            Ok(result) => result,
            Err(RunFailure::Core { result, .. }) => *result,
            Err(error) => panic!("{name}: {error}"),
        };
        table += &format!("{name},{},{}\n", result.inputs, result.digest);
    }
    committed::check("results/digests.csv", &table);
}

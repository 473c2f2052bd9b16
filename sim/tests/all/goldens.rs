//! What every shipped scenario decides is committed: whoever changes a decision sees it here, in a
//! build with debug assertions; `headway check` sees the whole run and its metrics.

use std::fs;

use headway_sim::check::{Golden, beginning};

use super::committed;
use super::world_support::load_shipped;

/// The beginning of a run, long enough to meet the warm-up of most things, and quick.
const INPUTS: u64 = 20_000;

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
    const HELP: &str = "if that is meant: cargo run --release -- check --bless";
    let folder = committed::root().join("results/check");
    for name in shipped() {
        let (scenario, _) = load_shipped(&name);
        let (golden, log) = match Golden::load(&folder, &name) {
            Ok(golden) => golden,
            Err(error) => panic!("{name}: {error}; {HELP}"),
        };
        assert_eq!(golden.max_inputs, 0, "{name}: the whole run is committed");
        assert!(golden.log_inputs >= INPUTS.min(golden.inputs), "{name}: its log is too short");
        if let Some(differs) = beginning(&scenario, &golden, &log, INPUTS) {
            panic!("{name}: {}{HELP}", differs.text());
        }
    }
}

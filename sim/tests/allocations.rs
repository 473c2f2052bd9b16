//! A binary of its own, because its allocator counts.

use std::path::Path;

use headway_shared::config::Layers;
use headway_sim::run::{RunOptions, simulate};
use headway_sim::scenario::Scenario;

fn allocations(scenario: &Scenario, max_inputs: u64) -> u64 {
    let run = || {
        let options = RunOptions { max_inputs, ..RunOptions::default() };
        let result = simulate(scenario, 0, options).unwrap();
        assert_eq!(result.inputs, max_inputs, "the scenario is long enough");
    };
    allocation_counter::measure(run).count_total
}

/// What grows with the run's length is storage that reaches a new largest size, ever more rarely.
#[test]
fn a_run_allocates_nothing_per_event_once_it_is_under_way() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    for name in ["openclaw", "openclaw-own-gate", "applied-compute"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
        let (scenario, _) = Scenario::load(&Layers::new().toml(name, text), &folder).unwrap();
        let (short, long) = (allocations(&scenario, 10_000), allocations(&scenario, 30_000));
        // 20,000 inputs are about 70,000 events, and 50 train steps.
        assert!(long - short < 20, "{name}: {short} allocations, then {long}");
    }
}

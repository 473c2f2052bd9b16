//! A binary of its own, because its allocator counts.

use std::path::Path;

use allocation_counter::measure;
use headway_shared::config::Layers;
use headway_sim::run::{RunOptions, simulate};
use headway_sim::scenario::Scenario;

/// What a longer run adds is storage that reaches a new largest size, ever more rarely.
#[test]
fn a_run_allocates_nothing_per_event_once_it_is_under_way() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    for name in ["openclaw", "openclaw-own-gate", "applied-compute"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
        let layers = Layers::new().toml(name, text).set("scenario.steps=5000");
        let (scenario, _) = Scenario::load(&layers, &folder).unwrap();
        // 40,000 inputs more are about 140,000 events more, and at least 100 train steps.
        let [short, long] = [40_000, 80_000].map(|max_inputs| {
            let options = RunOptions { max_inputs, ..RunOptions::default() };
            let run = || {
                let result = simulate(&scenario, 0, options).unwrap();
                assert_eq!(result.inputs, max_inputs, "the scenario is long enough");
            };
            measure(run).count_total
        });
        assert!(long - short < 20, "{name}: {short} allocations, then {long}");
    }
}

//! A binary of its own, because its allocator counts.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::path::Path;

use allocation_counter::{AllocationInfo, measure};
use headway_shared::config::Layers;
use headway_sim::run::{RunOptions, simulate};
use headway_sim::scenario::Scenario;

fn load(name: &str, sets: &[&str]) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
    let layers = Layers::new().toml(name, text).set("scenario.steps=50000");
    let layers = sets.iter().fold(layers, |layers, set| layers.set(*set));
    Scenario::load(&layers.set("duration_sec=1000000000"), &folder).unwrap().0
}

/// What a run of so many inputs allocates, and how many steps it makes.
fn run(scenario: &Scenario, max_inputs: u64) -> (AllocationInfo, u64) {
    let options = RunOptions { max_inputs, ..RunOptions::default() };
    let mut steps = 0;
    let allocated = measure(|| {
        let result = simulate(scenario, 0, options).unwrap();
        assert_eq!(result.inputs, max_inputs, "the scenario is long enough");
        steps = result.course.staleness.len() as u64;
    });
    (allocated, steps)
}

/// What a longer run adds is storage that reaches a new largest size, ever more rarely.
#[test]
fn a_run_allocates_nothing_per_event_once_it_is_under_way() {
    let few: &[&str] = &["policy_training.batch_size=16", "world.clients.slots=32"];
    let scenarios = [
        ("openclaw", &[][..]),
        ("openclaw-own-gate", &[]),
        ("applied-compute", &[]),
        ("verl-fully-async", few),
        // Many of its turns have tokens of more than two versions, which stand on the heap.
        ("areal-math", &["policy_training.batch_size=2", "world.clients.slots=256"]),
    ];
    for (name, sets) in scenarios {
        let scenario = load(name, sets);
        // 40,000 inputs more are about 140,000 events more.
        let [short, long] = [40_000, 80_000].map(|inputs| run(&scenario, inputs).0.count_total);
        assert!(long - short < 20, "{name}: {short} allocations, then {long}");
    }
}

/// What a run keeps for good is eight bytes a train step, with room to grow: how stale its samples
/// were, from which the warm-up is checked.
#[test]
fn a_longer_run_needs_no_more_memory() {
    for name in ["openclaw", "applied-compute"] {
        let scenario = load(name, &[]);
        let [(short, _), (long, steps)] = [40_000, 160_000].map(|inputs| run(&scenario, inputs));
        assert!(steps > 100, "{name}: the longer run is long: {steps} steps");
        let more = long.bytes_max.saturating_sub(short.bytes_max + 24 * steps);
        assert!(
            more < short.bytes_max / 20,
            "{name}: {} bytes at most, then {}",
            short.bytes_max,
            long.bytes_max
        );
    }
}

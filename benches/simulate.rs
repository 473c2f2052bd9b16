//! Speed of whole runs: core, world and observer together, one thread.
//!
//! Each scenario is measured three times over the same run, once per unit: events, trained
//! samples, simulated hours. An event is one thing handled: something that was due in the world
//! (stale wakes included), one fact given to the core, or one decision taken from it. Before each
//! scenario a line says how many of each there are, so that any other unit can be had by division.
//!
//! Runs have their shipped length; loading the scenario is not measured. Criterion measures the
//! clock on the wall: on a machine that does nothing else that is a core's time.

#![expect(clippy::panic, reason = "a bench that cannot run has nothing to report")]

use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use headway_shared::config::Layers;
use headway_sim::run::{RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;

fn load(name: &str) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let path = folder.join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    match Scenario::load(&Layers::new().toml(format!("{name}.toml"), text), &folder) {
        Ok((scenario, _)) => scenario,
        Err(problems) => panic!("{problems}"),
    }
}

fn run(scenario: &Scenario) -> RunResult {
    match simulate(scenario, 0, RunOptions::default()) {
        Ok(result) => result,
        Err(failure) => panic!("{failure}"),
    }
}

fn runs(criterion: &mut Criterion) {
    for name in ["openclaw", "areal-math"] {
        let scenario = load(name);
        let RunResult { world_events, inputs, actions, trained, end, .. } = run(&scenario);
        let events = world_events + inputs + actions;
        let seconds = end.as_nanos() / 1_000_000_000;
        println!(
            "{name}: {events} events ({world_events} in the world, {inputs} inputs, {actions} \
             actions), {trained} samples trained, {seconds} s simulated"
        );
        let units = [("events", events), ("trained samples", trained), ("simulated s", seconds)];
        for (unit, count) in units {
            let mut group = criterion.benchmark_group(name);
            group.sample_size(10).sampling_mode(SamplingMode::Flat);
            group.warm_up_time(Duration::from_secs(1));
            group.throughput(Throughput::Elements(count));
            group.bench_function(unit, |bencher| bencher.iter(|| run(&scenario)));
            group.finish();
        }
    }
}

criterion_group!(benches, runs);
criterion_main!(benches);

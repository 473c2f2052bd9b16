//! A bound that follows what `[world.drift]` predicts of each step.

use headway_shared::input::Input;
use headway_shared::record::Reader;
use headway_shared::replay::replay;
use headway_sim::run::{RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;

use super::world_support::{SLOTS, load, load_shipped, problems};

/// The shipped scenario, in which the drift doubles at step 60 of 150.
fn shipped(more: &[&str]) -> Scenario {
    let (scenario, _) = load_shipped("adaptive");
    let window = "world.drift.windows=[{ from_step = 60, a = 0.002 }]";
    let sets = [&["steps=150", window], more].concat();
    let sets: Vec<String> = sets.into_iter().map(str::to_owned).collect();
    scenario.with_sets(&sets).unwrap().0
}

/// A run, and the bound after each of its steps.
fn watched(scenario: &Scenario) -> (RunResult, Vec<u32>) {
    let mut bounds = Vec::new();
    let mut watch = |_, input: &Input, _: &[_], core: &headway_shared::core::Scheduler| {
        if let Input::Measured(_) = input {
            bounds.push(core.eta_in_force());
        }
    };
    let options = RunOptions { watch: Some(&mut watch), ..RunOptions::default() };
    let result = simulate(scenario, 0, options).unwrap();
    (result, bounds)
}

#[test]
fn the_bound_rises_while_the_policy_hardly_moves_and_falls_when_it_moves_more() {
    let (result, bounds) = watched(&shipped(&[]));
    assert_eq!(bounds.len(), 149, "every step is measured but the one that ends the run");
    let before = bounds[..60].iter().copied().max().unwrap();
    let after = bounds[60..].iter().copied().min().unwrap();
    assert!(before > 4 && after < 4, "it begins at 4: {bounds:?}");
    let mean = result.summary.get("bound_mean").unwrap();
    assert!((1.0..=8.0).contains(&mean) && mean.fract() != 0.0, "{mean}");
}

#[test]
fn equal_runs_move_the_bound_alike_and_a_record_moves_it_again() {
    let scenario = shipped(&[]);
    let (first, bounds) = watched(&scenario);
    let (again, same) = watched(&scenario);
    assert_eq!((first.digest, &bounds), (again.digest, &same));
    let mut bytes = Vec::new();
    let options = RunOptions { record: Some(&mut bytes), ..RunOptions::default() };
    assert_eq!(simulate(&scenario, 0, options).unwrap().digest, first.digest);
    let report = replay(Reader::open(bytes.as_slice()).unwrap()).unwrap();
    assert_eq!(report.decisions.digest, first.digest);
}

#[test]
fn a_bound_that_is_off_is_not_measured() {
    let (_, bounds) = watched(&shipped(&["policy_training.adaptive.signal=off"]));
    assert!(bounds.is_empty());
}

#[test]
fn a_bound_that_follows_nothing_is_refused() {
    let adaptive = "\n[policy_training.adaptive]\nsignal = \"ess\"\ntarget = 0.9\n";
    let text = problems(&format!("{SLOTS}{adaptive}"), &[]);
    assert!(text.contains("without [world.drift] nothing is measured"), "{text}");
    assert!(text.contains("add [world.drift] with `sigma0`, `a` and `p`"), "{text}");
    let drift = "[world.drift]\nsigma0 = 0.1\na = 0.01\np = 1\n";
    load(&format!("{SLOTS}{adaptive}{drift}"), &[]);
}

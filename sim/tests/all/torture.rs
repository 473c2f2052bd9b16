//! Torture: what is broken is found, repeated, and reduced.

use headway_sim::torture::{Case, Limits, SLOTS, play, reduce};

/// A world that has no end: groups without a time limit, and members that never come.
fn endless() -> Case {
    let set = [
        "scenario.steps=0",
        "scenario.duration_sec=1e8",
        "votes=3",
        "group_size=2",
        "group_timeout_sec=0",
        "publish_interval=2",
        "gate=\"sync\"",
        "publish_interval=1",
        "over_limit=\"hold\"",
        "sample_unit=\"session\"",
        "world.clients.environment=true",
        "world.environment.failure_share=0.3",
    ];
    Case { text: SLOTS, set: set.map(str::to_owned).to_vec() }
}

#[test]
fn the_case_of_a_seed_is_the_same_whenever_it_is_made_and_loads() {
    for seed in 0..200 {
        let case = Case::of_seed(seed);
        assert_eq!(case, Case::of_seed(seed));
        assert!(case.load().is_ok(), "{}", case.load().unwrap_err());
    }
}

#[test]
fn what_never_ends_is_found_and_reduced_to_what_makes_it_so() {
    let limits = Limits { inputs: 400, drain: 4000 };
    let case = endless();
    let what = play(&case, limits).unwrap_err();
    assert!(what.contains("group mates"), "{what}");
    let (small, least) = reduce(&case, limits);
    assert!(play(&small, least).is_err());
    let kept = |name: &str| small.set.iter().any(|set| set.starts_with(name));
    assert!(!kept("votes") && !kept("publish_interval"), "{:?}", small.set);
    assert!(kept("group_timeout_sec") && kept("world.environment.failure_share"), "{small:?}");
    assert!(least.inputs < limits.inputs);
}

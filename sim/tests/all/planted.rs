//! Bugs that are planted in the real core and in the simulator's driver: torture finds each.

use headway_shared::planted::{Plant, Planted};
use headway_sim::torture::{Case, Limits, play_planted};

/// As many as the tests play of the core as it is.
const SEEDS: u32 = 2000;

/// The first seed that finds a bug, and what it finds.
fn first(bug: Planted) -> (u32, String) {
    let find = |seed: u32| {
        let case = Case::of_seed(u64::from(seed));
        Some((seed, play_planted(&case, Limits::default(), Plant::of(bug)).err()?))
    };
    (0..SEEDS).find_map(find).unwrap_or_else(|| panic!("{bug:?} is not found"))
}

/// What fits a bug, of all that could be said.
fn complaint(bug: Planted) -> &'static str {
    match bug {
        Planted::SurplusDropped => "is discarded as surplus, for which there is no reason",
        Planted::CumulativeCounter => "are taken",
        Planted::LostWakeUp => "waits, and there is a place and a replica for it",
        Planted::OffByOneLag => "are taken",
        Planted::GateNotReopened => "takes no new turns, and no publication is under way",
        Planted::VoteCountedTwice => "its votes are",
        Planted::DuplicateTrained => "were generated for it",
        Planted::StaleLabel => "the versions of",
        Planted::QueueOverCapacity => "samples in an output queue of",
        Planted::SilentEviction => "samples are discarded, and",
        Planted::ActionDropped => "a train step has not ended",
    }
}

/// The rows of `docs/torture.md` that name a bug and the seed that finds it.
fn documented() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/torture.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_planted_bug_is_found_by_the_seed_of_the_table() {
    let page = documented();
    let mut wrong = Vec::new();
    for bug in Planted::ALL {
        let (seed, what) = first(bug);
        assert!(what.contains(complaint(bug)), "{bug:?}, seed {seed}: {what}");
        let named = |row: &str| row.starts_with(&format!("| `{bug:?}` | {seed} |"));
        if !page.lines().any(named) {
            wrong.push(format!("{bug:?}: {seed}"));
        }
    }
    assert!(wrong.is_empty(), "docs/torture.md does not say what seeds find: {wrong:#?}");
}

#[test]
fn where_none_is_planted_none_is_found() {
    for seed in 0..50 {
        let played = play_planted(&Case::of_seed(seed), Limits::default(), Plant::default());
        assert_eq!(played, Ok(()), "seed {seed}");
    }
}

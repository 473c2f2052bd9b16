//! Version stamps come from the engines; what cannot be true is not trained.

use headway_shared::action::Discard;
use headway_shared::config::SyncMode;
use headway_shared::core::Stage;
use headway_shared::input::{Finish, Input, Segment, Segments};
use headway_shared::version::RolloutVersion;

use super::harness::{Bench, GOOD, secs};

/// A turn whose replica held version 2 from its start to its end, stamped by `versions`.
fn stamped(mode: SyncMode, versions: &[u32]) -> Option<Discard> {
    let mut bench = Bench::new(|c| c.policy_serving.sync_mode = mode);
    bench.steps(2);
    let request = bench.admit(0);
    let segment = |version: &u32| Segment { version: RolloutVersion::new(*version), tokens: 3 };
    let segments: Segments = versions.iter().map(segment).collect();
    bench.give(Input::GenerationEnded {
        request,
        attempt: 1,
        finish: Finish::Stop,
        first_token: Some(bench.now),
        segments,
    });
    bench.fate(bench.sample_of(request))
}

#[test]
fn a_stamp_of_the_replica_s_version_is_trained() {
    assert_eq!(stamped(SyncMode::PauseDrain, &[2]), None);
}

#[test]
fn a_stamp_that_is_newer_than_its_replica_is_an_error_and_no_negative_staleness() {
    assert_eq!(stamped(SyncMode::PauseDrain, &[3]), Some(Discard::BadStamp));
    assert_eq!(stamped(SyncMode::InFlight, &[2, 3]), Some(Discard::BadStamp));
    assert_eq!(stamped(SyncMode::InFlight, &[u32::MAX]), Some(Discard::BadStamp));
}

#[test]
fn stamps_that_go_backwards_are_an_error() {
    assert_eq!(stamped(SyncMode::InFlight, &[2, 1]), Some(Discard::BadStamp));
}

#[test]
fn stamps_do_not_mix_where_nothing_mixes() {
    assert_eq!(stamped(SyncMode::PauseDrain, &[1, 2]), Some(Discard::BadStamp));
    assert_eq!(stamped(SyncMode::Rolling, &[1, 2]), Some(Discard::BadStamp));
}

/// A turn whose replica went from version 2 to 3 meanwhile, stamped so.
fn stamped_over_a_swap(segments: &[(u32, u32)]) -> Option<Discard> {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 9);
    bench.steps(2);
    let request = bench.admit(500);
    bench.steps(1);
    let segment =
        |&(version, tokens): &(u32, u32)| Segment { version: RolloutVersion::new(version), tokens };
    bench.give(Input::GenerationEnded {
        request,
        attempt: 1,
        finish: Finish::Stop,
        first_token: Some(bench.now),
        segments: segments.iter().map(segment).collect(),
    });
    bench.fate(bench.sample_of(request))
}

#[test]
fn where_weights_were_swapped_only_what_they_were_can_be_stamped() {
    for possible in [&[(2, 3), (3, 3)][..], &[(2, 3)], &[(3, 3)]] {
        assert_eq!(stamped_over_a_swap(possible), None, "{possible:?}");
    }
    let impossible =
        [[(2, 3), (2, 3)], [(1, 3), (3, 3)], [(2, 3), (4, 3)], [(2, 0), (3, 3)], [(3, 3), (2, 3)]];
    for segments in impossible {
        assert_eq!(stamped_over_a_swap(&segments), Some(Discard::BadStamp), "{segments:?}");
    }
}

#[test]
fn a_version_is_stamped_once_and_only_read_after_that() {
    let mut bench = Bench::new(|_| {});
    let early = bench.turn(0);
    let head = bench.core.sample(early).expect("outstanding").head;
    bench.steps(1);
    bench.vote(early, GOOD);
    bench.steps(1);
    assert_eq!(bench.trained_sample(early).head, head);
}

#[test]
fn a_first_token_has_the_version_of_its_time_however_late_its_turn_ends() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 9);
    let slow = bench.admit(500);
    for _ in 0..3 {
        bench.advance(secs(10));
        bench.steps(1);
    }
    bench.finish(slow);
    let sample = bench.core.sample(bench.sample_of(slow)).expect("outstanding");
    assert_eq!(sample.learner(Stage::FirstToken).number(), 0);
    assert_eq!(sample.learner(Stage::Generated).number(), 3);
}

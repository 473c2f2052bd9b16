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

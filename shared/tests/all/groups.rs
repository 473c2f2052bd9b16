//! Groups: one place for all members, ready when all are resolved.

mod filter;
mod interleaved;
mod over_sampling;
mod stragglers;

use headway_shared::action::{Action, Discard, Refusal};
use headway_shared::core::SampleState;
use headway_shared::input::{Finish, Input};
use headway_shared::time::Span;

use super::harness::{Bench, Decision, GOOD, R0, R1, ZERO};

fn grouped(size: u32, batch: u32, eta: u32) -> Bench {
    Bench::new(|c| {
        c.policy_training.group_size = size;
        c.policy_training.min_group_size = size;
        c.policy_training.batch_size = batch;
        c.policy_training.max_head_off_policyness = eta;
    })
}

#[test]
fn two_groups_of_eight_with_interleaved_members_fill_one_batch_at_eta_zero() {
    let mut bench = grouped(8, 2, 0);
    let mut requests = Vec::new();
    for member in 0..8 {
        for group in 0..2 {
            requests.push(bench.admit_in(member * 10 + group, group));
        }
    }
    let third = bench.request_in(99, 2);
    bench.refused(third, Refusal::Stale);
    // They end in another order than they began.
    requests.reverse();
    for request in requests {
        bench.finish(request);
        bench.vote(bench.sample_of(request), GOOD);
    }
    assert_eq!(bench.batch().len(), 16);
    bench.end_step(true);
    assert_eq!(bench.trained.len(), 16);
    assert_eq!(bench.worst_staleness(), 0);
}

#[test]
fn a_place_is_taken_by_the_first_member_and_the_others_need_none() {
    let mut bench = grouped(3, 1, 0);
    bench.admit_in(0, 7);
    let other = bench.request_in(1, 8);
    bench.refused(other, Refusal::Stale);
    bench.admit_in(2, 7);
    bench.admit_in(3, 7);
    assert_eq!(bench.core.ledger().admitted, 3);
}

#[test]
fn a_group_waits_for_its_last_member_outside_the_output_queue() {
    let mut bench = grouped(2, 1, 0);
    bench.scored_in(0, 7, GOOD);
    assert_eq!(bench.core.ledger().count(SampleState::GroupWait), 1);
    assert_eq!(bench.core.gauges().output_queue, 0);
    assert!(!bench.training());
    bench.scored_in(1, 7, ZERO);
    assert_eq!(bench.batch().len(), 2);
}

#[test]
fn a_group_below_min_group_size_is_discarded_whole_and_frees_its_place() {
    let mut bench = grouped(2, 1, 0);
    let good = bench.scored_in(0, 7, GOOD);
    let bad = bench.admit_in(1, 7);
    bench.finish_as(bad, Finish::Failed, 0);
    assert_eq!(bench.fate(bench.sample_of(bad)), Some(Discard::GenerationFailed));
    assert_eq!(bench.fate(good), Some(Discard::GroupTooSmall));
    bench.admit_in(2, 8);
}

#[test]
fn a_group_that_keeps_enough_members_trains_without_the_failed_one() {
    let mut bench = Bench::new(|c| {
        c.policy_training.group_size = 3;
        c.policy_training.min_group_size = 2;
        c.policy_training.batch_size = 1;
    });
    let failed = bench.admit_in(0, 7);
    bench.finish_as(failed, Finish::Failed, 0);
    let a = bench.scored_in(1, 7, GOOD);
    let b = bench.scored_in(2, 7, GOOD);
    assert_eq!(bench.batch(), [a, b]);
}

#[test]
fn a_request_without_a_group_is_a_bad_request() {
    let mut bench = grouped(2, 1, 0);
    bench.refuses(0, Refusal::BadGroup);
    assert_eq!(Refusal::BadGroup.status(), 400);
    let no_retry =
        |action: &Action| matches!(action, Action::Refuse { retry_after: Span::ZERO, .. });
    assert!(bench.did(no_retry), "to ask again would not help");
}

#[test]
fn a_request_for_a_complete_group_is_a_bad_request() {
    let mut bench = grouped(2, 2, 3);
    bench.admit_in(0, 7);
    bench.admit_in(1, 7);
    let third = bench.request_in(2, 7);
    bench.refused(third, Refusal::BadGroup);
}

#[test]
fn later_members_need_a_replica_at_least_as_new_as_the_first_ones() {
    let mut bench = grouped(2, 1, 3);
    bench.replica_up(R1, 0);
    bench.scored_in(0, 1, GOOD);
    bench.scored_in(1, 1, GOOD);
    bench.end_step(true);
    bench.save();
    bench.load(R0);
    let first = bench.admit_in(2, 2);
    assert!(matches!(bench.decision(first), Decision::Started { replica: R0, .. }));
    // R1 has less to do, and older weights.
    let second = bench.admit_in(3, 2);
    assert!(matches!(bench.decision(second), Decision::Started { replica: R0, .. }));
}

#[test]
fn the_oldest_member_decides_how_old_a_group_is() {
    let mut bench = Bench::new(|c| {
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 2;
        c.policy_training.batch_size = 1;
        c.policy_training.bound = headway_shared::config::Bound::Strict;
        c.policy_training.max_head_off_policyness = 1;
    });
    let old = bench.admit_in(0, 1);
    bench.scored_in(10, 2, GOOD);
    bench.scored_in(11, 2, GOOD);
    bench.end_step(true);
    bench.publish();
    // The group began at version 0 and gets a second member at version 1.
    let young = bench.admit_in(1, 1);
    bench.scored_in(12, 3, GOOD);
    bench.scored_in(13, 3, GOOD);
    bench.end_step(true);
    assert_eq!(bench.fate(bench.sample_of(old)), Some(Discard::Late));
    assert_eq!(bench.fate(bench.sample_of(young)), Some(Discard::GroupTooSmall));
    assert_eq!(bench.core.gauges().outstanding, 0, "its place is free again");
}

#[test]
fn a_filtered_group_gives_its_place_back() {
    let mut bench = Bench::new(|c| {
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 2;
        c.policy_training.batch_size = 1;
        c.policy_training.max_head_off_policyness = 0;
        c.reward_judging.zero_score = headway_shared::config::ZeroScore::Discard;
    });
    for group in 0..20 {
        bench.scored_in(2 * group, group, GOOD);
        bench.scored_in(2 * group + 1, group, ZERO);
        assert_eq!(bench.core.gauges().outstanding, 0, "after group {group}");
    }
    bench.scored_in(100, 100, GOOD);
    bench.scored_in(101, 100, GOOD);
    assert!(bench.training(), "a producer of filtered groups does not starve");
}

#[test]
fn members_lost_with_their_replica_are_not_aborted_as_well() {
    let mut bench = Bench::new(|c| {
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 2;
        c.policy_serving.aborted = headway_shared::config::Aborted::Discard;
    });
    bench.admit_in(0, 7);
    bench.admit_in(1, 7);
    bench.replica_down(R0);
    assert!(!bench.did(|action| matches!(action, Action::AbortGeneration { .. })));
    assert_eq!(bench.core.gauges().outstanding, 0);
}

#[test]
fn a_group_that_is_refused_after_the_source_is_exhausted_breaks_nothing() {
    let mut bench = grouped(2, 1, 0);
    bench.give(Input::SourceExhausted);
    bench.replica_down(R0);
    let request = bench.request_in(0, 1);
    bench.refused(request, Refusal::NoReplica);
}

#[test]
fn the_room_of_members_that_never_come_is_given_back() {
    let mut bench = Bench::new(|c| {
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 1;
        c.policy_training.batch_size = 1;
        c.queue.rollout.max_size = 2;
    });
    let only = bench.scored_in(0, 1, GOOD);
    bench.give(Input::SourceExhausted);
    assert_eq!(bench.batch(), [only]);
    bench.end_step(true);
    bench.publish();
    bench.admit_in(1, 2);
}

#[test]
fn a_group_whose_first_member_was_served_only_is_not_waited_for() {
    let mut bench = Bench::new(|c| {
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 1;
        c.policy_training.batch_size = 1;
        c.policy_training.max_head_off_policyness = 0;
        c.policy_serving.over_limit = headway_shared::config::OverLimit::ServeOnly;
    });
    bench.scored_in(0, 1, GOOD);
    let served = bench.request_in(1, 2);
    assert_eq!(bench.decision(served), Decision::Started { replica: R0, sample: None });
    bench.finish(served);
    bench.scored_in(2, 1, GOOD);
    bench.end_step(true);
    bench.publish();
    // The first member of group 2 will not come again: its second completes what there is.
    let second = bench.request_in(3, 2);
    if bench.watch.attempt(second).is_some() {
        bench.finish(second);
    }
    if let Decision::Started { sample: Some(sample), .. } = bench.decision(second) {
        bench.vote(sample, GOOD);
    }
    assert!(bench.training() || bench.core.gauges().outstanding == 0, "its place is stuck");
}

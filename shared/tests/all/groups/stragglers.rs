//! Groups that wait no longer: for their stragglers, or for members that never come.

use headway_shared::action::{Action, Discard, Refusal};
use headway_shared::core::SampleState;
use headway_shared::input::{Finish, Input, VoteOutcome};

use super::super::harness::{Bench, GOOD, ZERO, secs};

/// Groups of 3 that need 2 members, one group per batch at η = 0.
fn impatient(wait: u64) -> Bench {
    Bench::new(|c| {
        c.policy_training.group_size = 3;
        c.policy_training.min_group_size = 2;
        c.policy_training.batch_size = 1;
        c.policy_training.max_head_off_policyness = 0;
        c.policy_training.straggler_wait = secs(wait);
    })
}

#[test]
fn a_group_trains_without_a_straggler_after_the_wait() {
    let mut bench = impatient(10);
    let slow = bench.admit_in(0, 7);
    let a = bench.scored_in(1, 7, GOOD);
    bench.advance(secs(100));
    assert_eq!(bench.core.poll_timeout(), Some(bench.now + secs(1800 - 100)), "one is not enough");
    let b = bench.scored_in(2, 7, ZERO);
    bench.advance(secs(9));
    assert!(!bench.training());
    bench.advance(secs(1));
    assert_eq!(bench.batch(), [a, b]);
    assert_eq!(bench.fate(bench.sample_of(slow)), Some(Discard::Straggler));
    assert!(bench.did(|action| matches!(action, Action::AbortGeneration { .. })));
}

#[test]
fn what_a_dropped_straggler_still_says_changes_nothing() {
    let mut bench = impatient(10);
    let slow = bench.admit_in(0, 7);
    bench.scored_in(1, 7, GOOD);
    bench.scored_in(2, 7, ZERO);
    bench.advance(secs(10));
    bench.finish(slow);
    assert!(bench.last.is_empty(), "{:?}", bench.last);
    bench.end_step(true);
    assert_eq!(bench.trained.len(), 2);
    bench.publish();
    bench.admit_in(3, 8);
}

#[test]
fn a_straggler_that_is_being_judged_is_dropped_with_its_votes() {
    let mut bench = impatient(10);
    let slow = bench.turn_in(0, 7);
    bench.scored_in(1, 7, GOOD);
    bench.scored_in(2, 7, ZERO);
    bench.advance(secs(10));
    assert_eq!(bench.fate(slow), Some(Discard::Straggler));
    assert_eq!(bench.votes_on(slow), 0);
    assert!(bench.did(|action| matches!(action, Action::CancelVote { .. })));
}

#[test]
fn a_straggler_that_comes_in_time_is_trained() {
    let mut bench = impatient(10);
    let slow = bench.admit_in(0, 7);
    bench.scored_in(1, 7, GOOD);
    bench.scored_in(2, 7, ZERO);
    bench.advance(secs(9));
    bench.finish(slow);
    bench.vote(bench.sample_of(slow), GOOD);
    assert_eq!(bench.batch().len(), 3);
    bench.advance(secs(100));
    assert!(bench.discarded.is_empty());
}

#[test]
fn members_without_a_gradient_count_as_scored() {
    let mut bench = Bench::new(|c| {
        c.policy_training.group_size = 3;
        c.policy_training.min_group_size = 2;
        c.policy_training.batch_size = 1;
        c.policy_training.straggler_wait = secs(10);
        c.reward_judging.judge_retries = 0;
        c.reward_judging.on_judge_failure = headway_shared::config::OnJudgeFailure::Mask;
    });
    bench.admit_in(0, 7);
    bench.scored_in(1, 7, GOOD);
    let masked = bench.turn_in(2, 7);
    bench.vote_as(masked, VoteOutcome::Invalid);
    bench.advance(secs(10));
    assert_eq!(bench.batch().len(), 2);
}

#[test]
fn a_member_that_comes_after_its_group_went_on_is_refused_even_when_that_was_trained() {
    let mut bench = impatient(10);
    bench.scored_in(0, 7, GOOD);
    bench.scored_in(1, 7, ZERO);
    bench.advance(secs(10));
    assert!(bench.training());
    bench.end_step(true);
    bench.publish();
    let late = bench.request_in(2, 7);
    bench.refused(late, Refusal::BadGroup);
    // All three have come: the name is free again.
    bench.admit_in(3, 7);
}

#[test]
fn the_wait_ends_when_too_few_scored_members_are_left_and_begins_again() {
    let mut bench = Bench::new(|c| {
        c.policy_training.group_size = 4;
        c.policy_training.min_group_size = 2;
        c.policy_training.batch_size = 1;
        c.policy_training.straggler_wait = secs(10);
        c.policy_training.stale_filter_steps = Some(2);
    });
    let step = |bench: &mut Bench, group: u64| {
        for member in 0..4 {
            bench.scored_in(10 * group + member, group, GOOD);
        }
        bench.end_step(true);
        bench.publish();
    };
    let old = bench.scored_in(0, 7, GOOD);
    step(&mut bench, 1);
    let second = bench.scored_in(1, 7, GOOD);
    step(&mut bench, 2);
    step(&mut bench, 3);
    assert_eq!(bench.fate(old), Some(Discard::StaleFilter));
    let slow = bench.admit_in(2, 7);
    bench.advance(secs(100));
    assert_eq!(bench.fate(bench.sample_of(slow)), None, "one is not enough");
    let last = bench.scored_in(3, 7, ZERO);
    bench.advance(secs(10));
    assert_eq!(bench.batch(), [second, last]);
    assert_eq!(bench.fate(bench.sample_of(slow)), Some(Discard::Straggler));
}

#[test]
fn without_a_wait_a_group_waits_until_its_timeout() {
    let mut bench = impatient(0);
    bench.reconfigure(|c| c.policy_serving.generation_timeout = secs(0));
    let slow = bench.admit_in(0, 7);
    bench.scored_in(1, 7, GOOD);
    bench.scored_in(2, 7, ZERO);
    bench.advance(secs(7199));
    assert!(!bench.training());
    bench.advance(secs(1));
    assert_eq!(bench.batch().len(), 2);
    assert_eq!(bench.fate(bench.sample_of(slow)), Some(Discard::Straggler));
}

#[test]
fn a_member_that_is_never_requested_does_not_keep_its_place_for_ever() {
    let mut bench = Bench::new(|c| {
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 2;
        c.policy_training.batch_size = 1;
        c.policy_training.max_head_off_policyness = 0;
    });
    let only = bench.scored_in(0, 7, GOOD);
    let other = bench.request_in(1, 8);
    bench.refused(other, Refusal::Stale);
    bench.advance(secs(7200));
    assert_eq!(bench.fate(only), Some(Discard::GroupTooSmall));
    assert_eq!(bench.core.ledger().count(SampleState::GroupWait), 0);
    bench.admit_in(2, 8);
    let late = bench.request_in(3, 7);
    bench.refused(late, Refusal::BadGroup);
}

#[test]
fn a_group_that_was_given_up_is_forgotten_after_the_same_time_again() {
    let mut bench = impatient(0);
    bench.admit_in(0, 7);
    bench.advance(secs(7200));
    assert!(bench.core.poll_timeout().is_some());
    bench.advance(secs(7200));
    assert_eq!(bench.core.poll_timeout(), None, "nothing of it is left");
}

#[test]
fn the_timeout_of_a_group_ends_with_its_last_score() {
    let mut bench = Bench::new(|c| {
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 1;
        c.policy_training.batch_size = 2;
    });
    bench.scored_in(0, 7, GOOD);
    bench.scored_in(1, 7, GOOD);
    bench.advance(secs(100_000));
    assert!(bench.discarded.is_empty(), "a ready group waits for its batch as long as it takes");
}

#[test]
fn both_times_take_effect_at_once_when_they_are_changed() {
    let mut bench = impatient(0);
    bench.admit_in(0, 7);
    bench.scored_in(1, 7, GOOD);
    bench.scored_in(2, 7, ZERO);
    bench.advance(secs(60));
    bench.reconfigure(|c| c.policy_training.straggler_wait = secs(30));
    assert!(bench.training(), "it has waited for a minute");
    bench.end_step(true);
    bench.publish();
    let slow = bench.admit_in(10, 8);
    bench.advance(secs(60));
    bench.reconfigure(|c| c.policy_training.group_timeout = secs(30));
    assert_eq!(bench.fate(bench.sample_of(slow)), Some(Discard::GroupTooSmall));
}

#[test]
fn a_lower_least_size_begins_the_wait_of_groups_that_have_enough_now() {
    let mut bench = Bench::new(|c| {
        c.policy_training.group_size = 3;
        c.policy_training.min_group_size = 3;
        c.policy_training.batch_size = 1;
    });
    bench.admit_in(0, 7);
    bench.scored_in(1, 7, GOOD);
    bench.advance(secs(60));
    bench.reconfigure(|c| {
        c.policy_training.min_group_size = 1;
        c.policy_training.straggler_wait = secs(30);
    });
    bench.advance(secs(29));
    assert!(!bench.training());
    bench.advance(secs(1));
    assert_eq!(bench.batch().len(), 1);
}

#[test]
fn a_member_in_line_is_refused_when_its_group_goes_on() {
    let mut bench = Bench::new(|c| {
        c.policy_training.group_size = 3;
        c.policy_training.min_group_size = 2;
        c.policy_training.batch_size = 1;
        c.policy_training.straggler_wait = secs(10);
        c.policy_serving.over_limit = headway_shared::config::OverLimit::Hold;
        c.policy_serving.max_concurrent_rollouts = 1;
    });
    bench.scored_in(0, 7, GOOD);
    bench.scored_in(1, 7, ZERO);
    let busy = bench.admit_in(9, 8);
    let in_line = bench.request_in(2, 7);
    assert_eq!(bench.decision(in_line), super::Decision::Held);
    bench.advance(secs(10));
    bench.refused(in_line, Refusal::BadGroup);
    assert!(bench.training());
    bench.finish_as(busy, Finish::Failed, 0);
}

#[test]
fn a_group_that_is_complete_but_for_members_that_never_come_trains_when_the_source_is_dry() {
    let mut bench = impatient(0);
    bench.scored_in(0, 7, GOOD);
    bench.scored_in(1, 7, ZERO);
    bench.give(Input::SourceExhausted);
    assert_eq!(bench.batch().len(), 2);
}

//! Votes and what they make of a sample.

use headway_shared::action::{Action, Discard, Refusal};
use headway_shared::config::{
    Aggregate, Config, JudgeMode, JudgeNeeds, OnJudgeFailure, OnTie, OverLimit, ZeroScore,
};
use headway_shared::core::SampleState;
use headway_shared::id::SampleId;
use headway_shared::input::{Finish, Input, Score, VoteOutcome};

use super::harness::{BAD, Bench, Decision, GOOD, ZERO, secs};

/// Batches of 1, five votes a sample.
fn court(edit: impl FnOnce(&mut Config)) -> Bench {
    Bench::new(|c| {
        c.policy_training.batch_size = 1;
        c.policy_training.max_head_off_policyness = 9;
        c.reward_judging.judge_concurrency = 8;
        c.reward_judging.judge_retries = 0;
        c.reward_judging.votes = 5;
        edit(c);
    })
}

/// The score of a sample after these votes.
fn verdict(aggregate: Aggregate, votes: &[Score]) -> Score {
    let mut bench = court(|c| {
        c.reward_judging.aggregate = aggregate;
        c.reward_judging.votes = votes.len() as u32;
    });
    let sample = bench.turn(0);
    for vote in votes {
        if bench.votes_on(sample) > 0 {
            bench.vote(sample, *vote);
        }
    }
    assert_eq!(bench.votes_on(sample), 0);
    bench.core.sample(sample).expect("it trains").score
}

#[test]
fn all_votes_start_at_once_as_far_as_the_judge_has_slots() {
    let mut bench = court(|c| c.reward_judging.judge_concurrency = 3);
    let sample = bench.turn(0);
    assert_eq!(bench.votes_on(sample), 3);
    bench.vote(sample, GOOD);
    assert_eq!(bench.votes_on(sample), 3);
    let other = bench.turn(1);
    assert_eq!(bench.votes_on(other), 0);
}

#[test]
fn the_most_frequent_vote_wins() {
    assert_eq!(verdict(Aggregate::Majority, &[GOOD, BAD, GOOD, ZERO, GOOD]), GOOD);
    assert_eq!(verdict(Aggregate::Majority, &[BAD, BAD, GOOD]), BAD);
}

#[test]
fn votes_that_can_change_nothing_are_cancelled() {
    let mut bench = court(|_| {});
    let sample = bench.turn(0);
    bench.vote(sample, GOOD);
    bench.vote(sample, GOOD);
    assert_eq!(bench.votes_on(sample), 3);
    bench.vote(sample, GOOD);
    let cancelled = bench.last.iter().filter(|a| matches!(a, Action::CancelVote { .. })).count();
    assert_eq!(cancelled, 2);
    assert!(bench.training());
}

#[test]
fn a_tie_that_one_vote_can_break_is_not_decided() {
    let mut bench = court(|c| c.reward_judging.votes = 3);
    let sample = bench.turn(0);
    bench.vote(sample, GOOD);
    bench.vote(sample, BAD);
    assert_eq!(bench.votes_on(sample), 1);
    bench.vote(sample, BAD);
    assert_eq!(bench.core.sample(sample).expect("it trains").score, BAD);
}

#[test]
fn the_mean_is_in_millionths() {
    assert_eq!(verdict(Aggregate::Mean, &[GOOD, GOOD, ZERO, ZERO]), 500_000);
    assert_eq!(verdict(Aggregate::Mean, &[GOOD, BAD]), ZERO);
    assert_eq!(verdict(Aggregate::Mean, &[i32::MAX, i32::MAX, i32::MAX]), i32::MAX);
}

#[test]
fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
    assert_eq!(verdict(Aggregate::Median, &[GOOD, BAD, 500_000]), 500_000);
    assert_eq!(verdict(Aggregate::Median, &[GOOD, BAD, 500_000, 300_000]), 400_000);
    assert_eq!(verdict(Aggregate::Median, &[i32::MAX, i32::MAX]), i32::MAX);
}

#[test]
fn a_tie_scores_zero_or_discards() {
    for (on_tie, fate) in [(OnTie::Zero, None), (OnTie::Discard, Some(Discard::Tie))] {
        let mut bench = court(|c| {
            c.reward_judging.votes = 2;
            c.reward_judging.on_tie = on_tie;
        });
        let sample = bench.turn(0);
        bench.vote(sample, GOOD);
        bench.vote(sample, BAD);
        assert_eq!(bench.fate(sample), fate);
        if fate.is_none() {
            assert_eq!(bench.core.sample(sample).expect("it trains").score, ZERO);
        }
    }
}

#[test]
fn enough_valid_votes_make_a_score() {
    let mut bench = court(|c| {
        c.reward_judging.votes = 3;
        c.reward_judging.min_votes = 2;
    });
    let sample = bench.turn(0);
    bench.vote_as(sample, VoteOutcome::Failed);
    bench.vote(sample, GOOD);
    bench.vote(sample, GOOD);
    assert_eq!(bench.core.sample(sample).expect("it trains").score, GOOD);
}

/// Two of three votes fail where two are needed.
fn too_few(on_failure: OnJudgeFailure) -> (Bench, SampleId) {
    let mut bench = court(|c| {
        c.reward_judging.votes = 3;
        c.reward_judging.min_votes = 2;
        c.reward_judging.on_judge_failure = on_failure;
    });
    let sample = bench.turn(0);
    bench.vote_as(sample, VoteOutcome::Failed);
    bench.vote_as(sample, VoteOutcome::Invalid);
    if bench.votes_on(sample) > 0 {
        bench.vote(sample, GOOD);
    }
    (bench, sample)
}

#[test]
fn too_few_valid_votes_discard_the_sample() {
    let (bench, sample) = too_few(OnJudgeFailure::Discard);
    assert_eq!(bench.fate(sample), Some(Discard::JudgeFailed));
}

#[test]
fn too_few_valid_votes_score_zero() {
    let (bench, sample) = too_few(OnJudgeFailure::Zero);
    let sample = bench.core.sample(sample).expect("it trains");
    assert_eq!((sample.score, sample.masked), (ZERO, false));
}

#[test]
fn too_few_valid_votes_mask_the_sample() {
    let (bench, sample) = too_few(OnJudgeFailure::Mask);
    assert!(bench.core.sample(sample).expect("it keeps its place in the batch").masked);
    assert_eq!(bench.batch(), [sample]);
}

#[test]
fn a_failed_vote_is_tried_again_as_another_vote() {
    let mut bench = court(|c| {
        c.reward_judging.votes = 1;
        c.reward_judging.judge_retries = 2;
    });
    let sample = bench.turn(0);
    for _ in 0..2 {
        bench.vote_as(sample, VoteOutcome::Failed);
        assert_eq!(bench.votes_on(sample), 1);
    }
    bench.vote_as(sample, VoteOutcome::Failed);
    assert_eq!(bench.fate(sample), Some(Discard::JudgeFailed));
    assert_eq!(bench.core.ledger().votes, 3);
}

#[test]
fn a_vote_without_an_answer_is_cancelled_and_tried_again() {
    let mut bench = court(|c| {
        c.reward_judging.votes = 1;
        c.reward_judging.judge_retries = 1;
        c.reward_judging.judge_timeout = secs(30);
    });
    let sample = bench.turn(0);
    let hung = *bench.watch.votes.keys().next().expect("a vote");
    bench.advance(secs(31));
    assert!(!bench.watch.votes.contains_key(&hung));
    assert_eq!(bench.votes_on(sample), 1);
    let late = VoteOutcome::Score(BAD);
    bench.give(Input::VoteEnded { vote: hung, outcome: late, tokens: 1, judge_version: 1 });
    bench.vote(sample, GOOD);
    assert_eq!(bench.core.sample(sample).expect("it trains").score, GOOD);
}

#[test]
fn a_judge_that_hangs_frees_its_slot_and_the_sample_fails() {
    let mut bench = court(|c| {
        c.reward_judging.votes = 1;
        c.reward_judging.judge_concurrency = 1;
        c.reward_judging.judge_timeout = secs(30);
    });
    let (stuck, next) = (bench.turn(0), bench.turn(1));
    bench.advance(secs(31));
    assert_eq!(bench.fate(stuck), Some(Discard::JudgeFailed));
    assert_eq!(bench.votes_on(next), 1);
}

#[test]
fn a_discarded_sample_s_votes_are_cancelled() {
    let mut bench = court(|c| {
        c.policy_training.bound = headway_shared::config::Bound::Strict;
        c.policy_training.max_head_off_policyness = 1;
        c.reward_judging.votes = 2;
        c.reward_judging.aggregate = Aggregate::Mean;
    });
    let slow = bench.turn(0);
    for session in 1..3 {
        let quick = bench.turn(session);
        bench.vote(quick, GOOD);
        bench.vote(quick, GOOD);
        bench.end_step(true);
        bench.publish();
    }
    assert_eq!(bench.fate(slow), Some(Discard::Late));
    assert_eq!(bench.votes_on(slow), 0);
}

#[test]
fn a_score_of_zero_trains_is_masked_or_is_discarded() {
    for zero_score in [ZeroScore::Train, ZeroScore::Mask, ZeroScore::Discard] {
        let mut bench = court(|c| {
            c.reward_judging.votes = 1;
            c.reward_judging.zero_score = zero_score;
        });
        let sample = bench.scored(0, ZERO);
        match zero_score {
            ZeroScore::Train => assert!(!bench.core.sample(sample).expect("trains").masked),
            ZeroScore::Mask => assert!(bench.core.sample(sample).expect("is masked").masked),
            ZeroScore::Discard => assert_eq!(bench.fate(sample), Some(Discard::ZeroScore)),
        }
        for (session, score) in [(1, GOOD), (2, BAD)] {
            let sample = bench.scored(session, score);
            let sample = bench.core.sample(sample).expect("no other score is discarded");
            assert!(!sample.masked, "{zero_score:?} masks {score}");
        }
    }
}

#[test]
fn where_nothing_would_count_the_first_judged_turn_does() {
    let mut bench = court(|c| {
        c.reward_judging.votes = 1;
        c.reward_judging.zero_score = ZeroScore::Discard;
        c.reward_judging.at_least_one = true;
        c.policy_training.batch_size = 8;
    });
    let first = bench.scored(0, ZERO);
    let second = bench.scored(0, ZERO);
    let elsewhere = bench.scored(1, GOOD);
    let after_good = bench.scored(1, ZERO);
    assert_eq!(bench.fate(first), None);
    assert_eq!(bench.fate(second), Some(Discard::ZeroScore));
    assert_eq!(bench.fate(elsewhere), None);
    assert_eq!(bench.fate(after_good), Some(Discard::ZeroScore));
}

#[test]
fn a_turn_whose_votes_all_failed_is_not_the_first_judged_one() {
    let mut bench = court(|c| {
        c.reward_judging.votes = 1;
        c.reward_judging.judge_retries = 0;
        c.reward_judging.on_judge_failure = OnJudgeFailure::Mask;
        c.reward_judging.zero_score = ZeroScore::Mask;
        c.reward_judging.at_least_one = true;
        c.policy_training.batch_size = 8;
    });
    let failed = bench.turn(0);
    bench.vote_as(failed, VoteOutcome::Failed);
    let judged = bench.scored(0, ZERO);
    assert!(bench.core.sample(failed).unwrap().masked);
    assert!(!bench.core.sample(judged).unwrap().masked);
}

#[test]
fn mode_sync_keeps_the_serving_slot_until_judged() {
    for (mode, free) in [(JudgeMode::Sync, false), (JudgeMode::Async, true)] {
        let mut bench = court(|c| {
            c.reward_judging.mode = mode;
            c.reward_judging.votes = 1;
            c.policy_serving.max_concurrent_rollouts = 1;
        });
        let sample = bench.turn(0);
        let request = bench.request(1);
        if free {
            bench.sample_of(request);
        } else {
            bench.refused(request, Refusal::Concurrency);
            bench.vote(sample, GOOD);
            bench.admit(2);
        }
    }
}

#[test]
fn a_turn_is_judged_by_what_followed_it() {
    let mut bench = court(|c| c.reward_judging.judge_needs = JudgeNeeds::NextState);
    let sample = bench.turn(0);
    assert_eq!(bench.core.ledger().count(SampleState::AwaitingState), 1);
    bench.next_state(0);
    assert_eq!(bench.votes_on(sample), 5);
}

#[test]
fn without_fire_on_turn_end_a_session_is_judged_when_it_ends() {
    let mut bench = court(|c| {
        c.reward_judging.fire_on_turn_end = false;
        c.reward_judging.votes = 1;
        c.policy_training.max_head_off_policyness = 0;
    });
    let first = bench.turn(0);
    assert_eq!(bench.votes_on(first), 0);
    // The gate is closed for others, not for the session that has to end.
    bench.refuses(1, Refusal::Stale);
    let second = bench.turn(0);
    bench.end_session(0);
    assert_eq!(bench.votes_on(first) + bench.votes_on(second), 2);
}

/// Turns that wait for their session's end hold their places until then.
fn waits_for_the_end(edit: impl FnOnce(&mut Config)) -> Bench {
    court(|c| {
        c.reward_judging.fire_on_turn_end = false;
        c.reward_judging.votes = 1;
        c.policy_training.max_head_off_policyness = 0;
        c.policy_serving.over_limit = OverLimit::Hold;
        edit(c);
    })
}

#[test]
fn a_session_that_must_reach_its_end_begins_its_next_group_without_a_free_place() {
    let mut bench = waits_for_the_end(|c| c.policy_training.group_size = 2);
    // One place, which the first turns of both sessions have.
    let first = [bench.turn_in(0, 1), bench.turn_in(1, 1)];
    let second = [bench.turn_in(0, 2), bench.turn_in(1, 2)];
    for session in [0, 1] {
        bench.end_session(session);
    }
    for (sample, score) in first.into_iter().chain(second).zip([GOOD, BAD, GOOD, BAD]) {
        bench.vote(sample, score);
    }
    bench.steps(1);
    assert!(first.into_iter().all(|sample| bench.was_trained(sample)));
}

#[test]
fn a_held_turn_starts_when_its_session_has_a_place_whoever_waits_before_it() {
    let mut bench = waits_for_the_end(|c| c.policy_training.batch_size = 1);
    let other = bench.admit(9);
    let held: Vec<_> = [0, 1, 0].into_iter().map(|session| bench.request(session)).collect();
    bench.finish_as(other, Finish::Failed, 0);
    assert!(matches!(bench.decision(held[0]), Decision::Started { .. }));
    assert_eq!(bench.decision(held[1]), Decision::Held);
    assert!(matches!(bench.decision(held[2]), Decision::Started { .. }));
}

#[test]
fn members_that_wait_for_their_group_s_place_start_when_another_had_no_need_of_it() {
    let mut bench = waits_for_the_end(|c| c.policy_training.group_size = 2);
    bench.turn_in(0, 1);
    // A session without a place waits for one for the group that session 0 begins next.
    let waiting = bench.request_in(2, 2);
    assert_eq!(bench.decision(waiting), Decision::Held);
    bench.admit_in(0, 2);
    assert!(matches!(bench.decision(waiting), Decision::Started { sample: Some(_), .. }));
}

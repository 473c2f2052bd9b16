//! What went wrong in other systems, where no other test shows it.

use headway_shared::action::{Action, Discard};
use headway_shared::config::{Aborted, Bound, JudgeMode, JudgeNeeds, SyncMode};
use headway_shared::id::SessionId;
use headway_shared::input::{EnvironmentOutcome, Finish, Input};

use super::harness::{Bench, GOOD, R0, secs};
use super::sync_modes::{aborts, publishing};

#[test]
fn one_stale_member_does_not_cancel_its_group() {
    let mut bench = Bench::new(|c| {
        c.policy_training.bound = Bound::Strict;
        c.policy_training.max_head_off_policyness = 1;
        c.policy_training.group_size = 2;
        c.policy_training.batch_size = 1;
    });
    let stale = bench.admit_in(0, 1);
    for step in 1..3 {
        bench.scored_in(10 * step, 10 * step, GOOD);
        bench.scored_in(10 * step + 1, 10 * step, GOOD);
        if step == 1 {
            bench.end_step(true);
            bench.publish();
            let fresh = bench.admit_in(1, 1);
            assert_eq!(bench.watch.attempt(fresh), Some(1));
        }
    }
    bench.end_step(true);
    let fresh = *bench.watch.generations.keys().next_back().expect("it runs");
    assert_eq!(bench.fate(bench.sample_of(stale)), Some(Discard::Late));
    bench.finish(fresh.0);
    let fresh = bench.sample_of(fresh.0);
    bench.vote(fresh, GOOD);
    assert_eq!(bench.batch(), [fresh]);
}

#[test]
fn publishing_aborts_nothing_where_nothing_has_to_stop() {
    for mode in [SyncMode::InFlight, SyncMode::PauseKeep] {
        let (mut bench, _) = publishing(mode, |_| {});
        bench.save();
        bench.load(R0);
        assert_eq!(aborts(&bench), 0);
        assert!(!bench.log.iter().any(|a| matches!(a, Action::AbortGeneration { .. })));
        assert_eq!(bench.watch.generations.len(), 2);
    }
}

#[test]
fn a_drain_does_not_wait_for_a_slow_judge() {
    let mut bench = Bench::new(|c| {
        c.policy_serving.sync_mode = SyncMode::PauseDrain;
        c.reward_judging.mode = JudgeMode::Sync;
        c.policy_training.max_head_off_policyness = 9;
    });
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    let judged_slowly = bench.turn(2);
    bench.end_step(true);
    bench.save();
    assert_eq!(bench.votes_on(judged_slowly), 1);
    assert_eq!(bench.watch.loading(), Some(R0));
}

#[test]
fn a_turn_that_starts_again_keeps_none_of_its_old_tokens() {
    let (mut bench, [turn, other]) = publishing(SyncMode::PauseAbort, |c| {
        c.policy_serving.aborted = Aborted::Restart;
    });
    bench.save();
    bench.finish_as(turn, Finish::Aborted, 7);
    bench.finish_as(other, Finish::Aborted, 7);
    bench.load(R0);
    bench.finish_as(turn, Finish::Stop, 3);
    let sample = bench.core.sample(bench.sample_of(turn)).expect("outstanding");
    assert_eq!((sample.head.number(), sample.segments, sample.tokens), (1, 1, 3));
}

#[test]
fn an_empty_answer_cleans_its_session_up() {
    let mut bench = Bench::new(|c| {
        c.environment_hosting.max_envs = 1;
        c.policy_training.max_head_off_policyness = 9;
    });
    for session in [0, 1] {
        bench.give(Input::SessionStarted { session: SessionId(session) });
    }
    bench.environment(0, EnvironmentOutcome::Ready);
    let request = bench.admit(0);
    bench.finish_as(request, Finish::Stop, 0);
    if bench.watch.environments.contains_key(&SessionId(0)) {
        bench.environment(0, EnvironmentOutcome::Done);
    } else {
        bench.end_session(0);
    }
    assert!(bench.watch.environments.contains_key(&SessionId(1)), "its slot is free");
}

#[test]
fn an_aborted_answer_is_not_trained_as_if_it_were_complete() {
    let mut bench = Bench::new(|c| {
        c.policy_serving.aborted = Aborted::Discard;
    });
    let request = bench.admit(0);
    bench.finish_as(request, Finish::Aborted, 5);
    assert_eq!(bench.fate(bench.sample_of(request)), Some(Discard::Aborted));
}

#[test]
fn a_turn_that_reached_its_token_limit_trains() {
    let mut bench = Bench::new(|c| c.policy_training.batch_size = 1);
    let request = bench.admit(0);
    bench.finish_as(request, Finish::Length, 5);
    bench.vote(bench.sample_of(request), GOOD);
    assert!(bench.training());
}

#[test]
fn an_answer_that_comes_twice_is_counted_once() {
    let mut bench = Bench::new(|_| {});
    let request = bench.admit(0);
    bench.finish(request);
    let ended = bench.record.last().expect("recorded").1.clone();
    let ignored = bench.core.ledger().ignored;
    bench.give(ended);
    assert!(bench.last.is_empty());
    assert_eq!(bench.core.ledger().ignored, ignored + 1);
    let sample = bench.sample_of(request);
    bench.vote(sample, GOOD);
    let voted = bench.record.last().expect("recorded").1.clone();
    bench.give(voted);
    assert_eq!(bench.core.gauges().output_queue, 1);
    bench.scored(1, GOOD);
    bench.end_step(true);
    let stepped = bench.record.last().expect("recorded").1.clone();
    bench.give(stepped);
    assert_eq!(bench.learner(), 1);
}

#[test]
fn a_turn_whose_user_thinks_for_hours_has_a_known_age() {
    let mut bench = Bench::new(|c| {
        c.reward_judging.judge_needs = JudgeNeeds::NextState;
        c.environment_hosting.session_idle = secs(0);
        c.policy_training.batch_size = 1;
    });
    let slow = bench.turn(0);
    for session in 1..5 {
        let sample = bench.turn(session);
        bench.next_state(session);
        bench.vote(sample, GOOD);
        bench.end_step(true);
        bench.publish();
    }
    bench.advance(secs(7200));
    bench.next_state(0);
    bench.vote(slow, GOOD);
    bench.end_step(true);
    let sample = bench.trained_sample(slow);
    assert_eq!(sample.staleness_parts()[2], 4, "of waiting for its next state");
    assert_eq!(sample.age(), secs(7200));
}

#[test]
fn lag_is_never_counted_twice() {
    let mut bench = Bench::new(|c| {
        c.policy_training.batch_size = 1;
        c.policy_training.max_head_off_policyness = 5;
    });
    bench.scored(0, GOOD);
    bench.end_step(true);
    let late = bench.scored(1, GOOD);
    bench.end_step(true);
    // Generated by version 0, trained from version 1: one, however it is counted.
    assert_eq!(bench.trained_sample(late).staleness_head(), 1);
}

//! Environment slots, time-outs, retries and ends.

use headway_shared::action::{Action, Discard};
use headway_shared::config::{Config, JudgeNeeds};
use headway_shared::id::SessionId;
use headway_shared::input::{EnvironmentOutcome, Input};

use super::harness::{Bench, GOOD, secs};

fn hosted(edit: impl FnOnce(&mut Config)) -> Bench {
    Bench::new(|c| {
        c.reward_judging.judge_needs = JudgeNeeds::NextState;
        c.policy_training.max_head_off_policyness = 9;
        c.environment_hosting.max_envs = 2;
        c.environment_hosting.retries = 1;
        c.environment_hosting.reset_timeout = secs(30);
        c.environment_hosting.step_timeout = secs(30);
        edit(c);
    })
}

fn start(bench: &mut Bench, session: u64) {
    bench.give(Input::SessionStarted { session: SessionId(session) });
}

/// A session whose environment is ready.
fn ready(bench: &mut Bench, session: u64) {
    start(bench, session);
    bench.environment(session, EnvironmentOutcome::Ready);
}

fn at_work(bench: &Bench, session: u64) -> bool {
    bench.watch.environments.contains_key(&SessionId(session))
}

fn ends(bench: &Bench, session: u64) -> bool {
    bench.did(|action| *action == Action::EndSession { session: SessionId(session) })
}

#[test]
fn sessions_wait_for_a_slot_in_the_order_of_their_arrival() {
    let mut bench = hosted(|_| {});
    for session in 0..4 {
        start(&mut bench, session);
    }
    assert_eq!([0, 1, 2, 3].map(|s| at_work(&bench, s)), [true, true, false, false]);
    bench.environment(0, EnvironmentOutcome::Ready);
    assert!(!at_work(&bench, 2), "a session holds its slot from reset to end");
    bench.end_session(0);
    assert!(at_work(&bench, 2));
    assert!(!at_work(&bench, 3));
    assert_eq!(bench.core.gauges().environments, 2);
}

#[test]
fn a_session_that_ends_while_it_waits_for_a_slot_is_passed_over() {
    let mut bench = hosted(|c| c.environment_hosting.max_envs = 1);
    for session in 0..3 {
        start(&mut bench, session);
    }
    bench.end_session(1);
    bench.environment(0, EnvironmentOutcome::Ready);
    bench.end_session(0);
    assert!(at_work(&bench, 2));
}

#[test]
fn each_turn_steps_the_environment_and_its_answer_is_the_next_state() {
    let mut bench = hosted(|_| {});
    ready(&mut bench, 0);
    let sample = bench.turn(0);
    assert!(bench.did(|action| matches!(action, Action::StepEnvironment { .. })));
    assert_eq!(bench.votes_on(sample), 0);
    bench.environment(0, EnvironmentOutcome::Ready);
    assert_eq!(bench.votes_on(sample), 1);
}

#[test]
fn done_delivers_the_last_next_state_and_ends_the_session() {
    let mut bench = hosted(|c| c.environment_hosting.max_envs = 1);
    ready(&mut bench, 0);
    start(&mut bench, 1);
    let sample = bench.turn(0);
    bench.environment(0, EnvironmentOutcome::Done);
    assert_eq!(bench.votes_on(sample), 1);
    assert!(ends(&bench, 0));
    assert!(at_work(&bench, 1), "its slot is free");
    bench.vote(sample, GOOD);
    assert!(bench.discarded.is_empty());
}

#[test]
fn a_failed_step_is_tried_again_and_then_fails_the_turn_and_the_session() {
    let mut bench = hosted(|_| {});
    ready(&mut bench, 0);
    let sample = bench.turn(0);
    bench.environment(0, EnvironmentOutcome::Failed);
    assert!(at_work(&bench, 0), "it is tried again");
    assert_eq!(bench.fate(sample), None);
    bench.environment(0, EnvironmentOutcome::Failed);
    assert_eq!(bench.fate(sample), Some(Discard::EnvironmentFailed));
    assert!(ends(&bench, 0));
    assert_eq!(bench.core.gauges().environments, 0);
}

#[test]
fn a_failed_reset_is_tried_again_and_then_ends_the_session() {
    let mut bench = hosted(|_| {});
    start(&mut bench, 0);
    bench.environment(0, EnvironmentOutcome::Failed);
    assert!(at_work(&bench, 0));
    bench.environment(0, EnvironmentOutcome::Failed);
    assert!(ends(&bench, 0));
    assert_eq!(bench.core.gauges().environments, 0);
}

#[test]
fn a_step_without_an_answer_is_cancelled_and_tried_again() {
    let mut bench = hosted(|_| {});
    ready(&mut bench, 0);
    let sample = bench.turn(0);
    let hung = bench.watch.environments[&SessionId(0)];
    bench.advance(secs(31));
    let again = bench.watch.environments[&SessionId(0)];
    assert!(again > hung);
    let ignored = bench.core.ledger().ignored;
    let session = SessionId(0);
    let outcome = EnvironmentOutcome::Done;
    bench.give(Input::EnvironmentEnded { session, attempt: hung, outcome });
    assert_eq!(bench.core.ledger().ignored, ignored + 1);
    assert_eq!(bench.votes_on(sample), 0);
    bench.advance(secs(31));
    assert_eq!(bench.fate(sample), Some(Discard::EnvironmentFailed));
    assert_eq!(bench.core.gauges().environments, 0);
}

#[test]
fn a_hung_reset_frees_its_slot() {
    let mut bench = hosted(|c| {
        c.environment_hosting.max_envs = 1;
        c.environment_hosting.retries = 0;
    });
    start(&mut bench, 0);
    start(&mut bench, 1);
    bench.advance(secs(31));
    assert!(at_work(&bench, 1));
}

#[test]
fn a_silent_session_is_ended_and_its_waiting_turn_with_it() {
    let mut bench = hosted(|c| c.environment_hosting.session_idle = secs(600));
    let sample = bench.turn(0);
    bench.advance(secs(599));
    assert_eq!(bench.fate(sample), None);
    bench.advance(secs(2));
    assert_eq!(bench.fate(sample), Some(Discard::NoNextState));
    assert!(bench.log.contains(&Action::EndSession { session: SessionId(0) }));
}

#[test]
fn activity_puts_the_idle_limit_off() {
    let mut bench = hosted(|c| {
        c.environment_hosting.session_idle = secs(600);
        c.reward_judging.judge_timeout = secs(0);
    });
    bench.turn(0);
    bench.advance(secs(500));
    bench.turn(0);
    bench.advance(secs(500));
    assert!(bench.discarded.is_empty());
}

#[test]
fn a_session_that_ends_leaves_its_waiting_turn_without_a_next_state() {
    let mut bench = hosted(|_| {});
    let sample = bench.turn(0);
    bench.end_session(0);
    assert_eq!(bench.fate(sample), Some(Discard::NoNextState));
}

#[test]
fn a_last_turn_can_still_get_its_next_state_before_the_session_ends() {
    let mut bench = hosted(|_| {});
    let sample = bench.turn(0);
    bench.next_state(0);
    bench.end_session(0);
    bench.vote(sample, GOOD);
    assert!(bench.discarded.is_empty());
}

#[test]
fn a_last_turn_that_needs_nothing_more_ends_its_session() {
    let mut bench = hosted(|c| {
        c.reward_judging.judge_needs = JudgeNeeds::Turn;
        c.reward_judging.fire_on_turn_end = false;
    });
    let first = bench.turn(0);
    let last = bench.request_with(0, |request| request.last = true);
    assert_eq!(bench.votes_on(first), 0);
    bench.finish(last);
    assert_eq!((bench.votes_on(first), bench.votes_on(bench.sample_of(last))), (1, 1));
}

#[test]
fn a_last_turn_that_needs_a_next_state_gets_none() {
    let mut bench = hosted(|_| {});
    let last = bench.request_with(0, |request| request.last = true);
    bench.finish(last);
    bench.end_session(0);
    assert_eq!(bench.fate(bench.sample_of(last)), Some(Discard::NoNextState));
}

#[test]
fn a_session_that_ends_cancels_the_step_at_work() {
    let mut bench = hosted(|c| c.environment_hosting.max_envs = 1);
    ready(&mut bench, 0);
    let sample = bench.turn(0);
    start(&mut bench, 1);
    bench.end_session(0);
    assert_eq!(bench.fate(sample), Some(Discard::NoNextState));
    assert!(at_work(&bench, 1), "the slot does not wait for an answer that nobody wants");
}

#[test]
fn next_states_and_ends_of_unknown_sessions_are_ignored_and_counted() {
    let mut bench = hosted(|_| {});
    bench.next_state(5);
    bench.end_session(6);
    assert!(bench.last.is_empty());
    assert_eq!(bench.core.ledger().ignored, 2);
}

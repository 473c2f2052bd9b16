//! Trajectories whose turns are aborted, refused or lost, and what becomes of their sessions.

use headway_shared::action::{Action, Discard, Refusal, Reply};
use headway_shared::config::{Aborted, Bound, OverLimit, SyncMode};
use headway_shared::id::{RequestId, SampleId, SessionId};
use headway_shared::input::{EnvironmentOutcome, Finish, Input};

use super::harness::{Bench, Decision, GOOD};
use super::trajectories::sessions;

#[test]
fn an_aborted_turn_that_resumes_is_partial_rollout_across_a_weight_sync() {
    let mut bench = sessions(|c| {
        c.policy_serving.sync_mode = SyncMode::PauseAbort;
        c.policy_serving.aborted = Aborted::Resume;
    });
    let sample = bench.say(1, 10, 10);
    let cut = bench.request(1);
    bench.whole(2);
    bench.whole(3);
    bench.end_step(true);
    bench.save();
    bench.finish_as(cut, Finish::Aborted, 4);
    bench.publish();
    assert_eq!(bench.watch.attempt(cut), Some(2), "it goes on");
    bench.finish_as(cut, Finish::Stop, 10);
    bench.end_session(1);
    bench.vote(sample, GOOD);
    bench.step();
    let sample = bench.trained_sample(sample);
    assert_eq!((sample.tokens, sample.turns, sample.segments), (20, 2, 2));
    assert_eq!((sample.head.number(), sample.tail.number()), (0, 1));
}

/// A trajectory with one turn done whose second was aborted after so many tokens.
fn aborted(policy: Aborted, tokens: u32) -> (Bench, SampleId, RequestId) {
    let mut bench = sessions(|c| {
        c.policy_serving.sync_mode = SyncMode::PauseAbort;
        c.policy_serving.aborted = policy;
    });
    let sample = bench.say(1, 10, 10);
    let cut = bench.request(1);
    bench.whole(2);
    bench.whole(3);
    bench.end_step(true);
    bench.save();
    bench.finish_as(cut, Finish::Aborted, tokens);
    bench.publish();
    (bench, sample, cut)
}

#[test]
fn an_aborted_turn_that_restarts_keeps_the_turns_before_it() {
    let (mut bench, sample, cut) = aborted(Aborted::Restart, 4);
    bench.finish_as(cut, Finish::Stop, 6);
    let alive = bench.core.sample(sample).expect("alive");
    assert_eq!((alive.tokens, alive.turns, alive.head.number()), (16, 2, 0));
}

#[test]
fn an_aborted_turn_that_is_kept_as_final_does_not_end_the_trajectory() {
    let (mut bench, sample, cut) = aborted(Aborted::KeepAsFinal, 4);
    assert_eq!(bench.reply(cut), Some(Reply::Partial));
    assert_eq!(bench.say(1, 30, 10), sample);
    assert_eq!(bench.core.sample(sample).expect("alive").tokens, 24);
}

#[test]
fn an_aborted_turn_of_which_there_is_nothing_to_keep_starts_again() {
    let (mut bench, sample, cut) = aborted(Aborted::KeepAsFinal, 0);
    bench.finish(cut);
    assert_eq!(bench.core.sample(sample).expect("alive").tokens, 20);
}

#[test]
fn an_aborted_turn_that_is_discarded_takes_the_trajectory_with_it() {
    let (bench, sample, cut) = aborted(Aborted::Discard, 4);
    assert_eq!(bench.fate(sample), Some(Discard::Aborted));
    assert_eq!(bench.reply(cut), Some(Reply::Failed));
}

#[test]
fn people_whose_trajectory_is_discarded_are_served_on_unrecorded() {
    let mut bench = sessions(|_| {});
    let sample = bench.say(1, 10, 10);
    let failed = bench.request(1);
    bench.finish_as(failed, Finish::Failed, 0);
    assert_eq!(bench.fate(sample), Some(Discard::GenerationFailed));
    assert!(!bench.did(|action| matches!(action, Action::EndSession { .. })));
    let again = bench.request(1);
    assert!(matches!(bench.decision(again), Decision::Started { sample: None, .. }));
    bench.finish(again);
    assert_eq!(bench.core.ledger().served_only, 1);
    bench.end_session(1);
    assert_eq!(bench.core.ledger().admitted, 1);
}

#[test]
fn the_environment_of_a_trajectory_that_is_discarded_is_freed_at_once() {
    let mut bench = sessions(|c| c.environment_hosting.max_envs = 1);
    for session in [1, 2] {
        bench.give(Input::SessionStarted { session: SessionId(session) });
    }
    bench.environment(1, EnvironmentOutcome::Ready);
    let request = bench.request(1);
    bench.finish_as(request, Finish::Failed, 0);
    let ended = |action: &Action| *action == Action::EndSession { session: SessionId(1) };
    assert!(bench.did(ended));
    let next = Action::ResetEnvironment { session: SessionId(2), attempt: 1 };
    assert!(bench.did(|action| *action == next));
}

#[test]
fn an_environment_that_fails_discards_the_trajectory() {
    let mut bench = sessions(|c| c.environment_hosting.retries = 0);
    bench.give(Input::SessionStarted { session: SessionId(1) });
    bench.environment(1, EnvironmentOutcome::Ready);
    let sample = bench.say(1, 10, 10);
    bench.environment(1, EnvironmentOutcome::Failed);
    assert_eq!(bench.fate(sample), Some(Discard::EnvironmentFailed));
}

#[test]
fn a_strict_bound_discards_a_trajectory_between_its_turns_and_under_one() {
    for running in [false, true] {
        let mut bench = sessions(|c| {
            c.policy_training.bound = Bound::Strict;
            c.policy_training.max_head_off_policyness = 1;
        });
        let sample = bench.say(1, 10, 10);
        let request = running.then(|| bench.request(1));
        bench.step();
        bench.step();
        assert_eq!(bench.fate(sample), Some(Discard::Late));
        if let Some(request) = request {
            assert_eq!(bench.reply(request), Some(Reply::Failed));
            bench.finish_as(request, Finish::Aborted, 3);
        }
        let later = bench.request(1);
        assert!(matches!(bench.decision(later), Decision::Started { sample: None, .. }));
    }
}

#[test]
fn a_later_turn_that_is_refused_in_a_weight_sync_may_be_asked_again() {
    let mut bench = sessions(|c| c.policy_serving.sync_mode = SyncMode::PauseDrain);
    let sample = bench.say(1, 10, 10);
    bench.whole(2);
    bench.whole(3);
    bench.end_step(true);
    bench.save();
    // Even the last one: its refusal does not end the session.
    let refused = bench.request_with(1, |request| request.last = true);
    bench.refused(refused, Refusal::WeightSync);
    assert_eq!(bench.votes_on(sample), 0);
    bench.publish();
    let again = bench.request_with(1, |request| request.last = true);
    bench.finish(again);
    assert_eq!(bench.sample_of(again), sample);
    assert_eq!(bench.votes_on(sample), 1);
}

#[test]
fn a_client_that_leaves_while_its_turn_waits_loses_nothing() {
    let mut bench = sessions(|c| {
        c.policy_serving.sync_mode = SyncMode::PauseDrain;
        c.policy_serving.over_limit = OverLimit::Hold;
    });
    let sample = bench.say(1, 10, 10);
    bench.whole(2);
    bench.whole(3);
    bench.end_step(true);
    bench.save();
    let held = bench.request(1);
    assert_eq!(bench.decision(held), Decision::Held);
    bench.give(Input::ClientLeft { request: held });
    bench.publish();
    assert_eq!(bench.say(1, 20, 10), sample);
}

#[test]
fn a_client_that_leaves_under_its_turn_loses_its_trajectory() {
    let mut bench = sessions(|_| {});
    let sample = bench.say(1, 10, 10);
    let request = bench.request(1);
    bench.give(Input::ClientLeft { request });
    assert_eq!(bench.fate(sample), Some(Discard::ClientLeft));
}

#[test]
fn of_two_turns_at_once_the_failure_of_one_ends_both() {
    let mut bench = sessions(|_| {});
    let one = bench.admit(1);
    let two = bench.request(1);
    bench.finish_as(one, Finish::Failed, 0);
    assert_eq!(bench.reply(two), Some(Reply::Failed));
    assert_eq!(bench.fate(bench.sample_of(one)), Some(Discard::GenerationFailed));
    bench.finish_as(two, Finish::Aborted, 0);
}

#[test]
fn a_session_that_was_served_unrecorded_at_first_stays_so() {
    let mut bench = sessions(|c| {
        c.policy_training.max_head_off_policyness = 0;
        c.policy_serving.over_limit = OverLimit::ServeOnly;
    });
    let open = bench.admit(1);
    bench.admit(2);
    let unrecorded = bench.request(3);
    assert!(matches!(bench.decision(unrecorded), Decision::Started { sample: None, .. }));
    bench.finish(unrecorded);
    bench.finish_as(open, Finish::Failed, 0);
    let later = bench.request(3);
    assert!(matches!(bench.decision(later), Decision::Started { sample: None, .. }));
    bench.admit(4);
}

#[test]
fn a_rollback_discards_what_goes_on_with_weights_that_are_gone() {
    let mut bench = sessions(|c| c.policy_training.max_head_off_policyness = 8);
    let between = bench.say(1, 10, 10);
    let under = bench.say(2, 10, 10);
    bench.step();
    bench.step();
    let running = bench.request(2);
    bench.restored(1);
    assert_eq!(bench.fate(under), Some(Discard::LostWeights));
    assert_eq!(bench.fate(between), None, "its tokens are of a policy that exists");
    bench.finish_as(running, Finish::Aborted, 0);
    bench.publish();
    assert_eq!(bench.say(1, 20, 10), between);
}

#[test]
fn people_whose_whole_group_is_discarded_are_served_on_unrecorded() {
    let mut bench = sessions(|c| {
        c.policy_training.group_size = 3;
        c.policy_training.min_group_size = 3;
    });
    let sample = bench.turn_in(1, 7);
    let failed = bench.admit_in(2, 7);
    bench.finish_as(failed, Finish::Failed, 0);
    assert_eq!(bench.fate(sample), Some(Discard::GroupTooSmall));
    let again = bench.request_in(1, 7);
    assert!(matches!(bench.decision(again), Decision::Started { sample: None, .. }));
    let third = bench.request_in(3, 7);
    bench.refused(third, Refusal::BadGroup);
}

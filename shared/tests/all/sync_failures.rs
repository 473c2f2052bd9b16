//! Each way in which new weights can fail to arrive.

use headway_shared::action::{Action, Discard, Refusal, Reply, RunError};
use headway_shared::config::{Aborted, SyncMode};
use headway_shared::input::{Finish, Input, TurnType, WeightsEvent};

use super::harness::{Bench, Decision, GOOD, R0, R1, secs};
use super::sync_modes::{aborts, loads, publishing};

fn publishes(bench: &Bench) -> usize {
    bench.log.iter().filter(|action| matches!(action, Action::Publish { .. })).count()
}

const BROKEN: WeightsEvent = WeightsEvent::LoadFailed { replica: R0, intact: false };
const INTACT: WeightsEvent = WeightsEvent::LoadFailed { replica: R0, intact: true };
const PAUSES: [SyncMode; 3] = [SyncMode::PauseDrain, SyncMode::PauseAbort, SyncMode::PauseKeep];

#[test]
fn a_failed_save_closes_nothing_and_is_tried_again() {
    for mode in PAUSES {
        let (mut bench, _) = publishing(mode, |_| {});
        bench.weights(WeightsEvent::SaveFailed);
        assert_eq!(bench.core.ledger().failed_publications, 1);
        bench.admit(4);
        assert_eq!(publishes(&bench), 1);
        bench.advance(secs(1));
        assert_eq!(publishes(&bench), 2);
    }
}

#[test]
fn a_save_that_is_reported_again_changes_nothing() {
    let (mut bench, [a, b]) =
        publishing(SyncMode::PauseDrain, |c| c.policy_serving.pause_timeout = secs(60));
    bench.save();
    let ignored = bench.core.ledger().ignored;
    bench.advance(secs(50));
    bench.weights(WeightsEvent::Saved);
    bench.weights(WeightsEvent::SaveFailed);
    assert_eq!(bench.core.ledger().ignored, ignored + 2);
    assert_eq!(bench.core.ledger().failed_publications, 0);
    bench.advance(secs(11));
    for request in [a, b] {
        assert!(bench.watch.generations[&(request, 1)].aborted, "its drain began with the first");
    }
}

#[test]
fn a_save_without_an_answer_is_given_up_and_tried_again() {
    let (mut bench, _) =
        publishing(SyncMode::PauseDrain, |c| c.policy_serving.save_timeout = secs(100));
    bench.advance(secs(102));
    assert_eq!(publishes(&bench), 2);
    bench.admit(4);
}

#[test]
fn a_failed_transfer_leaves_the_old_weights_serving() {
    for mode in PAUSES {
        let (mut bench, running) = publishing(mode, |_| {});
        bench.save();
        for request in running {
            if bench.watch.attempt(request).is_some() && mode != SyncMode::PauseKeep {
                bench.finish(request);
            }
        }
        bench.load_event(R0, WeightsEvent::TransferFailed(R0));
        assert_eq!((bench.deployed(R0), bench.is_up(R0)), (0, true));
        bench.admit(4);
        bench.advance(secs(1));
        assert_eq!(publishes(&bench), 2);
    }
}

#[test]
fn a_transfer_without_an_answer_reopens_the_gate() {
    let (mut bench, [a, b]) =
        publishing(SyncMode::PauseDrain, |c| c.policy_serving.transfer_timeout = secs(100));
    bench.save();
    bench.finish(a);
    bench.finish(b);
    bench.refuses(4, Refusal::WeightSync);
    bench.advance(secs(100));
    assert!(bench.is_up(R0));
    bench.admit(5);
}

#[test]
fn a_load_that_fails_whole_leaves_the_old_weights_serving() {
    let (mut bench, [a, _]) = publishing(SyncMode::PauseKeep, |_| {});
    bench.save();
    bench.load_event(R0, WeightsEvent::Transferred(R0));
    bench.load_event(R0, INTACT);
    assert_eq!((bench.deployed(R0), bench.is_up(R0)), (0, true));
    bench.admit(4);
    bench.finish(a);
    let sample = bench.core.sample(bench.sample_of(a)).expect("it went on");
    assert_eq!((sample.head.number(), sample.segments), (0, 1));
}

#[test]
fn a_load_that_breaks_half_way_takes_its_replica_down_until_it_is_loaded() {
    let (mut bench, [a, b]) = publishing(SyncMode::PauseDrain, |_| {});
    bench.save();
    bench.finish(a);
    bench.finish(b);
    bench.load_event(R0, WeightsEvent::Transferred(R0));
    bench.load_event(R0, BROKEN);
    assert!(!bench.is_up(R0));
    bench.refuses(4, Refusal::NoReplica);
    bench.advance(secs(2));
    bench.save();
    bench.load(R0);
    assert_eq!((bench.deployed(R0), bench.is_up(R0)), (1, true));
    bench.admit(5);
}

#[test]
fn what_runs_on_a_replica_whose_load_breaks_is_lost_or_starts_elsewhere() {
    for (policy, restarts) in [(Aborted::Restart, true), (Aborted::Discard, false)] {
        let (mut bench, [a, _]) =
            publishing(SyncMode::InFlight, |c| c.policy_serving.aborted = policy);
        bench.replica_up(R1, 1);
        bench.save();
        bench.load_event(R0, WeightsEvent::Transferred(R0));
        bench.load_event(R0, BROKEN);
        if restarts {
            assert_eq!(bench.watch.attempt(a), Some(2));
            assert_eq!(bench.watch.generations[&(a, 2)].replica, R1);
        } else {
            assert_eq!(bench.fate(bench.sample_of(a)), Some(Discard::ReplicaLost));
            assert_eq!(bench.reply(a), Some(Reply::Failed));
        }
    }
}

#[test]
fn a_load_that_hangs_takes_its_replica_down() {
    let (mut bench, _) = publishing(SyncMode::PauseKeep, |c| {
        c.policy_serving.load_timeout = secs(100);
        c.policy_serving.aborted = Aborted::Discard;
    });
    bench.save();
    bench.load_event(R0, WeightsEvent::Transferred(R0));
    bench.advance(secs(101));
    assert!(!bench.is_up(R0));
    bench.refuses(4, Refusal::NoReplica);
    assert_eq!(bench.discarded.len(), 2);
}

#[test]
fn an_abort_without_an_answer_does_not_keep_the_gate_closed() {
    let (mut bench, _) = publishing(SyncMode::PauseAbort, |c| {
        c.policy_serving.abort_timeout = secs(10);
        c.policy_serving.aborted = Aborted::Discard;
    });
    bench.save();
    assert_eq!(aborts(&bench), 2);
    bench.advance(secs(9));
    assert_eq!(bench.watch.loading(), None);
    bench.advance(secs(1));
    assert_eq!(bench.watch.loading(), Some(R0));
    bench.load(R0);
    bench.admit(4);
}

#[test]
fn an_aborted_turn_that_was_given_up_may_still_answer_late() {
    let (mut bench, [a, _]) = publishing(SyncMode::PauseAbort, |c| {
        c.policy_serving.aborted = Aborted::Restart;
    });
    bench.save();
    bench.advance(secs(10));
    bench.load(R0);
    assert_eq!(bench.watch.attempt(a), Some(2));
    let ignored = bench.core.ledger().ignored;
    bench.finish_attempt(a, 1, Finish::Aborted, 5);
    assert_eq!(bench.core.ledger().ignored, ignored + 1);
    bench.finish(a);
    let sample = bench.core.sample(bench.sample_of(a)).expect("outstanding");
    assert_eq!(sample.head.number(), 1, "of the second attempt");
}

#[test]
fn all_replicas_broken_keeps_the_gate_closed_until_one_is_whole() {
    let (mut bench, _) = publishing(SyncMode::InFlight, |_| {});
    bench.replica_up(R1, 0);
    bench.save();
    for replica in [R0, R1] {
        bench.load_event(replica, WeightsEvent::Transferred(replica));
        bench.load_event(replica, WeightsEvent::LoadFailed { replica, intact: false });
    }
    bench.refuses(4, Refusal::NoReplica);
    bench.advance(secs(1));
    bench.save();
    bench.load(R1);
    bench.admit(5);
    bench.load(R0);
    assert!(bench.is_up(R0) && bench.is_up(R1));
}

#[test]
fn a_retry_goes_to_the_replicas_that_lack_the_newest_version() {
    let (mut bench, _) = publishing(SyncMode::InFlight, |_| {});
    bench.replica_up(R1, 0);
    bench.save();
    bench.load_event(R0, WeightsEvent::TransferFailed(R0));
    bench.load(R1);
    bench.advance(secs(1));
    bench.save();
    assert_eq!(loads(&bench).len(), 1);
    assert_eq!(bench.watch.loading(), Some(R0));
}

#[test]
fn a_publication_that_fails_three_times_at_eta_two_arrives_in_the_end() {
    let (mut bench, _) =
        publishing(SyncMode::InFlight, |c| c.policy_training.max_head_off_policyness = 2);
    for wait in [1, 2, 4] {
        bench.weights(WeightsEvent::SaveFailed);
        let before = publishes(&bench);
        bench.advance(secs(wait));
        assert_eq!(publishes(&bench), before + 1, "after {wait} s");
    }
    // Meanwhile the lag closes the gate: 2 run already, and lag 1 leaves 4 places.
    bench.admit(4);
    bench.admit(5);
    bench.refuses(6, Refusal::Stale);
    bench.publish();
    bench.admit(7);
    assert_eq!(bench.core.ledger().failed_publications, 3);
    assert_eq!(bench.worst_staleness(), 0);
}

#[test]
fn retries_that_are_used_up_end_the_run_with_its_reason() {
    let (mut bench, _) = publishing(SyncMode::PauseDrain, |c| c.policy_serving.publish_retries = 2);
    for _ in 0..2 {
        bench.weights(WeightsEvent::SaveFailed);
        bench.advance(secs(60));
    }
    assert!(!bench.watch.failed);
    bench.weights(WeightsEvent::SaveFailed);
    let error = RunError::PublicationFailed { attempts: 3 };
    assert!(bench.did(|action| *action == Action::Fail { error }));
    bench.refuses(4, Refusal::Ended);
    bench.advance(secs(10_000));
    assert_eq!(publishes(&bench), 3);
}

#[test]
fn the_retries_start_anew_after_a_publication_that_arrived() {
    let (mut bench, _) = publishing(SyncMode::InFlight, |c| c.policy_serving.publish_retries = 1);
    for step in 0..4 {
        bench.weights(WeightsEvent::SaveFailed);
        bench.advance(secs(1));
        bench.publish();
        bench.scored(10 + step, GOOD);
        bench.scored(20 + step, GOOD);
        bench.end_step(true);
    }
    assert!(!bench.watch.failed);
}

#[test]
fn a_replica_that_dies_restarts_its_turns_elsewhere() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 9);
    bench.replica_up(R1, 0);
    let [a, b] = [bench.admit(0), bench.admit(1)];
    bench.replica_down(R0);
    assert_eq!(bench.watch.attempt(a), Some(2));
    assert_eq!(bench.watch.generations[&(a, 2)].replica, R1);
    assert_eq!(bench.watch.attempt(b), Some(1));
    assert!(bench.discarded.is_empty());
}

#[test]
fn a_streamed_turn_does_not_survive_its_replica_once_it_was_read() {
    // The core hears of tokens only from an attempt that ended: one that was aborted before.
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.policy_serving.aborted = Aborted::Resume;
    });
    let streamed = bench.request_with(0, |request| request.streamed = true);
    bench.finish_as(streamed, Finish::Aborted, 4);
    assert_eq!(bench.watch.attempt(streamed), Some(2));
    bench.replica_up(R1, 0);
    bench.replica_down(R0);
    assert_eq!(bench.fate(bench.sample_of(streamed)), Some(Discard::ReplicaLost));
    assert_eq!(bench.reply(streamed), Some(Reply::Failed));
}

#[test]
fn a_replica_that_dies_during_its_load_does_not_hold_the_window_open() {
    let (mut bench, [a, b]) = publishing(SyncMode::PauseDrain, |c| {
        c.policy_serving.aborted = Aborted::Discard;
    });
    bench.replica_up(R1, 0);
    bench.save();
    bench.finish(a);
    bench.finish(b);
    bench.replica_down(R0);
    bench.load(R1);
    bench.admit(4);
    assert_eq!(bench.deployed(R1), 1);
}

#[test]
fn a_replica_that_comes_up_with_old_weights_gets_new_ones() {
    let mut bench = Bench::new(|_| {});
    bench.steps(2);
    bench.replica_up(R1, 0);
    assert!(bench.did(|action| matches!(action, Action::Publish { .. })));
    bench.save();
    assert_eq!(bench.watch.loading(), Some(R1));
    bench.load(R1);
    assert_eq!(bench.deployed(R1), 2);
}

#[test]
fn a_run_whose_record_cannot_be_written_ends() {
    let mut bench = Bench::new(|_| {});
    bench.give(Input::CommitFailed);
    assert!(bench.did(|action| *action == Action::Fail { error: RunError::CommitFailed }));
    bench.refuses(0, Refusal::Ended);
}

#[test]
fn a_side_turn_that_waits_to_start_again_gets_its_reply_when_the_run_ends() {
    let mut bench = Bench::new(|_| {});
    let side = bench.request_with(0, |request| request.turn = TurnType::Side);
    let main = bench.admit(1);
    bench.replica_down(R0);
    bench.give(Input::CommitFailed);
    for request in [side, main] {
        assert_eq!(bench.reply(request), Some(Reply::Failed));
        assert!(matches!(bench.decision(request), Decision::Started { .. }));
    }
}

//! The learner goes back to an older checkpoint; versions never do.

use headway_shared::action::{Action, Discard, Refusal};
use headway_shared::config::SyncMode;
use headway_shared::id::StepId;
use headway_shared::input::{Finish, Input};

use super::harness::{Bench, GOOD, R0, R1};
use super::sync_modes::publishing;

#[test]
fn a_rollback_of_twenty_steps_goes_on_with_a_new_version() {
    let mut bench = Bench::new(|_| {});
    let survivor = bench.admit(500);
    bench.steps(25);
    let waiting = bench.scored(600, GOOD);
    let running = bench.admit(601);
    bench.restored(5);
    assert_eq!(bench.learner(), 26);
    assert_eq!(bench.fate(waiting), Some(Discard::LostWeights));
    assert_eq!(bench.fate(bench.sample_of(running)), Some(Discard::LostWeights));
    assert!(bench.did(|action| matches!(action, Action::AbortGeneration { .. })));
    bench.finish_as(running, Finish::Aborted, 2);
    bench.refuses(602, Refusal::NoReplica);
    let newest = |action: &Action| matches!(action, Action::Publish { version, .. } if version.number() == 26);
    assert!(bench.log.iter().any(newest), "a publication starts at once");
    bench.publish();
    assert_eq!(bench.deployed(R0), 26);
    bench.admit(603);
    // What an older policy generated is still known.
    bench.finish(survivor);
    bench.vote(bench.sample_of(survivor), GOOD);
    bench.steps(3);
    assert!(bench.was_trained(bench.sample_of(survivor)));
    assert_eq!(bench.learner(), 29);
}

#[test]
fn a_step_in_training_is_void_after_a_rollback() {
    let mut bench = Bench::new(|_| {});
    bench.steps(3);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    let void: StepId = bench.watch.step.expect("it trains");
    bench.restored(1);
    assert_eq!(bench.learner(), 4);
    let trained = bench.trained.len();
    bench.give(Input::StepEnded { step: void, ok: true });
    assert_eq!(bench.learner(), 4);
    assert_eq!(bench.trained.len(), trained);
    assert_eq!(bench.core.ledger().discarded[Discard::LostWeights.index()], 2);
}

#[test]
fn the_samples_of_a_void_step_go_back_if_their_policy_still_exists() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 9);
    // Four samples of version 0 make two steps; the second is void.
    let samples: Vec<_> = (0..4).map(|session| bench.scored(session, GOOD)).collect();
    bench.end_step(true);
    assert_eq!(bench.batch(), samples[2..]);
    bench.restored(0);
    assert_eq!(bench.learner(), 2);
    assert!(bench.discarded.is_empty());
    assert_eq!(bench.batch(), samples[2..], "they are trained again, from the new version");
    bench.end_step(true);
    assert_eq!(bench.trained.last().map(|sample| sample.staleness_head()), Some(2));
}

#[test]
fn restoring_what_is_there_changes_nothing() {
    let mut bench = Bench::new(|_| {});
    bench.steps(2);
    let sample = bench.scored(0, GOOD);
    bench.restored(2);
    assert_eq!(bench.learner(), 2);
    assert!(bench.last.is_empty());
    assert_eq!(bench.fate(sample), None);
    bench.admit(1);
}

#[test]
fn a_replica_that_holds_an_older_whole_version_goes_on_serving() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 9);
    bench.replicas_apart();
    // R0 holds version 1, which is lost; R1 holds 0, which is not.
    bench.restored(0);
    let request = bench.admit(2);
    let (_, generation) = bench.watch.generations.first_key_value().expect("it runs");
    assert_eq!(generation.replica, R1);
    assert!(bench.watch.attempt(request).is_some());
}

#[test]
fn a_rollback_twice_in_a_row_is_no_harm() {
    let mut bench = Bench::new(|_| {});
    bench.steps(6);
    bench.restored(3);
    bench.restored(3);
    bench.restored(1);
    bench.publish();
    let version = bench.learner();
    assert!(version > 6);
    bench.steps(2);
    assert_eq!(bench.learner(), version + 2);
    assert!(bench.worst_staleness() <= 2);
}

#[test]
fn a_checkpoint_that_is_not_older_changes_nothing_and_one_from_the_future_is_counted() {
    let mut bench = Bench::new(|_| {});
    bench.steps(2);
    let ignored = bench.core.ledger().ignored;
    bench.restored(2);
    assert_eq!((bench.learner(), bench.core.ledger().ignored), (2, ignored));
    bench.restored(5);
    assert_eq!((bench.learner(), bench.core.ledger().ignored), (2, ignored + 1));
    bench.admit(0);
}

#[test]
fn what_was_lost_stays_lost_after_another_rollback() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 9);
    bench.steps(6);
    bench.restored(4);
    bench.publish();
    bench.steps(2);
    bench.restored(8);
    bench.publish();
    bench.replica_down(R0);
    bench.replica_up(R1, 6);
    bench.refuses(700, Refusal::NoReplica);
    bench.publish();
    bench.admit(701);
}

#[test]
fn a_lost_version_that_is_restored_is_lost_no_longer() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 9);
    bench.steps(6);
    bench.restored(4);
    bench.publish();
    bench.restored(6);
    bench.publish();
    bench.replica_down(R0);
    bench.replica_up(R1, 6);
    bench.admit(700);
}

#[test]
fn a_sample_whose_last_tokens_are_of_a_lost_policy_is_lost() {
    let (mut bench, [mixed, _]) = publishing(SyncMode::InFlight, |_| {});
    bench.save();
    bench.load(R0);
    bench.finish(mixed);
    let mixed = bench.sample_of(mixed);
    let sample = bench.core.sample(mixed).expect("outstanding");
    assert_eq!((sample.head.number(), sample.tail.number()), (0, 1));
    bench.restored(0);
    assert_eq!(bench.fate(mixed), Some(Discard::LostWeights));
}

#[test]
fn a_load_under_way_goes_on_through_a_rollback() {
    let (mut bench, _) = publishing(SyncMode::InFlight, |_| {});
    bench.save();
    bench.restored(0);
    let ignored = bench.core.ledger().ignored;
    bench.load(R0);
    assert_eq!(bench.core.ledger().ignored, ignored);
    assert_eq!(bench.deployed(R0), 1);
    bench.publish();
    assert_eq!(bench.deployed(R0), 2);
}

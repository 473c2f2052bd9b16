//! AReaL's staleness manager: an aggregate bound, and a cumulative count.

use headway_shared::config::{DropPolicy, GateKind};
use headway_shared::core::Stage;
use proptest::prelude::*;

use super::super::harness::{GOOD, Plan, ZERO, calm_plan, small};
use super::super::properties::cases;
use super::{agrees_with, gated, gated_with, room, with_dynamic_batches};

#[test]
fn areal_admits_eta_plus_one_batches_and_one_more_for_each_version() {
    let mut bench = gated(GateKind::Areal);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    assert_eq!(room(&mut bench, 10), 4);
    bench.end_step(true);
    assert_eq!(room(&mut bench, 30), 0, "the engine's version counts, not the learner's");
    bench.publish();
    assert_eq!(room(&mut bench, 50), 2);
}

#[test]
fn areal_gives_the_place_of_a_rejected_rollout_back() {
    let mut bench = gated(GateKind::Areal);
    for session in 0..30 {
        bench.scored(session, ZERO);
    }
    assert_eq!(room(&mut bench, 100), 6);
}

#[test]
fn areal_has_counted_what_finds_the_output_queue_full() {
    let mut bench = gated_with(GateKind::Areal, |c| {
        c.queue.output.max_size = 2;
        c.queue.output.drop_policy = DropPolicy::DropNewest;
    });
    for session in 0..6 {
        bench.scored(session, GOOD);
    }
    assert_eq!(bench.discarded.len(), 2);
    assert_eq!(room(&mut bench, 100), 0);
}

#[test]
fn areal_after_a_restart_has_room_for_eta_plus_one_batches_and_no_burst() {
    let mut bench = gated(GateKind::Areal);
    bench.steps(12);
    bench.restored(10);
    bench.publish();
    let room = room(&mut bench, 100);
    assert!((1..=6).contains(&room), "a burst of {room}");
}

#[test]
fn areal_with_dynamic_batches_loosens_without_bound() {
    let worst = with_dynamic_batches(GateKind::Areal);
    let until = |step: usize| worst[..step].iter().copied().max().unwrap_or(0);
    let growth = [until(10), until(20), until(40)];
    assert!(growth.is_sorted_by(|a, b| a < b), "it keeps growing: {growth:?}");
    assert!(growth[0] > 2 && growth[2] >= 8, "far beyond 2: {growth:?}");
}

#[test]
fn an_areal_straggler_is_trained_above_eta_and_counted() {
    let mut bench = gated(GateKind::Areal);
    let slow = bench.admit(500);
    bench.steps(5);
    bench.finish(slow);
    let slow = bench.sample_of(slow);
    bench.vote(slow, GOOD);
    bench.steps(1);
    assert_eq!(bench.trained_sample(slow).learner(Stage::TrainStarted).number(), 5);
    assert!(bench.trained_sample(slow).staleness_head() > 2);
    assert_eq!(bench.core.ledger().trained_above_bound, 1);
}

proptest! {
    #![proptest_config(cases(12, 10))]

    /// min(max concurrent - running, (η + v + 1) * B - (accepted + running)).
    #[test]
    fn areal_admits_exactly_what_its_formula_says(
        plan in calm_plan(),
        eta in 0_u32..4,
        batch in 1_u32..5,
        limit in 4_u32..20,
    ) {
        let mut config = small();
        config.policy_training.gate = GateKind::Areal;
        config.policy_training.max_head_off_policyness = eta;
        config.policy_training.batch_size = batch;
        config.policy_serving.max_concurrent_rollouts = limit;
        agrees_with(config, Plan { replicas: 1, ..plan }, |books| {
            let allowance = i64::from(eta + books.version + 1) * i64::from(batch);
            let by_limit = i64::from(limit) - books.unresolved;
            (allowance - books.admitted_and_kept).min(by_limit)
        });
    }
}

//! SkyRL: AReaL's rule that gives the place of a filtered group back.

use headway_shared::action::Discard;
use headway_shared::config::{DropPolicy, GateKind};
use proptest::prelude::*;

use super::super::harness::{GOOD, Plan, any_plan, small};
use super::super::properties::cases;
use super::{agrees_with, gated, gated_with, room};

#[test]
fn skyrl_admits_s_and_global_step_batches() {
    let mut bench = gated(GateKind::Skyrl);
    // (2 + 1) * 2.
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    assert_eq!(room(&mut bench, 10), 4);
    bench.end_step(true);
    assert_eq!(room(&mut bench, 30), 0, "the global step advances after the sync");
    assert!(!bench.training());
    bench.publish();
    assert_eq!(room(&mut bench, 50), 2);
}

/// A group that was accepted and is dropped from training.
#[test]
fn a_filtered_group_gives_its_place_back_where_areal_keeps_it() {
    for (gate, expected) in [(GateKind::Skyrl, 2), (GateKind::Areal, 0)] {
        let mut bench = gated_with(gate, |c| {
            c.queue.output.max_size = 2;
            c.queue.output.drop_policy = DropPolicy::DropOldest;
        });
        let samples: Vec<_> = (0..6).map(|session| bench.scored(session, GOOD)).collect();
        assert_eq!(bench.fate(samples[2]), Some(Discard::OutputQueueFull));
        assert_eq!(bench.fate(samples[3]), Some(Discard::OutputQueueFull));
        assert_eq!(room(&mut bench, 100), expected, "{gate:?}");
    }
}

#[test]
fn what_is_dropped_on_arrival_gives_its_place_back() {
    let mut bench = gated_with(GateKind::Skyrl, |c| {
        c.queue.output.max_size = 2;
        c.queue.output.drop_policy = DropPolicy::DropNewest;
    });
    for session in 0..30 {
        bench.scored(session, GOOD);
    }
    assert_eq!(room(&mut bench, 100), 2);
}

#[test]
fn a_skyrl_straggler_is_trained_above_the_bound_and_counted() {
    let mut bench = gated(GateKind::Skyrl);
    let slow = bench.admit(500);
    bench.steps(5);
    bench.finish(slow);
    let slow = bench.sample_of(slow);
    bench.vote(slow, GOOD);
    bench.steps(1);
    assert_eq!(bench.trained_sample(slow).staleness_head(), 5);
    assert_eq!(bench.core.ledger().trained_above_bound, 1);
}

proptest! {
    #![proptest_config(cases(12, 14))]

    /// (S + global step) * B - (accepted + running).
    #[test]
    fn skyrl_admits_exactly_what_its_formula_says(
        plan in any_plan(),
        s in 0_u32..4,
        batch in 1_u32..5,
    ) {
        let mut config = small();
        config.policy_training.gate = GateKind::Skyrl;
        config.policy_training.max_head_off_policyness = s;
        config.policy_training.batch_size = batch;
        agrees_with(config, Plan { replicas: 1, ..plan }, |books| {
            let global_step = books.version + 1;
            i64::from((s + global_step) * batch) - books.admitted_and_kept
        });
    }
}

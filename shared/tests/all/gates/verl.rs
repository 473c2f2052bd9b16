//! verl: a budget per sync period, a fraction of which may be ahead.

use headway_shared::action::Discard;
use headway_shared::config::{Config, DropPolicy, GateKind, Problem, check};
use headway_shared::input::{Input, Operator};
use proptest::prelude::*;

use super::super::harness::{Delay, GOOD, Plan, World, ZERO, calm_plan, fifo_plan, small};
use super::super::properties::cases;
use super::{gated_with, room};

const HALF: u32 = 500_000;

#[test]
fn production_stops_at_max_required_until_the_weights_are_synced() {
    // floor(2 * (1 + 0.5) * 2) = 6.
    let mut bench = gated_with(GateKind::Verl, |c| {
        c.policy_training.publish_interval = 2;
        c.policy_training.staleness_threshold = HALF;
    });
    for session in 0..6 {
        bench.scored(session, GOOD);
    }
    assert_eq!(room(&mut bench, 100), 0);
    bench.end_step(true);
    assert_eq!(room(&mut bench, 200), 0, "a step is no sync");
    bench.end_step(true);
    assert!(!bench.training(), "the trainer waits for the sync");
    assert_eq!(room(&mut bench, 300), 0);
    bench.publish();
    assert_eq!(bench.batch().len(), 2, "what was queued is trained");
    assert_eq!(room(&mut bench, 400), 4, "and counted");
}

#[test]
fn the_budget_is_rounded_down() {
    // floor(3 * 1.5 * 1) = 4.
    let mut bench = gated_with(GateKind::Verl, |c| {
        c.policy_training.batch_size = 3;
        c.policy_training.staleness_threshold = HALF;
    });
    assert_eq!(room(&mut bench, 0), 4);
}

#[test]
fn what_is_under_way_at_a_sync_counts_for_the_next_period() {
    let mut bench =
        gated_with(GateKind::Verl, |c| c.policy_training.staleness_threshold = 2 * HALF);
    bench.admit(10);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.end_step(true);
    bench.publish();
    assert_eq!(room(&mut bench, 100), 3);
}

#[test]
fn a_period_that_begins_under_a_step_does_not_count_its_batch() {
    let mut bench = gated_with(GateKind::Headway, |_| {});
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.admit(2);
    assert!(bench.training());
    bench.reconfigure(|c| {
        c.policy_training.gate = GateKind::Verl;
        c.policy_training.staleness_threshold = 4 * HALF;
    });
    assert_eq!(room(&mut bench, 100), 5, "six in a period, of which one is under way");
}

#[test]
fn a_rejected_rollout_gives_its_place_back() {
    let mut bench = gated_with(GateKind::Verl, |_| {});
    for session in 0..20 {
        bench.scored(session, ZERO);
    }
    assert_eq!(room(&mut bench, 100), 2);
}

/// The weakness: what a full queue drops was generated for nothing, and its budget is spent.
#[test]
fn a_full_queue_drops_its_oldest_and_the_budget_is_spent() {
    let mut bench = gated_with(GateKind::Verl, |c| {
        c.policy_training.staleness_threshold = 4 * HALF;
        c.queue.output.max_size = 2;
        c.queue.output.drop_policy = DropPolicy::DropOldest;
    });
    let samples: Vec<_> = (0..6).map(|session| bench.scored(session, GOOD)).collect();
    assert_eq!(bench.batch(), samples[..2]);
    for (sample, fate) in samples.iter().zip([None, None, Some(()), Some(()), None, None]) {
        assert_eq!(bench.fate(*sample), fate.map(|()| Discard::OutputQueueFull));
    }
    assert_eq!(room(&mut bench, 100), 0, "six were produced");
    bench.give(Input::Operator(Operator::Publish));
    bench.publish();
    assert_eq!(room(&mut bench, 100), 0, "the same weights again begin no period");
    bench.end_step(true);
    bench.publish();
    assert_eq!(room(&mut bench, 200), 4);
}

#[test]
fn a_queue_that_can_lose_a_whole_period_is_refused_and_another_drop_policy_is_warned_about() {
    let mut config = small();
    config.policy_training.gate = GateKind::Verl;
    config.policy_training.publish_interval = 4;
    config.policy_training.max_head_off_policyness = 2;
    assert_eq!(check(&config), []);
    config.queue.output.max_size = 4;
    assert_eq!(check(&config), [Problem::VerlDropsOldest]);
    config.queue.output.drop_policy = DropPolicy::DropOldest;
    assert_eq!(check(&config), [Problem::VerlLosesPlaces]);
    config.queue.output.max_size = 6;
    assert_eq!(check(&config), []);
}

/// s = 0, and samples are three versions old: it is a fraction of a sync period.
#[test]
fn without_any_threshold_samples_are_as_old_as_the_period_is_long() {
    let mut config = small();
    config.policy_training.gate = GateKind::Verl;
    config.policy_training.publish_interval = 4;
    let plan = Plan { generate: Delay::fixed(20), zeros: 0, ..Plan::calm() };
    let mut world = World::new(config.clone(), plan);
    world.run();
    assert_eq!(world.bench.worst_staleness(), 3);
    assert_eq!(config.bound_versions(), 3);
}

/// The gate with s in quarters of a sync period, and a judge that holds nothing up.
fn in_quarters(batch: u32, interval: u32, quarters: u32) -> Config {
    let mut config = small();
    config.policy_training.gate = GateKind::Verl;
    config.policy_training.batch_size = batch;
    config.policy_training.publish_interval = interval;
    config.policy_training.staleness_threshold = quarters * 250_000;
    config.reward_judging.judge_concurrency = 100;
    config
}

proptest! {
    #![proptest_config(cases(30, 12))]

    #[test]
    fn no_period_produces_more_than_max_required(
        plan in calm_plan(),
        batch in 1_u32..5,
        interval in 1_u32..4,
        quarters in 0_u32..9,
    ) {
        let config = in_quarters(batch, interval, quarters);
        let required = u64::from(batch * interval * (4 + quarters) / 4);
        let mut world = World::new(config, Plan { inputs: 400, ..plan });
        let (mut syncs, mut waiting, mut admitted, mut most) = (0, 0, 0, 0);
        while world.bench.record.len() < 400 && world.turn() {
            let ledger = world.bench.core.ledger();
            if ledger.publications > syncs {
                syncs = ledger.publications;
                // The step that starts with the sync takes what waited for it.
                waiting = ledger.outstanding();
                admitted = ledger.admitted;
            }
            let produced = waiting + ledger.admitted - admitted;
            assert!(produced <= required, "{produced} of {required}");
            most = most.max(produced);
        }
        assert!(syncs == 0 || most > 0);
    }

    #[test]
    fn in_the_order_of_admission_no_sample_is_older_than_a_period_s_production(
        plan in fifo_plan(),
        batch in 1_u32..5,
        interval in 1_u32..4,
        quarters in 0_u32..9,
    ) {
        let config = in_quarters(batch, interval, quarters);
        let required = batch * interval * (4 + quarters) / 4;
        let mut world = World::new(config, plan);
        world.run();
        assert!(world.bench.worst_staleness() < required.div_ceil(batch));
        assert_eq!(world.bench.core.ledger().trained_above_bound, 0);
    }
}

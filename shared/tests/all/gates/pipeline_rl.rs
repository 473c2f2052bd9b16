//! PipelineRL: so many samples ahead of the trainer, and what is too old is only counted.

use headway_shared::config::GateKind;
use proptest::prelude::*;

use super::super::harness::{GOOD, Plan, R0, World, any_plan, small};
use super::super::properties::cases;
use super::{agrees_with, gated, gated_with, room};

#[test]
fn pipeline_rl_submits_the_groups_of_the_lag_and_of_one_update_and_more_per_version() {
    let mut bench = gated_with(GateKind::PipelineRl, |c| {
        c.policy_training.group_size = 2;
        c.policy_training.max_lag_samples = 5;
    });
    // ceil(5 / 2) groups, and 2 of the first update.
    for group in 0..5 {
        bench.admit_in(10 * group, group);
    }
    let refused = bench.request_in(90, 9);
    bench.refused(refused, headway_shared::action::Refusal::Stale);
}

#[test]
fn a_new_version_lets_one_update_more_in() {
    let mut bench = gated(GateKind::PipelineRl);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    assert_eq!(room(&mut bench, 10), 0);
    bench.end_step(true);
    assert_eq!(room(&mut bench, 20), 0, "the weights are not there yet");
    bench.publish();
    assert_eq!(room(&mut bench, 30), 2);
}

/// The weakness: nothing is too old to be trained.
#[test]
fn what_is_too_old_at_the_trainer_is_only_counted() {
    let mut bench = gated_with(GateKind::PipelineRl, |c| c.policy_training.max_lag_samples = 2);
    assert_eq!(bench.core.config().bound_versions(), 1);
    let slow = bench.admit(500);
    bench.steps(6);
    bench.finish(slow);
    let slow = bench.sample_of(slow);
    bench.vote(slow, GOOD);
    bench.steps(1);
    assert_eq!(bench.trained_sample(slow).staleness_head(), 6);
    assert_eq!(bench.core.ledger().trained_above_bound, 1);
}

#[test]
fn a_rollback_keeps_the_budget() {
    let mut bench = gated_with(GateKind::PipelineRl, |c| c.policy_training.max_lag_samples = 2);
    bench.steps(6);
    bench.restored(4);
    bench.publish();
    assert_eq!(bench.deployed(R0), 7);
    assert_eq!(room(&mut bench, 900), 4, "no more and no less than at the start");
}

proptest! {
    #![proptest_config(cases(12, 15))]

    /// ceil(max_lag / attempts) + B * (publish interval + version) - submitted.
    #[test]
    fn pipeline_rl_admits_exactly_what_its_formula_says(
        plan in any_plan(),
        lag in 0_u32..9,
        interval in 1_u32..4,
        batch in 1_u32..5,
    ) {
        let mut config = small();
        config.policy_training.gate = GateKind::PipelineRl;
        config.policy_training.max_lag_samples = lag;
        config.policy_training.publish_interval = interval;
        config.policy_training.batch_size = batch;
        agrees_with(config, Plan { replicas: 1, ..plan }, |books| {
            i64::from(lag + batch * (interval + books.version)) - books.admitted_and_kept
        });
    }

    /// max_lag samples ahead are so many batches of versions.
    #[test]
    fn in_the_order_of_admission_no_sample_is_older_than_the_lag(
        plan in super::super::harness::fifo_plan(),
        lag in 0_u32..9,
        batch in 1_u32..5,
    ) {
        let mut config = small();
        config.policy_training.gate = GateKind::PipelineRl;
        config.policy_training.max_lag_samples = lag;
        config.policy_training.batch_size = batch;
        config.reward_judging.judge_concurrency = 100;
        let mut world = World::new(config, plan);
        world.run();
        assert!(world.bench.worst_staleness() <= lag.div_ceil(batch));
        assert_eq!(world.bench.core.ledger().trained_above_bound, 0);
    }
}

//! What holds in every world: random configurations, delays, faults and seeds.

use headway_shared::config::{
    BatchCounts, Bound, Config, DropPolicy, GateKind, GroupFilter, JudgeMode, JudgeNeeds, Late,
    QueueOrder, Severity, Surplus, SyncMode, ZeroScore,
};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, RngSeed};

use super::harness::{Plan, World, any_plan, calm_plan, fifo_plan, sane_config, secs};

/// So many cases, always the same ones.
pub(crate) fn cases(count: u32, seed: u64) -> Cases {
    Cases {
        cases: count,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        max_shrink_iters: 300,
        ..Cases::default()
    }
}

fn run(config: Config, plan: Plan) -> World {
    let mut world = World::new(config, plan);
    world.run();
    world
}

/// Readiness in the order of admission: nothing is aborted, reordered or dropped.
pub(crate) fn in_order(config: &mut Config) {
    let serving = &mut config.policy_serving;
    if serving.sync_mode == SyncMode::PauseAbort {
        serving.sync_mode = SyncMode::PauseKeep;
    }
    serving.pause_timeout = secs(100);
    serving.generation_timeout = secs(0);
    let judging = &mut config.reward_judging;
    judging.mode = JudgeMode::Async;
    judging.judge_needs = JudgeNeeds::Turn;
    judging.fire_on_turn_end = true;
    judging.judge_concurrency = 500;
    judging.judge_timeout = secs(0);
    judging.votes = 1;
    judging.min_votes = 1;
    let training = &mut config.policy_training;
    training.gate = GateKind::Headway;
    training.bound = Bound::Aggregate;
    training.group_size = 1;
    training.min_group_size = 1;
    training.filter = GroupFilter::None;
    training.max_batch_wait = secs(0);
    training.stale_filter_steps = None;
    config.queue.rollout.queue_type = QueueOrder::Fifo;
    for queue in [&mut config.queue.rollout, &mut config.queue.output] {
        queue.drop_policy = DropPolicy::Reject;
        queue.max_size = 64;
    }
    config.queue.output.queue_type = QueueOrder::AdmissionOrder;
}

proptest! {
    #![proptest_config(cases(250, 1))]

    #[test]
    fn eta_zero_is_synchronous(mut config in sane_config(), plan in any_plan()) {
        config.policy_training.gate = GateKind::Headway;
        config.policy_training.max_head_off_policyness = 0;
        config.policy_training.publish_interval = 1;
        let world = run(config, plan);
        for sample in &world.bench.trained {
            assert_eq!(sample.staleness_head(), 0);
            assert_eq!(sample.staleness_token_sum(), 0);
            assert_eq!(sample.segments, 1);
        }
    }

    #[test]
    fn a_strict_bound_is_never_exceeded(mut config in sane_config(), plan in any_plan()) {
        config.policy_training.bound = Bound::Strict;
        let eta = config.bound_versions();
        let world = run(config, plan);
        assert!(world.bench.worst_staleness() <= eta);
        assert_eq!(world.bench.core.ledger().trained_above_bound, 0);
    }

    #[test]
    fn full_batches_in_admission_order_never_exceed_eta(
        mut config in sane_config(),
        plan in fifo_plan(),
    ) {
        in_order(&mut config);
        config.policy_training.batch_counts = BatchCounts::Accepted;
        config.policy_training.surplus = Surplus::Drop;
        let eta = config.policy_training.max_head_off_policyness;
        let world = run(config, plan);
        let worst = world.bench.worst_staleness();
        assert!(worst <= eta, "{worst} at η = {eta}");
    }

    #[test]
    fn batches_of_so_many_results_never_exceed_eta(
        mut config in sane_config(),
        plan in fifo_plan(),
    ) {
        in_order(&mut config);
        config.policy_training.batch_counts = BatchCounts::Results;
        config.policy_training.surplus = Surplus::Drop;
        let eta = config.policy_training.max_head_off_policyness;
        let world = run(config, plan);
        let worst = world.bench.worst_staleness();
        assert!(worst <= eta, "{worst} at η = {eta}");
    }

    /// What is recycled takes its places beyond a batch with it, and no more.
    #[test]
    fn recycled_surplus_costs_no_more_versions_than_it_fills_batches(
        mut config in sane_config(),
        plan in fifo_plan(),
    ) {
        in_order(&mut config);
        config.policy_training.batch_counts = BatchCounts::Accepted;
        config.policy_training.surplus = Surplus::Recycle;
        let training = &config.policy_training;
        let eta = training.max_head_off_policyness;
        let strict = config.is_strict();
        let beyond = (training.over_sampling - 1_000_000).div_ceil(1_000_000);
        let world = run(config, plan);
        let worst = world.bench.worst_staleness();
        let most = if strict { eta } else { eta + beyond };
        assert!(worst <= most, "{worst} at η = {eta} and {beyond} batches beyond");
    }

    /// What a step leaves behind at age η is dropped, whatever the order.
    #[test]
    fn surplus_that_is_dropped_leaves_nothing_above_eta_to_full_batches(
        mut config in sane_config(),
        plan in any_plan(),
    ) {
        let training = &mut config.policy_training;
        training.gate = GateKind::Headway;
        training.bound = Bound::Aggregate;
        training.surplus = Surplus::Drop;
        training.over_sampling = training.over_sampling.max(1_250_000);
        training.max_batch_wait = secs(0);
        let eta = training.max_head_off_policyness;
        let world = run(config, plan);
        let worst = world.bench.worst_staleness();
        assert!(worst <= eta, "{worst} at η = {eta}");
    }

    /// The checker asserts after every input: what is admitted is trained once, discarded once, or
    /// somewhere; what is started ends once; versions and queues keep their rules.
    #[test]
    fn nothing_is_lost_or_counted_twice(config in sane_config(), plan in any_plan()) {
        let world = run(config, plan);
        let ledger = world.bench.core.ledger();
        let here = ledger.outstanding() + ledger.parked();
        assert_eq!(
            ledger.admitted,
            world.bench.trained.len() as u64 + world.bench.discarded.len() as u64 + here
        );
    }
}

proptest! {
    #![proptest_config(cases(250, 2))]

    #[test]
    fn what_is_accepted_makes_progress_in_a_world_without_faults(
        mut config in sane_config(),
        mut plan in calm_plan(),
    ) {
        // Parking is for those who read longer than most: not for every turn of every client.
        if config.policy_training.park_after > secs(0) {
            config.policy_training.park_after = secs(120);
        }
        let problems = headway_shared::config::check(&config);
        prop_assume!(problems.iter().all(|problem| problem.severity() != Severity::Error));
        plan.inputs = 6000;
        plan.steps = 3;
        // A judge that finds little good keeps groups from their least size, and us from progress.
        plan.zeros = if config.policy_training.group_size > 1 { 0 } else { plan.zeros.min(30) };
        // So does a limit that no group meets; one that has scores to compare needs both.
        config.policy_training.group_timeout = secs(7200);
        if config.policy_training.filter == GroupFilter::ZeroVariance {
            plan.zeros = 50;
            config.policy_training.straggler_wait = secs(0);
            config.policy_training.min_group_size = config.policy_training.group_size;
            config.reward_judging.zero_score = ZeroScore::Train;
        }
        if config.policy_training.group_size > 1 {
            // A client that leaves in the middle leaves the groups of its later turns incomplete.
            plan.turns = 1;
        }
        let world = run(config, plan);
        assert_eq!(world.bench.learner(), 3, "it stalls: {:?}", world.bench.core.gauges());
    }

    #[test]
    fn a_run_can_be_repeated_exactly(config in sane_config(), mut plan in any_plan()) {
        plan.inputs = 200;
        let first = run(config.clone(), plan.clone());
        let second = run(config, plan);
        assert_eq!(&first.bench.log, &second.bench.log);
    }

    #[test]
    fn an_awaited_sample_is_in_time_or_discarded(
        mut config in sane_config(),
        plan in calm_plan(),
    ) {
        config.policy_training.bound = Bound::Strict;
        config.policy_training.late = Late::Wait;
        let eta = config.bound_versions();
        let world = run(config, plan);
        assert!(world.bench.worst_staleness() <= eta);
    }
}

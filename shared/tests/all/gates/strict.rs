//! Gates that bind every sample by their own rule, in worlds with faults of every kind.

use headway_shared::config::{Bound, GateKind, Late};
use proptest::prelude::*;

use super::super::harness::{World, any_plan, sane_config};
use super::super::properties::cases;

proptest! {
    #![proptest_config(cases(60, 18))]

    #[test]
    fn no_trained_sample_is_above_the_bound_of_roll_prime_rl_or_nemo_rl(
        mut config in sane_config(),
        plan in any_plan(),
        gate in prop::sample::select(
            vec![GateKind::Roll, GateKind::PrimeRl, GateKind::NemoRlWindow],
        ),
        half_batches in 0_u32..7,
        wait in any::<bool>(),
    ) {
        let training = &mut config.policy_training;
        training.gate = gate;
        training.bound = Bound::Aggregate;
        training.late = if wait { Late::Wait } else { Late::Discard };
        training.async_generation_ratio = half_batches * 500_000;
        let bound = match gate {
            GateKind::Roll => half_batches.div_ceil(2),
            _ => training.max_head_off_policyness,
        };
        let mut world = World::new(config, plan);
        world.run();
        assert!(world.bench.worst_staleness() <= bound);
        assert_eq!(world.bench.core.ledger().trained_above_bound, 0);
    }
}

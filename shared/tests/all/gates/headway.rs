//! Our own rule.

use headway_shared::config::GateKind;
use proptest::prelude::*;

use super::super::harness::{Plan, any_plan, small};
use super::super::properties::cases;
use super::{agrees_with, gated, room, with_dynamic_batches};

#[test]
fn ours_after_a_restart_has_room_for_eta_plus_one_batches_and_no_burst() {
    let mut bench = gated(GateKind::Headway);
    bench.steps(12);
    bench.restored(10);
    bench.publish();
    assert_eq!(room(&mut bench, 100), 6);
}

#[test]
fn ours_with_dynamic_batches_stays_within_eta() {
    let worst = with_dynamic_batches(GateKind::Headway);
    assert!(worst.iter().all(|staleness| *staleness <= 2), "{worst:?}");
}

proptest! {
    #![proptest_config(cases(12, 11))]

    /// (η + 1 - publish lag) * B - outstanding.
    #[test]
    fn ours_admits_exactly_what_its_formula_says(
        plan in any_plan(),
        eta in 0_u32..4,
        batch in 1_u32..5,
    ) {
        let mut config = small();
        config.policy_training.max_head_off_policyness = eta;
        config.policy_training.batch_size = batch;
        agrees_with(config, Plan { replicas: 1, ..plan }, |books| {
            let versions = i64::from(eta + 1) - i64::from(books.learner - books.version);
            versions.max(0) * i64::from(batch) - books.outstanding
        });
    }
}

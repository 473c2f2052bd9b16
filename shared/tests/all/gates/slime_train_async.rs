//! slime's `train_async.py`: weights are pushed every K steps, once the next batch is complete.

use headway_shared::action::Action;
use headway_shared::config::{Choice, GateKind, SyncMode};
use headway_shared::core::Stage;
use proptest::prelude::*;

use super::super::harness::{GOOD, Plan, World, calm_plan, small};
use super::super::properties::cases;
use super::gated_with;

#[test]
fn the_push_after_k_steps_waits_for_the_next_batch() {
    let mut bench =
        gated_with(GateKind::SlimeTrainAsync, |c| c.policy_training.publish_interval = 2);
    let publishes = |action: &Action| matches!(action, Action::Publish { .. });
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.end_step(true);
    assert!(!bench.training());
    bench.scored(2, GOOD);
    bench.scored(3, GOOD);
    assert!(bench.training(), "no push is due after one step");
    bench.end_step(true);
    bench.scored(4, GOOD);
    assert!(!bench.log.iter().any(publishes));
    bench.scored(5, GOOD);
    assert!(bench.did(publishes) || bench.log.iter().any(publishes));
    assert!(!bench.training());
    bench.publish();
    assert!(bench.training());
}

proptest! {
    #![proptest_config(cases(40, 17))]

    /// Collection k begins with step k - 1, on the newest weights pushed by then.
    #[test]
    fn the_lag_is_one_at_an_interval_of_one_and_at_most_the_interval_otherwise(
        plan in calm_plan(),
        batch in 1_u32..5,
        interval in 1_u32..5,
        mode in 0..5_usize,
    ) {
        let mut config = small();
        config.policy_training.gate = GateKind::SlimeTrainAsync;
        config.policy_training.batch_size = batch;
        config.policy_training.publish_interval = interval;
        config.policy_serving.sync_mode = SyncMode::ALL[mode].1;
        let mut world = World::new(config, Plan { steps: 10, inputs: 3000, ..plan });
        world.run();
        assert_eq!(world.bench.learner(), 10, "{}", world.bench.core.stall());
        for sample in &world.bench.trained {
            let step = sample.learner(Stage::TrainStarted).number();
            let pushed = step.saturating_sub(1) / interval * interval;
            assert_eq!(sample.staleness_head(), step - pushed, "{sample:?}");
            assert!(sample.staleness_head() <= interval);
        }
        for action in &world.bench.log {
            if let Action::Publish { version, .. } = action {
                assert_eq!(version.number() % interval, 0, "a push of {version:?}");
            }
        }
    }
}

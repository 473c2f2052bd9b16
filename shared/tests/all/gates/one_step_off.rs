//! One step off-policy: the next batch is generated while one trains.

use headway_shared::action::{Action, Discard};
use headway_shared::config::{GateKind, Problem, check};
use headway_shared::core::Stage;
use headway_shared::input::WeightsEvent;
use proptest::prelude::*;

use super::super::harness::{GOOD, Plan, R0, World, ZERO, calm_plan, secs, small};
use super::super::properties::cases;
use super::{gated, room};

fn publishes(action: &Action) -> bool {
    matches!(action, Action::Publish { .. })
}

#[test]
fn the_next_batch_is_collected_while_one_trains_and_its_weights_wait_for_it() {
    let mut bench = gated(GateKind::OneStepOff);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    assert!(bench.training());
    bench.scored(10, GOOD);
    let last = bench.turn(11);
    assert_eq!(room(&mut bench, 20), 0, "one batch beside the one in training");
    bench.end_step(true);
    assert!(!bench.did(publishes), "the batch is not complete");
    assert!(!bench.training());
    bench.vote(last, GOOD);
    assert!(bench.did(publishes), "now it is");
    assert!(!bench.training(), "the step waits for the weights");
    assert_eq!(room(&mut bench, 30), 0);
    bench.publish();
    assert!(bench.training());
    assert_eq!(room(&mut bench, 40), 2);
    bench.end_step(true);
    assert_eq!(bench.trained_sample(last).staleness_head(), 1);
}

#[test]
fn what_is_rejected_is_replaced_by_the_same_version() {
    let mut bench = gated(GateKind::OneStepOff);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.scored(10, GOOD);
    let rejected = bench.scored(11, ZERO);
    assert_eq!(bench.fate(rejected), Some(Discard::ZeroScore));
    bench.end_step(true);
    let late = bench.scored(12, GOOD);
    bench.publish();
    bench.end_step(true);
    assert_eq!(bench.trained_sample(late).staleness_head(), 1);
}

#[test]
fn the_step_waits_for_a_push_that_is_tried_again() {
    let mut bench = gated(GateKind::OneStepOff);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.end_step(true);
    bench.scored(2, GOOD);
    bench.scored(3, GOOD);
    bench.weights(WeightsEvent::SaveFailed);
    assert!(!bench.training());
    bench.advance(secs(1));
    bench.publish();
    assert!(bench.training());
    assert_eq!(bench.deployed(R0), 1);
}

#[test]
fn a_longer_publish_interval_is_refused() {
    let mut config = small();
    config.policy_training.gate = GateKind::OneStepOff;
    config.policy_training.publish_interval = 2;
    assert_eq!(check(&config), [Problem::OneStepPublishes]);
}

#[test]
fn a_filter_that_discards_every_batch_is_refused() {
    let mut config = small();
    config.policy_training.gate = GateKind::OneStepOff;
    config.policy_training.stale_filter_steps = Some(0);
    assert_eq!(check(&config), [Problem::FilterBelowBound]);
}

proptest! {
    #![proptest_config(cases(40, 16))]

    #[test]
    fn the_first_batch_is_of_this_version_and_every_other_exactly_one_behind(
        plan in calm_plan(),
        batch in 1_u32..5,
        mode in 0..5_usize,
    ) {
        use headway_shared::config::{Choice, SyncMode};
        let mut config = small();
        config.policy_training.gate = GateKind::OneStepOff;
        config.policy_training.batch_size = batch;
        config.policy_serving.sync_mode = SyncMode::ALL[mode].1;
        let mut world = World::new(config, Plan { steps: 6, ..plan });
        world.run();
        assert_eq!(world.bench.learner(), 6, "{}", world.bench.core.stall());
        for sample in &world.bench.trained {
            let first = sample.learner(Stage::TrainStarted).number() == 0;
            assert_eq!(sample.staleness_head(), u32::from(!first), "{sample:?}");
        }
    }
}

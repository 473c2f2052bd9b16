//! ROLL: a budget per step, a batches ahead; strict per sample.

use headway_shared::action::Discard;
use headway_shared::config::{GateKind, Problem, check};
use proptest::prelude::*;

use super::super::harness::{GOOD, Plan, any_plan, small};
use super::super::properties::cases;
use super::{agrees_with, gated_with, room};

#[test]
fn the_first_budget_is_a_batch_and_a_share_of_one_and_each_step_adds_a_batch() {
    let mut bench = gated_with(GateKind::Roll, |c| {
        c.policy_training.batch_size = 3;
        c.policy_training.async_generation_ratio = 500_000;
    });
    // ceil(0.5 * 3) + 3.
    let samples: Vec<_> = (0..5).map(|session| bench.turn(session)).collect();
    assert_eq!(room(&mut bench, 100), 0);
    for sample in &samples[..3] {
        bench.vote(*sample, GOOD);
    }
    assert!(bench.training());
    assert_eq!(room(&mut bench, 200), 0, "what is trained is not given back");
    bench.end_step(true);
    assert_eq!(room(&mut bench, 300), 0, "the next step begins with its weights");
    bench.publish();
    assert_eq!(room(&mut bench, 400), 3);
}

#[test]
fn what_still_runs_when_its_last_step_ends_is_aborted_and_its_place_given_back() {
    let mut bench = gated_with(GateKind::Roll, |_| {});
    let slow = bench.admit(500);
    bench.steps(1);
    assert_eq!(bench.fate(bench.sample_of(slow)), None);
    bench.steps(1);
    assert_eq!(bench.fate(bench.sample_of(slow)), Some(Discard::Late));
    let generation = bench.watch.generations.values().next().expect("the engine is not done yet");
    assert!(generation.aborted);
    assert_eq!(room(&mut bench, 600), 4, "2 * 2 + ceil(1 * 2) + 2, less 4 completed");
}

#[test]
fn a_ratio_of_zero_is_synchronous() {
    let mut bench = gated_with(GateKind::Roll, |c| c.policy_training.async_generation_ratio = 0);
    bench.steps(3);
    assert!(bench.trained.iter().all(|sample| sample.staleness_head() == 0));
    assert_eq!(room(&mut bench, 100), 2);
}

#[test]
fn a_ratio_below_the_publish_interval_is_refused() {
    let mut config = small();
    config.policy_training.gate = GateKind::Roll;
    config.policy_training.publish_interval = 3;
    config.policy_training.async_generation_ratio = 1_500_000;
    assert_eq!(check(&config), [Problem::RollNeverPublishes], "ceil(1.5) is 2, and 3 are needed");
    config.policy_training.async_generation_ratio = 500_000;
    assert_eq!(check(&config), [Problem::RollNeverPublishes]);
    config.policy_training.async_generation_ratio = 2_000_000;
    assert_eq!(check(&config), []);
}

proptest! {
    #![proptest_config(cases(12, 13))]

    /// ceil(a * B) + B * (step + 1), less what was completed and what runs.
    #[test]
    fn roll_admits_exactly_what_its_formula_says(
        plan in any_plan(),
        quarters in 0_u32..10,
        batch in 1_u32..5,
    ) {
        let mut config = small();
        config.policy_training.gate = GateKind::Roll;
        config.policy_training.async_generation_ratio = quarters * 250_000;
        config.policy_training.batch_size = batch;
        let ahead = i64::from((quarters * batch).div_ceil(4));
        agrees_with(config, Plan { replicas: 1, ..plan }, |books| {
            // Weights that are too old already admit nothing.
            if books.learner - books.version > quarters.div_ceil(4) {
                return 0;
            }
            ahead + i64::from(batch * (books.version + 1)) - books.admitted_and_kept
        });
    }
}

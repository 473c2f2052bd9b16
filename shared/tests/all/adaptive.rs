//! An adaptive bound: what moves it, what it binds, and what it survives.

use headway_shared::action::{Discard, Refusal};
use headway_shared::config::{BatchCounts, Bound, Config, Severity, Signal, check};
use headway_shared::core::Scheduler;
use headway_shared::id::StepId;
use headway_shared::input::{Input, Measured};
use proptest::prelude::*;

use super::harness::{
    Bench, GOOD, World, adaptive_config, any_plan, calm_plan, fifo_plan, sane_config,
};
use super::hostile::seeds;
use super::properties::{cases, in_order};
use super::snapshots::{bytes, recorded, step, thawed};

const GOOD_DIFF: u32 = 10_000;
const BAD_DIFF: u32 = 90_000;

/// Follows the log-prob difference, one step a decision.
fn follows(config: &mut Config) {
    let adaptive = &mut config.adaptive;
    adaptive.signal = Signal::LogprobAbsDiff;
    adaptive.target = 50_000;
    adaptive.every_steps = 1;
}

fn bench(edit: impl FnOnce(&mut Config)) -> Bench {
    Bench::new(|config| {
        follows(config);
        edit(config);
    })
}

fn measure(bench: &mut Bench, step: StepId, diff: Option<u32>) {
    let (clipped_fraction, ess) = (None, None);
    bench.give(Input::Measured(Measured { step, logprob_abs_diff: diff, clipped_fraction, ess }));
}

/// A whole step, its weights everywhere, and its measurement.
fn step_of(bench: &mut Bench, diff: u32) {
    while !bench.training() {
        let session = bench.fresh();
        bench.scored(session, GOOD);
    }
    let step = bench.watch.step.expect("a step");
    bench.end_step(true);
    measure(bench, step, Some(diff));
    bench.publish();
}

/// A step that has made a version and has not been measured, after some that do not count.
fn ended_step(bench: &mut Bench) -> StepId {
    bench.steps(3);
    bench.scored(90, GOOD);
    bench.scored(91, GOOD);
    let step = bench.watch.step.expect("a step");
    bench.end_step(true);
    step
}

/// Steps like this until η moves; what it is then.
fn moved(bench: &mut Bench, diff: u32) -> u32 {
    let before = bench.core.eta_in_force();
    for _ in 0..40 {
        step_of(bench, diff);
        if bench.core.eta_in_force() != before {
            break;
        }
    }
    bench.core.eta_in_force()
}

/// How many sessions are admitted until one is refused.
fn admitted(bench: &mut Bench) -> u32 {
    for count in 0..200 {
        let session = bench.fresh();
        let request = bench.request(session);
        if bench.decision(request) == super::harness::Decision::Refused(Refusal::Stale) {
            return count;
        }
    }
    panic!("nothing is refused");
}

#[test]
fn a_good_signal_raises_the_bound_and_a_bad_one_lowers_it() {
    let mut bench = bench(|_| {});
    assert_eq!(bench.core.eta_in_force(), 2);
    assert_eq!(moved(&mut bench, GOOD_DIFF), 3);
    assert_eq!(moved(&mut bench, GOOD_DIFF), 4);
    assert_eq!(moved(&mut bench, BAD_DIFF), 2);
    assert_eq!(moved(&mut bench, BAD_DIFF), 1);
    assert_eq!(moved(&mut bench, BAD_DIFF), 1, "its smallest");
    let last = bench.core.last_bound_move().expect("a move");
    assert_eq!((last.from, last.to, last.signal), (2, 1, BAD_DIFF));
    let ledger = bench.core.ledger();
    assert_eq!((ledger.bound_raised, ledger.bound_lowered), (2, 2));
}

#[test]
fn the_gate_gives_places_by_the_bound_in_force() {
    let mut bench = bench(|_| {});
    assert_eq!(moved(&mut bench, GOOD_DIFF), 3);
    assert_eq!(bench.core.gauges().bound, 3);
    assert_eq!(admitted(&mut bench), 8, "(3 + 1) batches of 2");
}

#[test]
fn steps_that_train_what_was_admitted_before_a_move_do_not_count() {
    let mut bench = bench(|_| {});
    assert_eq!(moved(&mut bench, GOOD_DIFF), 3);
    let at = bench.learner();
    assert_eq!(moved(&mut bench, BAD_DIFF), 1);
    // From version at + 3 on, steps train what was admitted at η = 3.
    assert_eq!(bench.learner(), at + 4);
}

#[test]
fn one_noisy_step_of_a_window_moves_nothing() {
    let mut bench = bench(|c| c.adaptive.every_steps = 4);
    bench.steps(3);
    for diff in [50_000, 900_000, 50_000, 50_000] {
        step_of(&mut bench, diff);
    }
    assert_eq!(bench.core.eta_in_force(), 2);
    for diff in [50_000, 60_000, 60_000, 50_000] {
        step_of(&mut bench, diff);
    }
    assert_eq!(bench.core.eta_in_force(), 1);
}

#[test]
fn measurements_that_come_late_twice_or_of_unknown_steps_are_counted_and_change_nothing() {
    let mut bench = bench(|_| {});
    bench.steps(3);
    for _ in 0..2 {
        bench.scored(90, GOOD);
        bench.scored(91, GOOD);
    }
    let step = bench.watch.step.expect("a step");
    measure(&mut bench, step, Some(BAD_DIFF));
    assert_eq!(bench.core.ledger().ignored, 1, "it is still training");
    measure(&mut bench, StepId(0), Some(BAD_DIFF));
    measure(&mut bench, StepId(77), Some(BAD_DIFF));
    assert_eq!(bench.core.ledger().ignored, 3);
    bench.end_step(false);
    measure(&mut bench, step, Some(BAD_DIFF));
    assert_eq!(bench.core.ledger().ignored, 4, "it made no version");
    assert_eq!(bench.core.eta_in_force(), 2);
    let again = bench.watch.step.expect("the step again");
    bench.end_step(true);
    measure(&mut bench, again, Some(BAD_DIFF));
    assert_eq!(bench.core.eta_in_force(), 1);
    measure(&mut bench, again, Some(BAD_DIFF));
    assert_eq!(bench.core.ledger().ignored, 5);
}

#[test]
fn a_step_that_was_not_measured_does_not_count() {
    let mut bench = bench(|_| {});
    let step = ended_step(&mut bench);
    measure(&mut bench, step, None);
    assert_eq!(bench.core.eta_in_force(), 2);
    assert_eq!(bench.core.ledger().ignored, 0);
}

#[test]
fn without_a_signal_a_measurement_means_nothing() {
    let mut bench = Bench::new(|_| {});
    step_of(&mut bench, BAD_DIFF);
    assert_eq!(bench.core.ledger().ignored, 1);
    assert_eq!(bench.core.eta_in_force(), 2);
}

#[test]
fn the_stale_filter_moves_with_the_bound_and_spares_what_is_admitted() {
    let mut bench = bench(|c| c.policy_training.stale_filter_steps = Some(2));
    bench.steps(3);
    let early = bench.turn(500);
    step_of(&mut bench, BAD_DIFF);
    assert_eq!(bench.core.eta_in_force(), 1);
    let late = bench.turn(501);
    bench.steps(1);
    assert_eq!(bench.fate(early), None, "two versions old, as its filter allows");
    bench.steps(1);
    assert_eq!(bench.fate(late), Some(Discard::StaleFilter));
}

#[test]
fn a_bound_of_zero_is_synchronous_until_it_rises() {
    let mut bench = bench(|c| c.adaptive.min = 0);
    assert_eq!(moved(&mut bench, BAD_DIFF), 1);
    assert_eq!(moved(&mut bench, BAD_DIFF), 0);
    assert_eq!(admitted(&mut bench), 2);
    let running: Vec<_> = bench.watch.generations.keys().copied().collect();
    for (request, _) in running {
        bench.finish(request);
        bench.vote(bench.sample_of(request), GOOD);
    }
    assert_eq!(moved(&mut bench, GOOD_DIFF), 1);
}

#[test]
fn a_new_configuration_keeps_what_was_measured_unless_it_measures_otherwise() {
    let three = || {
        let mut bench = bench(|c| c.adaptive.every_steps = 4);
        bench.steps(3);
        (0..3).for_each(|_| step_of(&mut bench, BAD_DIFF));
        bench
    };
    let mut kept = three();
    kept.reconfigure(|c| c.policy_training.min_batch_size = 1);
    step_of(&mut kept, BAD_DIFF);
    assert_eq!(kept.core.eta_in_force(), 1, "the fourth bad step");
    let mut anew = three();
    anew.reconfigure(|c| c.adaptive.target = 60_000);
    step_of(&mut anew, BAD_DIFF);
    assert_eq!(anew.core.eta_in_force(), 2, "the first one under the new target");
}

#[test]
fn a_step_that_ended_before_a_new_configuration_is_measured_after_it() {
    let mut bench = bench(|_| {});
    let step = ended_step(&mut bench);
    bench.reconfigure(|c| c.policy_training.min_batch_size = 1);
    measure(&mut bench, step, Some(BAD_DIFF));
    assert_eq!(bench.core.eta_in_force(), 1);
}

#[test]
fn an_operator_sets_the_bound_anew_or_leaves_it_in_force() {
    let mut bench = bench(|_| {});
    assert_eq!(moved(&mut bench, GOOD_DIFF), 3);
    assert_eq!(moved(&mut bench, GOOD_DIFF), 4);
    bench.reconfigure(|c| c.policy_training.batch_size = 3);
    assert_eq!(bench.core.eta_in_force(), 4, "what is in force stays");
    bench.reconfigure(|c| c.adaptive.max = 3);
    assert_eq!(bench.core.eta_in_force(), 3, "within the limits");
    bench.reconfigure(|c| c.policy_training.max_head_off_policyness = 1);
    assert_eq!(bench.core.eta_in_force(), 1, "someone has set it");
    assert_eq!(moved(&mut bench, GOOD_DIFF), 2);
    bench.reconfigure(|c| c.adaptive.signal = Signal::Off);
    assert_eq!(bench.core.eta_in_force(), 1, "as it is set");
}

#[test]
fn a_rollback_keeps_the_bound_and_forgets_what_was_measured() {
    let mut bench = bench(|c| c.adaptive.every_steps = 2);
    assert_eq!(moved(&mut bench, GOOD_DIFF), 3);
    bench.steps(4);
    step_of(&mut bench, BAD_DIFF);
    bench.restored(2);
    bench.publish();
    assert_eq!(bench.core.eta_in_force(), 3);
    step_of(&mut bench, BAD_DIFF);
    assert_eq!(bench.core.eta_in_force(), 3, "the window has begun anew");
    assert_eq!(moved(&mut bench, BAD_DIFF), 1);
}

proptest! {
    #![proptest_config(cases(150, 6))]

    /// The checker asserts its own after every input.
    #[test]
    fn the_bound_stays_within_its_limits(config in adaptive_config(), plan in any_plan()) {
        let mut world = World::new(config.clone(), plan);
        for _ in 0..1500 {
            if !world.turn() {
                break;
            }
            let eta = world.bench.core.eta_in_force();
            prop_assert!((config.adaptive.min..=config.adaptive.max).contains(&eta), "{}", eta);
        }
    }

    /// Whatever moves it: each sample is trained within the bound that it was admitted under.
    #[test]
    fn full_batches_in_admission_order_never_exceed_the_bound_of_their_admission(
        mut config in adaptive_config(),
        plan in fifo_plan(),
    ) {
        in_order(&mut config);
        config.policy_training.batch_counts = BatchCounts::Accepted;
        // What it brings beyond a batch is kept by the bound in force.
        config.policy_training.over_sampling = 1_000_000;
        let mut world = World::new(config, plan);
        world.run();
        prop_assert_eq!(world.bench.core.ledger().trained_above_bound, 0);
    }

    #[test]
    fn a_strict_bound_that_moves_is_never_exceeded(
        mut config in adaptive_config(),
        plan in any_plan(),
    ) {
        config.policy_training.bound = Bound::Strict;
        let mut world = World::new(config, plan);
        world.run();
        prop_assert_eq!(world.bench.core.ledger().trained_above_bound, 0);
    }

    #[test]
    fn a_bound_that_moves_makes_progress_in_a_world_without_faults(
        mut config in adaptive_config(),
        mut plan in calm_plan(),
    ) {
        in_order(&mut config);
        config.policy_training.park_after = super::harness::secs(0);
        config.policy_training.min_batch_size = 1;
        let problems = check(&config);
        prop_assume!(problems.iter().all(|problem| problem.severity() != Severity::Error));
        (plan.inputs, plan.steps, plan.turns, plan.zeros) = (6000, 12, 1, 0);
        let mut world = World::new(config, plan);
        world.run();
        prop_assert_eq!(world.bench.learner(), 12, "it stalls: {:?}", world.bench.core.gauges());
    }
}

proptest! {
    #![proptest_config(cases(40, 7))]

    #[test]
    fn a_core_that_is_thawed_before_every_input_moves_its_bound_alike(
        config in adaptive_config(),
        others in prop::collection::vec(prop_oneof![sane_config(), adaptive_config()], 3),
        plan in any_plan(),
        seeds in seeds(60),
    ) {
        let inputs = recorded(config.clone(), &others, plan, &seeds, 400);
        let mut warm = Scheduler::new(config);
        let mut thaw = warm.clone();
        for (now, input) in &inputs {
            thaw = thawed(&bytes(&thaw));
            prop_assert_eq!(step(&mut warm, *now, input), step(&mut thaw, *now, input));
            prop_assert_eq!(warm.eta_in_force(), thaw.eta_in_force());
        }
        prop_assert_eq!(bytes(&warm), bytes(&thaw));
    }
}

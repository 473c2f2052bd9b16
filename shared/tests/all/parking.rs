//! People who read an answer do not close the gate for everyone.

use headway_shared::action::{Discard, Refusal};
use headway_shared::config::{Bound, GateKind, JudgeNeeds};
use headway_shared::core::SampleState;
use headway_shared::id::{RequestId, SampleId};
use headway_shared::input::Finish;

use super::harness::{Bench, Delay, GOOD, Plan, World, secs, small};

/// Batches of 2, η = 2, parked after 30 s.
fn readers() -> Bench {
    Bench::new(|c| {
        c.reward_judging.judge_needs = JudgeNeeds::NextState;
        c.policy_training.park_after = secs(30);
    })
}

/// Other sessions fill a batch and it trains; the weights arrive.
fn another_step(bench: &mut Bench, session: u64) {
    for session in [session, session + 1] {
        let sample = bench.turn(session);
        bench.next_state(session);
        bench.vote(sample, GOOD);
    }
    bench.end_step(true);
    bench.publish();
}

#[test]
fn a_turn_that_waits_long_gives_its_place_back() {
    let mut bench = readers();
    for session in 0..6 {
        bench.turn(session);
    }
    bench.refuses(100, Refusal::Stale);
    bench.advance(secs(29));
    bench.refuses(100, Refusal::Stale);
    bench.advance(secs(1));
    assert_eq!(bench.core.ledger().parked(), 6);
    assert_eq!(bench.core.gauges().outstanding, 0);
    bench.admit(100);
}

#[test]
fn gates_that_count_for_themselves_get_the_place_back_too() {
    for gate in [GateKind::Verl, GateKind::PipelineRl] {
        let mut bench = Bench::new(|c| {
            c.reward_judging.judge_needs = JudgeNeeds::NextState;
            c.policy_training.park_after = secs(30);
            c.policy_training.gate = gate;
            c.policy_training.staleness_threshold = 2_000_000;
            c.policy_training.max_lag_samples = 4;
        });
        for session in 0..6 {
            bench.turn(session);
        }
        bench.refuses(100, Refusal::Stale);
        bench.advance(secs(30));
        for session in 100..106 {
            bench.admit(session);
        }
        bench.refuses(106, Refusal::Stale);
    }
}

#[test]
fn a_parked_turn_is_admitted_again_when_its_next_state_comes() {
    let mut bench = readers();
    let sample = bench.turn(0);
    bench.advance(secs(300));
    assert_eq!(bench.core.gauges().parked, 1);
    bench.next_state(0);
    assert_eq!(bench.core.gauges().parked, 0);
    assert_eq!(bench.votes_on(sample), 1);
    bench.vote(sample, GOOD);
    assert_eq!(bench.core.ledger().count(SampleState::OutputQueue), 1);
    assert_eq!(bench.core.ledger().parkings, 1);
}

#[test]
fn a_parked_turn_that_is_too_old_is_discarded() {
    let mut bench = readers();
    let sample = bench.turn(0);
    bench.advance(secs(30));
    for step in 0..3 {
        another_step(&mut bench, 10 + 2 * step);
    }
    bench.next_state(0);
    assert_eq!(bench.fate(sample), Some(Discard::StaleParked));
}

/// A turn of version 0 is parked, and as much else is under way as its age lets in.
fn without_a_place() -> (Bench, SampleId, Vec<RequestId>) {
    let mut bench = readers();
    let sample = bench.turn(0);
    bench.advance(secs(30));
    another_step(&mut bench, 10);
    // At lag 1 it needs one of (2 + 1 - 1) * 2 places.
    let others = (20..24).map(|session| bench.admit(session)).collect();
    bench.next_state(0);
    assert_eq!(bench.votes_on(sample), 0);
    (bench, sample, others)
}

#[test]
fn a_parked_turn_within_eta_but_without_a_place_waits_for_one() {
    let (mut bench, sample, others) = without_a_place();
    assert_eq!(bench.core.gauges().parked, 1);
    bench.finish_as(others[0], Finish::Failed, 0);
    assert_eq!(bench.votes_on(sample), 1);
    assert_eq!(bench.core.gauges().parked, 0);
}

#[test]
fn a_parked_turn_that_finds_no_place_until_it_is_too_old_is_discarded() {
    let (mut bench, sample, _) = without_a_place();
    for step in 0..2 {
        assert_eq!(bench.fate(sample), None);
        for session in [100 + 2 * step, 101 + 2 * step] {
            let scored = bench.turn(session);
            bench.next_state(session);
            bench.vote(scored, GOOD);
        }
        bench.end_step(true);
        bench.publish();
    }
    assert_eq!(bench.fate(sample), Some(Discard::StaleParked));
}

#[test]
fn an_old_turn_that_waits_to_return_does_not_keep_a_young_one_out() {
    let (mut bench, old, _) = without_a_place();
    let young = bench.turn(30);
    bench.advance(secs(30));
    assert_eq!(bench.core.gauges().parked, 2);
    bench.next_state(30);
    assert_eq!(bench.votes_on(old), 0);
    assert_eq!(bench.votes_on(young), 1, "at its age there is room");
}

#[test]
fn a_parked_turn_takes_the_last_place_that_its_age_leaves() {
    let mut bench = readers();
    let sample = bench.turn(0);
    bench.advance(secs(30));
    another_step(&mut bench, 10);
    for session in 20..23 {
        bench.admit(session);
    }
    bench.next_state(0);
    assert_eq!(bench.fate(sample), None);
    assert_eq!(bench.votes_on(sample), 1);
}

#[test]
fn a_session_that_ends_takes_its_parked_turn_along() {
    let mut bench = readers();
    let sample = bench.turn(0);
    bench.advance(secs(30));
    bench.end_session(0);
    assert_eq!(bench.fate(sample), Some(Discard::NoNextState));
    assert_eq!(bench.core.gauges().parked, 0);
}

#[test]
fn under_a_strict_bound_the_parked_are_swept_at_each_version() {
    let mut bench = Bench::new(|c| {
        c.reward_judging.judge_needs = JudgeNeeds::NextState;
        c.policy_training.park_after = secs(30);
        c.policy_training.bound = Bound::Strict;
    });
    let sample = bench.turn(0);
    bench.advance(secs(30));
    for step in 0..3 {
        assert_eq!(bench.fate(sample), None);
        another_step(&mut bench, 10 + 2 * step);
    }
    assert_eq!(bench.fate(sample), Some(Discard::Late));
}

#[test]
fn forty_eight_readers_do_not_keep_the_forty_ninth_out() {
    let mut bench = Bench::new(|c| {
        c.reward_judging.judge_needs = JudgeNeeds::NextState;
        c.policy_training.batch_size = 16;
        c.policy_training.park_after = secs(30);
    });
    for session in 0..48 {
        bench.turn(session);
    }
    bench.refuses(48, Refusal::Stale);
    bench.advance(secs(30));
    bench.admit(48);
}

#[test]
fn forty_eight_users_who_read_for_minutes_stall_nothing() {
    let mut config = small();
    config.reward_judging.judge_needs = JudgeNeeds::NextState;
    config.policy_training.gate = GateKind::Headway;
    config.policy_training.batch_size = 16;
    config.policy_training.park_after = secs(30);
    let plan = Plan {
        clients: 48,
        turns: 8,
        generate: Delay { least: 50, most: 200 },
        think: Delay { least: 600, most: 3600 },
        vote: Delay { least: 10, most: 30 },
        train: Delay { least: 100, most: 300 },
        weights: Delay { least: 10, most: 50 },
        inputs: 15_000,
        steps: 20,
        ..Plan::calm()
    };
    let mut world = World::new(config, plan);
    world.run();
    let bench = &world.bench;
    assert_eq!(bench.learner(), 20, "it stalls at {}", bench.now);
    assert!(bench.now.as_secs_f64() < 7200.0, "20 batches take {}", bench.now);
    assert!(bench.core.ledger().parkings > 0);
    let ledger = bench.core.ledger();
    assert!(ledger.refused_total() * 10 < ledger.offered, "{} refused", ledger.refused_total());
}

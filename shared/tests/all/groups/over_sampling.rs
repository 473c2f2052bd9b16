//! `over_sampling`: a reserve beyond a batch, and what becomes of what is not needed of it.

use headway_shared::action::{Action, Discard, Refusal};
use headway_shared::config::{Bound, Config, GateKind, GroupFilter, Surplus};

use super::super::harness::{Bench, Decision, GOOD, R1, ZERO};

/// Batches of 4, 1.3 times as many admitted (6), at this η.
fn over(eta: u32, surplus: Surplus, edit: impl FnOnce(&mut Config)) -> Bench {
    Bench::new(|c| {
        c.policy_training.batch_size = 4;
        c.policy_training.max_head_off_policyness = eta;
        c.policy_training.over_sampling = 1_300_000;
        c.policy_training.surplus = surplus;
        edit(c);
    })
}

/// How many requests of new sessions are admitted now.
fn room(bench: &mut Bench) -> usize {
    let first = bench.core.ledger().offered * 1000;
    let mut count = 0;
    for session in first..first + 100 {
        let request = bench.request(session);
        if !matches!(bench.decision(request), Decision::Started { sample: Some(_), .. }) {
            return count;
        }
        count += 1;
    }
    count
}

#[test]
fn at_eta_zero_the_reserve_is_admitted_and_what_is_left_of_it_is_dropped_at_the_step() {
    let mut bench = over(0, Surplus::Drop, |_| {});
    let slow = [bench.admit(0), bench.admit(1)];
    for session in 2..5 {
        bench.scored(session, GOOD);
    }
    let last = bench.admit(5);
    bench.refuses(6, Refusal::Stale);
    bench.finish(last);
    bench.vote(bench.sample_of(last), GOOD);
    assert_eq!(bench.batch().len(), 4);
    for request in slow {
        assert_eq!(bench.fate(bench.sample_of(request)), Some(Discard::Surplus));
    }
    let aborted = |action: &&Action| matches!(action, Action::AbortGeneration { .. });
    assert_eq!(bench.last.iter().filter(aborted).count(), 2, "their generations end");
    assert_eq!(room(&mut bench), 0, "what starts now would be too old for the next batch");
    bench.end_step(true);
    assert_eq!(room(&mut bench), 0, "the weights are on their way");
    bench.publish();
    assert_eq!(room(&mut bench), 6);
}

#[test]
fn surplus_that_is_ready_is_dropped_too() {
    let mut bench = over(0, Surplus::Drop, |_| {});
    let requests: Vec<_> = (0..6).map(|session| bench.admit(session)).collect();
    for &request in &requests {
        bench.finish(request);
    }
    let samples: Vec<_> = requests.iter().map(|&request| bench.sample_of(request)).collect();
    for &sample in &samples[..4] {
        bench.vote(sample, GOOD);
    }
    assert_eq!(bench.batch(), samples[..4]);
    // Newest first.
    let surplus = [(samples[5], Discard::Surplus), (samples[4], Discard::Surplus)];
    assert_eq!(bench.discarded, surplus);
}

#[test]
fn recycled_surplus_fills_the_next_batch_and_costs_a_version() {
    let mut bench = over(1, Surplus::Recycle, |_| {});
    let first: Vec<_> = (0..10).map(|session| bench.admit(session)).collect();
    bench.refuses(10, Refusal::Stale);
    let ready = |bench: &mut Bench, requests: &[headway_shared::id::RequestId]| {
        for &request in requests {
            bench.finish(request);
            bench.vote(bench.sample_of(request), GOOD);
        }
    };
    ready(&mut bench, &first);
    for _ in 0..2 {
        bench.end_step(true);
        bench.publish();
    }
    assert!(bench.discarded.is_empty());
    assert_eq!(bench.core.gauges().output_queue, 2, "the reserve is still there");
    assert_eq!(room(&mut bench), 8, "and takes its places");
    let more: Vec<_> = bench.watch.running().take(2).collect();
    ready(&mut bench, &more);
    bench.end_step(true);
    assert_eq!(bench.worst_staleness(), 2, "η is 1");
}

#[test]
fn a_reserve_that_can_still_be_trained_in_time_is_not_dropped() {
    let mut bench = over(2, Surplus::Drop, |_| {});
    let requests: Vec<_> = (0..14).map(|session| bench.admit(session)).collect();
    bench.refuses(14, Refusal::Stale);
    let train = |bench: &mut Bench, requests: &[headway_shared::id::RequestId]| {
        for &request in requests {
            bench.finish(request);
            bench.vote(bench.sample_of(request), GOOD);
        }
        bench.end_step(true);
    };
    train(&mut bench, &requests[..4]);
    train(&mut bench, &requests[4..8]);
    assert!(bench.discarded.is_empty(), "two versions old, they are a reserve for the third step");
    train(&mut bench, &requests[8..12]);
    assert_eq!(bench.discarded.len(), 2);
    assert_eq!(bench.worst_staleness(), 2);
}

#[test]
fn old_surplus_goes_before_fresh_places_that_can_still_be_trained() {
    let mut bench = over(1, Surplus::Drop, |_| {});
    let requests: Vec<_> = (0..10).map(|session| bench.admit(session)).collect();
    for &request in &requests[..4] {
        bench.finish(request);
        bench.vote(bench.sample_of(request), GOOD);
    }
    bench.end_step(true);
    bench.publish();
    // Four fresh ones of version 1 stand behind six of version 0, of which four are the next batch.
    let fresh: Vec<_> = (20..24).map(|session| bench.admit(session)).collect();
    for &request in &requests[4..8] {
        bench.finish(request);
        bench.vote(bench.sample_of(request), GOOD);
    }
    assert!(bench.training());
    for &request in &requests[8..] {
        assert_eq!(bench.fate(bench.sample_of(request)), Some(Discard::Surplus));
    }
    for &request in &fresh {
        assert_eq!(bench.fate(bench.sample_of(request)), None);
    }
}

#[test]
fn whole_groups_are_dropped_and_members_to_come_are_refused() {
    let mut bench = over(0, Surplus::Drop, |c| {
        c.policy_training.batch_size = 1;
        c.policy_training.over_sampling = 2_000_000;
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 2;
    });
    let surplus = bench.admit_in(0, 1);
    let third = bench.admit_in(1, 2);
    let fourth = bench.request_in(2, 3);
    bench.refused(fourth, Refusal::Stale);
    bench.finish(third);
    bench.vote(bench.sample_of(third), GOOD);
    bench.scored_in(3, 2, GOOD);
    assert!(bench.training());
    assert_eq!(bench.fate(bench.sample_of(surplus)), Some(Discard::Surplus));
    let late = bench.request_in(4, 1);
    bench.refused(late, Refusal::BadGroup);
}

#[test]
fn the_reserve_takes_the_place_of_what_is_filtered() {
    let mut bench = over(0, Surplus::Drop, |c| {
        c.policy_training.batch_size = 2;
        c.policy_training.over_sampling = 1_500_000;
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 2;
        c.policy_training.filter = GroupFilter::ZeroVariance;
    });
    for group in 0..3 {
        bench.admit_in(2 * group, group);
    }
    let none = bench.request_in(90, 90);
    bench.refused(none, Refusal::Stale);
    for (group, score) in [(0, GOOD), (1, ZERO), (2, ZERO)] {
        let first = bench.watch.running().next().expect("the first member");
        bench.finish(first);
        bench.vote(bench.sample_of(first), GOOD);
        bench.scored_in(2 * group + 1, group, score);
    }
    assert_eq!(bench.batch().len(), 4, "group 0 was filtered, and the other two are a batch");
}

#[test]
fn nothing_is_admitted_on_weights_that_eta_forbids() {
    for gate in [GateKind::Headway, GateKind::Sync] {
        let mut bench = over(0, Surplus::Drop, |c| c.policy_training.gate = gate);
        bench.replica_up(R1, 0);
        for session in 0..4 {
            bench.scored(session, GOOD);
        }
        bench.end_step(true);
        assert_eq!(room(&mut bench), 0, "{gate:?}");
    }
}

#[test]
fn every_gate_that_counts_places_has_the_reserve_as_well() {
    use GateKind::{Areal, OneStepOff, PipelineRl, Roll, Skyrl, SlimeTrainAsync, Sync, Verl};
    for gate in [Areal, OneStepOff, PipelineRl, Roll, Skyrl, SlimeTrainAsync, Sync, Verl] {
        let with = |over_sampling: u32| {
            let mut bench = over(1, Surplus::Recycle, |c| {
                c.policy_training.gate = gate;
                c.policy_training.over_sampling = over_sampling;
                c.policy_training.max_lag_samples = 4;
                c.policy_serving.max_concurrent_rollouts = 100;
            });
            room(&mut bench)
        };
        assert_eq!(with(1_300_000), with(1_000_000) + 2, "{gate:?}");
    }
}

#[test]
fn no_step_waits_for_what_it_will_drop() {
    let mut bench = over(0, Surplus::Drop, |c| {
        c.policy_training.bound = Bound::Strict;
        c.policy_training.late = headway_shared::config::Late::Wait;
    });
    bench.admit(0);
    for session in 1..5 {
        bench.scored(session, GOOD);
    }
    assert!(bench.training());
}

//! What shows only after many steps, or when several rules meet.

use headway_shared::action::{Discard, Refusal};
use headway_shared::config::{Bound, DropPolicy, GateKind, Late, Queue, QueueOrder};
use headway_shared::core::SampleState;
use headway_shared::input::TurnType;

use super::harness::{Bench, Decision, Delay, GOOD, Plan, R0, R1, World, secs, small};

#[test]
fn lifo_with_a_strict_bound_holds_no_place_for_the_dead_over_sixty_steps() {
    let mut config = small();
    config.policy_training.bound = Bound::Strict;
    config.policy_training.max_head_off_policyness = 1;
    config.policy_training.batch_size = 4;
    config.queue.output.queue_type = QueueOrder::Lifo;
    let plan = Plan {
        clients: 24,
        zeros: 0,
        generate: Delay { least: 10, most: 400 },
        train: Delay { least: 20, most: 60 },
        inputs: 15_000,
        steps: 60,
        ..Plan::calm()
    };
    let mut world = World::new(config, plan);
    let mut at_step = vec![world.bench.now];
    while world.bench.learner() < 60 && world.turn() {
        assert!(world.bench.core.gauges().outstanding <= 8);
        let version = world.bench.learner() as usize;
        if at_step.len() <= version {
            at_step.push(world.bench.now);
        }
    }
    assert_eq!(world.bench.learner(), 60);
    assert!(world.bench.worst_staleness() <= 1);
    let early = at_step[20].since(at_step[10]).as_secs_f64();
    let late = at_step[60].since(at_step[50]).as_secs_f64();
    assert!(late < 2.0 * early, "it gets slower: {early} s, then {late} s for ten steps");
}

/// η = 1 and strict; a slow turn of version 0, and a full output queue of two at version 1.
fn straggler(drop_policy: DropPolicy) -> (Bench, headway_shared::id::RequestId) {
    let mut bench = Bench::new(|c| {
        c.policy_training.bound = Bound::Strict;
        c.policy_training.late = Late::Wait;
        c.policy_training.late_wait = secs(100);
        c.policy_training.max_head_off_policyness = 1;
        c.queue.output = Queue { max_size: 2, queue_type: QueueOrder::Fifo, drop_policy };
    });
    let slow = bench.admit(0);
    bench.scored(1, GOOD);
    bench.scored(2, GOOD);
    bench.end_step(true);
    bench.publish();
    bench.scored(3, GOOD);
    bench.scored(4, GOOD);
    assert!(!bench.training(), "the step waits for what would be too old after it");
    (bench, slow)
}

const POLICIES: [DropPolicy; 3] =
    [DropPolicy::Block, DropPolicy::DropOldest, DropPolicy::DropNewest];

#[test]
fn an_awaited_straggler_passes_a_full_output_queue_and_is_trained() {
    for policy in POLICIES {
        let (mut bench, slow) = straggler(policy);
        bench.advance(secs(50));
        bench.finish(slow);
        let slow = bench.sample_of(slow);
        bench.vote(slow, GOOD);
        assert!(bench.batch().contains(&slow), "{policy:?}: {:?}", bench.batch());
        bench.end_step(true);
        assert_eq!(bench.trained_sample(slow).staleness_head(), 1);
        assert!(bench.discarded.is_empty(), "{policy:?} dropped {:?}", bench.discarded);
    }
}

#[test]
fn a_straggler_is_awaited_for_late_wait_and_no_longer() {
    let (mut bench, slow) = straggler(DropPolicy::Block);
    bench.advance(secs(99));
    assert!(!bench.training());
    bench.advance(secs(1));
    assert!(bench.training());
    bench.end_step(true);
    assert_eq!(bench.fate(bench.sample_of(slow)), Some(Discard::Late));
}

#[test]
fn a_straggler_that_fails_ends_the_wait() {
    let (mut bench, slow) = straggler(DropPolicy::Block);
    bench.finish_as(slow, headway_shared::input::Finish::Failed, 0);
    assert!(bench.training());
}

#[test]
fn strict_without_waiting_discards_the_straggler_and_cancels_its_work() {
    let mut bench = Bench::new(|c| {
        c.policy_training.bound = Bound::Strict;
        c.policy_training.max_head_off_policyness = 1;
    });
    let slow = bench.admit(500);
    bench.steps(2);
    assert_eq!(bench.fate(bench.sample_of(slow)), Some(Discard::Late));
    let generation = bench.watch.generations.values().next().expect("the engine is not done yet");
    assert!(generation.aborted);
    bench.finish_as(slow, headway_shared::input::Finish::Aborted, 2);
    bench.steps(1);
}

#[test]
fn an_aggregate_bound_trains_the_straggler_and_counts_it() {
    let mut bench = Bench::new(|_| {});
    let slow = bench.admit(500);
    bench.steps(5);
    bench.finish(slow);
    bench.vote(bench.sample_of(slow), GOOD);
    bench.steps(1);
    assert!(bench.trained_sample(bench.sample_of(slow)).staleness_head() > 2);
    assert_eq!(bench.core.ledger().trained_above_bound, 1);
}

#[test]
fn the_filter_discards_what_is_older_than_it_even_in_flight() {
    let mut bench = Bench::new(|c| c.policy_training.stale_filter_steps = Some(3));
    let slow = bench.admit(500);
    bench.steps(3);
    assert_eq!(bench.fate(bench.sample_of(slow)), None);
    bench.steps(1);
    assert_eq!(bench.fate(bench.sample_of(slow)), Some(Discard::StaleFilter));
}

#[test]
fn the_filter_sweeps_what_waits_in_a_queue() {
    let mut bench = Bench::new(|c| {
        c.policy_training.stale_filter_steps = Some(2);
        c.queue.output.queue_type = QueueOrder::Lifo;
    });
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    let buried = bench.scored(500, GOOD);
    for step in 1..=3 {
        // LIFO takes the two newest while the first waits below.
        bench.scored(10 * step, GOOD);
        bench.scored(10 * step + 1, GOOD);
        bench.end_step(true);
        bench.publish();
        let fate = (step == 3).then_some(Discard::StaleFilter);
        assert_eq!(bench.fate(buried), fate, "at version {step}");
    }
}

/// Strict at η = 0, with the weights of the last step not there yet.
fn behind_at_eta_zero(gate: GateKind) -> Bench {
    let mut bench = Bench::new(|c| {
        c.policy_training.bound = Bound::Strict;
        c.policy_training.max_head_off_policyness = 0;
        c.policy_training.gate = gate;
    });
    bench.steps(1);
    bench.scored(100, GOOD);
    bench.scored(101, GOOD);
    bench.end_step(true);
    bench
}

#[test]
fn what_is_born_too_old_is_not_trained_under_a_strict_bound() {
    for gate in [GateKind::None, GateKind::Openclaw] {
        let mut bench = behind_at_eta_zero(gate);
        // The weights of version 2 are not there yet, and this gate does not ask for them.
        for session in 200..204 {
            let request = bench.request(session);
            if bench.watch.attempt(request).is_some() {
                bench.finish(request);
            }
            if let Decision::Started { sample: Some(sample), .. } = bench.decision(request)
                && bench.votes_on(sample) > 0
            {
                bench.vote(sample, GOOD);
            }
        }
        assert!(!bench.training());
        assert!(!bench.watch.failed);
    }
}

/// Admitted and discarded at once, its client would ask again at once, for ever.
#[test]
fn what_would_be_born_too_old_is_refused_until_newer_weights_are_there() {
    for gate in [GateKind::None, GateKind::Openclaw] {
        let mut bench = behind_at_eta_zero(gate);
        let early = bench.request(200);
        assert_eq!(bench.decision(early), Decision::Refused(Refusal::Stale));
        bench.publish();
        let later = bench.request(201);
        assert!(matches!(bench.decision(later), Decision::Started { sample: Some(_), .. }));
    }
}

#[test]
fn a_later_turn_of_a_session_is_not_born_too_old() {
    let mut bench = Bench::new(|c| {
        c.reward_judging.fire_on_turn_end = false;
        c.policy_training.max_head_off_policyness = 0;
    });
    bench.replica_up(R1, 0);
    for session in 0..2 {
        let sample = bench.turn(session);
        bench.end_session(session);
        bench.vote(sample, GOOD);
    }
    bench.end_step(true);
    bench.save();
    bench.load(R0);
    let first = bench.turn(2);
    // R0 is busy, and R1 still holds version 0: the session's next turn finds no fresh replica idle.
    bench.request_with(3, |request| request.turn = TurnType::Side);
    let second = bench.request(2);
    if bench.watch.attempt(second).is_some() {
        bench.finish(second);
    }
    bench.end_session(2);
    bench.vote(first, GOOD);
    if let Decision::Started { sample: Some(second), .. } = bench.decision(second)
        && bench.votes_on(second) > 0
    {
        bench.vote(second, GOOD);
    }
    if bench.training() {
        bench.end_step(true);
    }
    assert_eq!(bench.worst_staleness(), 0);
}

#[test]
fn a_straggler_is_judged_where_scored_samples_without_room_hold_the_judge() {
    let (mut bench, slow) = straggler(DropPolicy::Block);
    bench.reconfigure(|c| c.reward_judging.judge_concurrency = 1);
    bench.scored(5, GOOD);
    assert_eq!(bench.core.ledger().count(SampleState::OutputBlocked), 1);
    bench.finish(slow);
    let slow = bench.sample_of(slow);
    assert_eq!(bench.votes_on(slow), 1);
    bench.vote(slow, GOOD);
    assert!(bench.batch().contains(&slow));
}

#[test]
fn a_straggler_waits_for_a_judge_that_is_at_work() {
    let (mut bench, slow) = straggler(DropPolicy::Block);
    bench.reconfigure(|c| c.reward_judging.judge_concurrency = 1);
    let judged = bench.turn(5);
    bench.finish(slow);
    let slow = bench.sample_of(slow);
    assert_eq!(bench.votes_on(slow), 0);
    assert_eq!(bench.core.gauges().rollout_queue, 1);
    bench.vote(judged, GOOD);
    assert_eq!(bench.votes_on(slow), 1);
}

#[test]
fn a_straggler_that_waits_for_room_before_the_judge_passes_those_before_it() {
    let mut bench = Bench::new(|c| {
        c.policy_training.bound = Bound::Strict;
        c.policy_training.late = Late::Wait;
        c.policy_training.late_wait = secs(100);
        c.policy_training.max_head_off_policyness = 3;
        c.reward_judging.judge_concurrency = 2;
        c.queue.rollout =
            Queue { max_size: 1, queue_type: QueueOrder::Fifo, drop_policy: DropPolicy::Block };
    });
    let slow = bench.admit(500);
    bench.steps(3);
    let samples: Vec<_> = (0..7).map(|session| bench.turn(session)).collect();
    bench.finish(slow);
    let slow = bench.sample_of(slow);
    assert_eq!(bench.core.ledger().count(SampleState::RolloutBlocked), 5);
    bench.vote(samples[0], GOOD);
    bench.vote(samples[1], GOOD);
    assert!(!bench.training(), "the step waits for what would be too old after it");
    bench.vote(samples[2], GOOD);
    assert_eq!(bench.votes_on(slow), 1);
    assert_eq!(bench.votes_on(samples[4]), 0);
}

#[test]
fn what_the_core_remembers_does_not_grow_with_the_steps() {
    let mut bench = Bench::new(|_| {});
    let size = |bench: &Bench| postcard::to_stdvec(&bench.core).expect("it can be written").len();
    let mut sizes = Vec::new();
    for session in 0..600 {
        bench.scored(session, GOOD);
        bench.end_session(session);
        if bench.training() {
            bench.end_step(true);
            bench.publish();
        }
        sizes.push(size(&bench));
    }
    let (before, after) = (sizes[399], sizes[599]);
    assert!(after < before + 50, "{before} bytes, and {after} after 100 steps more");
}

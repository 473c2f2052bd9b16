//! Each system's gate against the sentence that defines it, and its known weakness.

mod areal;
mod headway;
mod nemo_rl_window;
mod none;
mod one_step_off;
mod openclaw;
mod pipeline_rl;
mod prime_rl;
mod roll;
mod said;
mod skyrl;
mod slime_train_async;
mod strict;
mod sync;
mod verl;

use headway_shared::action::Action;
use headway_shared::config::{BatchCounts, Choice, Config, GateKind, ZeroScore};
use headway_shared::core::{Sample, Scheduler, Stage};
use headway_shared::id::{GroupId, RequestId, SessionId};
use headway_shared::input::{Input, Request, TurnType};

use super::harness::{Bench, Decision, Delay, Plan, R0, World, secs, small};

fn gated(gate: GateKind) -> Bench {
    gated_with(gate, |_| {})
}

fn gated_with(gate: GateKind, edit: impl FnOnce(&mut Config)) -> Bench {
    Bench::new(|c| {
        c.policy_training.gate = gate;
        c.policy_serving.max_concurrent_rollouts = 256;
        c.reward_judging.zero_score = ZeroScore::Discard;
        edit(c);
    })
}

/// How many requests of new sessions are admitted now.
fn room(bench: &mut Bench, first: u64) -> u64 {
    (first..first + 1000)
        .take_while(|session| {
            let request = bench.request(*session);
            matches!(bench.decision(request), Decision::Started { sample: Some(_), .. })
        })
        .count() as u64
}

/// A gate's closed form is compared up to so many places.
const PROBES: i64 = 30;

/// How many requests a copy of the core would admit now, each of a new session and group.
fn probe(core: &Scheduler) -> i64 {
    let mut core = core.clone();
    let grouped = core.config().policy_training.group_size > 1;
    let admitted = |core: &mut Scheduler, number: u64| {
        let request = Request {
            request: RequestId(1 << 40 | number),
            session: SessionId(1 << 40 | number),
            group: grouped.then_some(GroupId(1 << 40 | number)),
            turn: TurnType::Main,
            prompt_tokens: 10,
            streamed: false,
            last: false,
        };
        core.handle(core.now(), &Input::Request(request));
        let mut started = false;
        while let Some(action) = core.poll_action() {
            started |= matches!(action, Action::StartGeneration { sample: Some(_), .. });
        }
        started
    };
    (0..PROBES as u64).take_while(|number| admitted(&mut core, *number)).count() as i64
}

/// What closed forms are made of, from the ledger alone. In samples: groups have one each.
struct Books {
    learner: u32,
    /// The replica's version.
    version: u32,
    admitted_and_kept: i64,
    outstanding: i64,
    unresolved: i64,
}

/// In a world without groups, with one replica that never closes, a gate admits at every instant
/// what its closed form says.
fn agrees_with(mut config: Config, mut plan: Plan, capacity: impl Fn(&Books) -> i64) {
    config.reward_judging.zero_score = ZeroScore::Discard;
    config.reward_judging.judge_concurrency = 100;
    (plan.side, plan.environments) = (0, false);
    (plan.faults.replica, plan.faults.weights) = (0, 0);
    let mut world = World::new(config, plan);
    while world.bench.record.len() < 250 && world.bench.learner() < 12 && world.turn() {
        let core = &world.bench.core;
        let ledger = core.ledger();
        let ready = core.gauges().output_queue as usize + core.batch().count();
        let books = Books {
            learner: world.bench.learner(),
            version: world.bench.deployed(R0),
            admitted_and_kept: (ledger.admitted - ledger.discarded_total()) as i64,
            outstanding: ledger.outstanding() as i64,
            unresolved: ledger.outstanding() as i64 - ready as i64,
        };
        let expected = capacity(&books).clamp(0, PROBES);
        assert_eq!(probe(core), expected, "{:?} at {}", core.gauges(), world.bench.now);
    }
}

/// The largest staleness of the samples trained in each step.
fn worst_by_step(trained: &[Sample]) -> Vec<u32> {
    let mut worst: Vec<u32> = Vec::new();
    for sample in trained {
        let step = sample.learner(headway_shared::core::Stage::TrainStarted).number() as usize;
        worst.resize(worst.len().max(step + 1), 0);
        worst[step] = worst[step].max(sample.staleness_head());
    }
    worst
}

/// Batches filled by 8 results, of which a quarter is rejected; 40 steps at η = 2.
pub(crate) fn with_dynamic_batches(gate: GateKind) -> Vec<u32> {
    let mut config: Config = small();
    two_batches_ahead(&mut config);
    config.policy_training.max_lag_samples = 16;
    config.policy_training.gate = gate;
    config.policy_training.batch_size = 8;
    config.policy_training.batch_counts = BatchCounts::Results;
    config.policy_serving.max_concurrent_rollouts = 512;
    config.reward_judging.judge_concurrency = 512;
    config.reward_judging.zero_score = ZeroScore::Discard;
    let plan = Plan {
        clients: 256,
        zeros: 25,
        generate: Delay::fixed(10),
        train: Delay::fixed(600),
        inputs: 100_000,
        steps: 41,
        ..Plan::calm()
    };
    let mut world = World::new(config, plan);
    world.run();
    assert_eq!(world.bench.learner(), 41);
    worst_by_step(&world.bench.trained)
}

/// Mean seconds from admission to the end of the generation.
fn mean_generation(trained: &[Sample]) -> f64 {
    let seconds = |sample: &Sample| {
        sample.time(Stage::Generated).since(sample.time(Stage::Admitted)).as_secs_f64()
    };
    trained.iter().map(seconds).sum::<f64>() / trained.len() as f64
}

/// Generations of 1 to 60 seconds (30.5 on average), short steps; how long what is trained took.
fn trained_generation(gate: GateKind) -> f64 {
    let mut config = small();
    config.policy_training.gate = gate;
    config.policy_training.max_head_off_policyness = 1;
    config.policy_training.batch_size = 4;
    config.policy_serving.max_concurrent_rollouts = 24;
    let plan = Plan {
        clients: 24,
        zeros: 0,
        generate: Delay { least: 10, most: 600 },
        train: Delay::fixed(20),
        inputs: 20_000,
        steps: 60,
        ..Plan::calm()
    };
    let mut world = World::new(config, plan);
    world.run();
    assert_eq!(world.bench.learner(), 60, "{gate:?}: {}", world.bench.core.stall());
    mean_generation(&world.bench.trained)
}

#[test]
fn gates_that_discard_and_ask_again_starve_long_samples() {
    let fair = trained_generation(GateKind::Areal);
    assert!(fair > 27.0, "an aggregate bound trains what it admits: {fair} s");
    for gate in [GateKind::Roll, GateKind::PrimeRl, GateKind::NemoRlWindow] {
        let short = trained_generation(gate);
        assert!(short < 0.85 * fair, "{gate:?}: {short} s of {fair} s");
    }
}

#[test]
fn every_gate_makes_progress_and_says_so_when_it_blocks() {
    for &(word, gate) in GateKind::ALL {
        let mut config = small();
        config.policy_training.gate = gate;
        config.policy_serving.max_concurrent_rollouts = 16;
        let mut world = World::new(config, Plan { steps: 10, ..Plan::calm() });
        world.run();
        assert_eq!(world.bench.learner(), 10, "{word}: {}", world.bench.core.stall());
    }
}

#[test]
fn a_stall_names_the_gate_that_has_no_place() {
    let mut bench = gated_with(GateKind::Skyrl, |c| {
        c.policy_training.max_head_off_policyness = 0;
        c.policy_training.publish_interval = 2;
        c.policy_serving.over_limit = headway_shared::config::OverLimit::Hold;
        c.policy_serving.hold = secs(1000);
    });
    for session in 0..2 {
        let sample = bench.turn(session);
        bench.vote(sample, super::harness::GOOD);
    }
    bench.end_step(true);
    bench.request(5);
    let stall = bench.core.stall().to_string();
    assert_eq!(stall, "policy serving blocks: the gate `skyrl` has no place for 1 held requests");
}

/// What η = 2 is, in the keys of the others.
fn two_batches_ahead(config: &mut Config) {
    config.policy_training.async_generation_ratio = 2_000_000;
    config.policy_training.max_lag_samples = 4;
    config.policy_training.staleness_threshold = 2_000_000;
}

/// Gates that count: each of them begins as if it had been in force from the start.
const COUNTING: [GateKind; 4] =
    [GateKind::Skyrl, GateKind::Roll, GateKind::PipelineRl, GateKind::Verl];

#[test]
fn a_gate_that_takes_over_counts_what_is_there() {
    for gate in COUNTING {
        let mut bench = gated_with(GateKind::Headway, two_batches_ahead);
        bench.steps(3);
        bench.admit(0);
        bench.scored(1, super::harness::GOOD);
        bench.reconfigure(|c| c.policy_training.gate = gate);
        assert_eq!(room(&mut bench, 100), 4, "{gate:?}");
    }
}

#[test]
fn a_gate_that_is_switched_to_decides_from_now_on() {
    let mut bench = gated(GateKind::Headway);
    assert_eq!(room(&mut bench, 100), 6);
    bench.reconfigure(|c| c.policy_training.gate = GateKind::None);
    assert!(room(&mut bench, 200) > 6);
}

#[test]
fn a_gate_keeps_its_count_when_something_else_changes() {
    let mut bench = gated(GateKind::Areal);
    bench.scored(0, super::harness::GOOD);
    bench.scored(1, super::harness::GOOD);
    bench.reconfigure(|c| c.policy_serving.hold = secs(5));
    assert_eq!(room(&mut bench, 100), 4, "two of six are accepted");
}

#[test]
fn a_gate_s_own_key_takes_effect_in_the_middle_of_a_run() {
    for gate in [GateKind::Verl, GateKind::Roll, GateKind::PipelineRl] {
        let mut bench = gated_with(gate, two_batches_ahead);
        bench.admit(0);
        bench.reconfigure(|c| {
            c.policy_training.staleness_threshold = 3_000_000;
            c.policy_training.async_generation_ratio = 3_000_000;
            c.policy_training.max_lag_samples = 6;
        });
        assert_eq!(room(&mut bench, 100), 7, "{gate:?}: one of four batches is under way");
    }
}

#[test]
fn after_a_rollback_a_gate_has_the_room_it_had_at_first_and_no_burst() {
    for gate in COUNTING {
        let mut bench = gated_with(gate, two_batches_ahead);
        bench.steps(6);
        bench.admit(0);
        bench.scored(1, super::harness::GOOD);
        bench.restored(4);
        bench.publish();
        assert_eq!(room(&mut bench, 100), 6, "{gate:?}: both samples were lost");
    }
}

#[test]
fn a_step_that_fails_for_good_gives_its_places_back() {
    for gate in COUNTING {
        let mut bench = gated_with(gate, |c| {
            two_batches_ahead(c);
            c.policy_training.train_retries = 0;
        });
        bench.scored(0, super::harness::GOOD);
        bench.scored(1, super::harness::GOOD);
        bench.end_step(false);
        assert_eq!(room(&mut bench, 100), 6, "{gate:?}");
    }
}

#[test]
fn a_step_that_fails_for_good_gives_the_places_of_its_rejected_results_back() {
    for gate in COUNTING {
        let mut bench = gated_with(gate, |c| {
            two_batches_ahead(c);
            c.policy_training.train_retries = 0;
            c.policy_training.batch_counts = BatchCounts::Results;
        });
        bench.scored(0, super::harness::ZERO);
        bench.scored(1, super::harness::GOOD);
        bench.end_step(false);
        assert_eq!(room(&mut bench, 100), 6, "{gate:?}");
    }
}

#[test]
fn a_rejected_result_that_fills_a_batch_keeps_its_place() {
    for gate in COUNTING {
        let mut bench = gated_with(gate, |c| {
            two_batches_ahead(c);
            c.policy_training.batch_counts = BatchCounts::Results;
        });
        bench.scored(0, super::harness::ZERO);
        assert_eq!(room(&mut bench, 100), 5, "{gate:?}");
    }
}

/// One result fewer than a batch: it has to have a sample.
#[test]
fn rejected_results_beyond_a_batch_hold_no_places() {
    for gate in COUNTING {
        let mut bench = gated_with(gate, |c| {
            two_batches_ahead(c);
            c.policy_training.batch_counts = BatchCounts::Results;
        });
        for session in 0..20 {
            bench.scored(session, super::harness::ZERO);
        }
        assert_eq!(room(&mut bench, 100), 5, "{gate:?}");
    }
}

/// `batch_counts = "results"`: a rejected result keeps its place until its step.
#[test]
fn the_bound_does_not_loosen_with_rejected_results_that_fill_batches() {
    for gate in COUNTING {
        let worst = with_dynamic_batches(gate);
        let until = |step: usize| worst[..step].iter().copied().max().unwrap_or(0);
        assert!(until(40) <= until(10).max(3), "{gate:?}: {worst:?}");
    }
}

#[test]
fn a_snapshot_does_not_forget_what_is_outstanding() {
    for gate in [
        GateKind::Headway,
        GateKind::Areal,
        GateKind::Skyrl,
        GateKind::Roll,
        GateKind::PipelineRl,
        GateKind::Verl,
    ] {
        let mut bench = gated_with(gate, two_batches_ahead);
        bench.steps(5);
        for session in 0..4 {
            bench.admit(session);
        }
        let bytes = postcard::to_stdvec(&bench.core).expect("a scheduler can be written");
        bench.core = postcard::from_bytes(&bytes).expect("and read");
        assert_eq!(room(&mut bench, 100), 2);
    }
}

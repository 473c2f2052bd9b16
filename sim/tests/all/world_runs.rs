//! Whole runs: how they end, that they repeat, and what theory says about them.

use headway_shared::metrics::METRICS;
use headway_shared::record::Reader;
use headway_shared::replay::replay;
use headway_shared::time::Time;
use headway_sim::run::{Ended, RunFailure, RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;

use super::world_support::{SESSIONS, SLOTS, load};

fn run(scenario: &Scenario) -> RunResult {
    simulate(scenario, 0, RunOptions::default()).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    let scenario = load(SESSIONS, &[]);
    let (first, again) = (run(&scenario), run(&scenario));
    assert_eq!(first.digest, again.digest);
    assert_eq!(first.summary.values().count(), METRICS.len());
    for ((metric, value), (_, other)) in first.summary.values().zip(again.summary.values()) {
        assert_eq!(value, other, "{}", metric.name);
    }
    let replication = simulate(&scenario, 1, RunOptions::default()).unwrap();
    let seed = run(&load(SESSIONS, &["scenario.seed=2"]));
    assert!(first.digest != replication.digest && first.digest != seed.digest);
}

#[test]
fn the_record_of_a_run_replays_to_the_same_decisions() {
    for faults in ["", "world.faults.lost_completion_share=0.05"] {
        let set: &[&str] = if faults.is_empty() { &[] } else { &[faults] };
        let scenario = load(SESSIONS, set);
        let mut record = Vec::new();
        let options = RunOptions { record: Some(&mut record), ..RunOptions::default() };
        let result = simulate(&scenario, 0, options).unwrap();
        let reader = Reader::open(record.as_slice()).unwrap();
        let report = replay(reader).unwrap();
        assert_eq!(report.decisions.digest, result.digest);
        assert_eq!(report.decisions.inputs, result.inputs);
    }
}

#[test]
fn a_run_ends_after_its_steps_or_its_time_whichever_is_first() {
    let steps = run(&load(SLOTS, &[]));
    assert_eq!(steps.ended, Ended::Steps);
    let time = run(&load(SLOTS, &["scenario.duration_sec=100"]));
    assert_eq!((time.ended, time.end), (Ended::Duration, Time::from_secs(100)));
    let options = RunOptions { max_inputs: 50, ..RunOptions::default() };
    let capped = simulate(&load(SLOTS, &[]), 0, options).unwrap();
    assert_eq!((capped.ended, capped.inputs), (Ended::MaxInputs, 50));
}

#[test]
fn a_finite_source_ends_the_run_when_all_is_done() {
    let result = run(&load(SLOTS, &["world.clients.limit=42"]));
    assert_eq!(result.ended, Ended::Exhausted);
    let result = run(&load(SESSIONS, &["world.clients.limit=10"]));
    assert_eq!(result.ended, Ended::Exhausted);
}

#[test]
fn a_stall_names_the_loop_that_blocks() {
    let gone = "world.faults.at=[{ time_sec = 33, kind = \"replica_down\", replica = 0 }]";
    let result = run(&load(SLOTS, &[gone, "over_limit=\"hold\""]));
    let Ended::Stalled(stall) = result.ended else { panic!("{:?}", result.ended) };
    assert_eq!(stall.to_string(), "policy serving blocks: no replica holds whole weights");
}

#[test]
fn publications_that_always_fail_end_the_run_with_an_error_and_what_there_was() {
    let scenario = load(SLOTS, &["world.faults.failed_save_share=1", "publish_retries=2"]);
    let failure = simulate(&scenario, 0, RunOptions::default()).unwrap_err();
    assert!(failure.to_string().contains("publication failed 3 times in a row"), "{failure}");
    let RunFailure::Core { result, .. } = failure else { panic!("{failure}") };
    assert_eq!(result.summary.get("steps_per_hour").map(|steps| steps > 0.0), Some(true));
}

#[test]
fn synchronous_training_has_no_staleness_whatever_the_publication_takes() {
    let set = [
        "max_head_off_policyness=0",
        "world.weights.save={ kind = \"constant\", sec = 30 }",
        "world.weights.transfer={ kind = \"exponential\", mean_sec = 10 }",
        "sync_mode=\"in_flight\"",
    ];
    let result = run(&load(SESSIONS, &set));
    assert_eq!(result.summary.get("staleness_head_max"), Some(0.0));
    assert_eq!(result.summary.get("staleness_tail_mean"), Some(0.0));
}

#[test]
fn the_warm_up_is_no_part_of_the_metrics() {
    let warm = run(&load(SLOTS, &["scenario.warmup_steps=10"]));
    assert!(warm.warm);
    let duration = warm.summary.get("duration_seconds").unwrap();
    assert!(duration < warm.end.as_secs_f64() * 0.7, "{duration}");
    let cold = run(&load(SLOTS, &["scenario.warmup_sec=80000"]));
    assert!(!cold.warm);
}

#[test]
fn the_judge_bounds_the_run_as_its_warning_says() {
    let vote = "world.judge.vote={ kind = \"constant\", sec = 18 }";
    for eta in ["max_head_off_policyness=1", "max_head_off_policyness=8"] {
        let set = [
            vote,
            "votes=3",
            "judge_concurrency=4",
            "batch_size=16",
            eta,
            "world.judge.positive_share=0.5",
            "world.judge.negative_share=0.5",
            "world.judge.agreement=0",
            "scenario.warmup_steps=5",
            "scenario.steps=60",
            "reward_judging.aggregate=\"mean\"",
            "sync_mode=\"in_flight\"",
        ];
        let steps = run(&load(SLOTS, &set)).summary.get("steps_per_hour").unwrap();
        assert!((3600.0 / steps / 216.0 - 1.0).abs() < 0.02, "{eta}: {} s a batch", 3600.0 / steps);
    }
}

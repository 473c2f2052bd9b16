//! Groups in the simulated world: filtered, over-sampled, and left by their stragglers.

use headway_shared::core::Stall;
use headway_sim::run::{Ended, RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;
use headway_sim::stats::{mean, variance};

use super::world_support::{SESSIONS, SLOTS, load, problems};

/// Groups of 4, two of them a batch; as many slots as make serving the bottleneck.
fn grouped(more: &[&str]) -> Scenario {
    let base = [
        "group_size=4",
        "min_group_size=4",
        "batch_size=2",
        "over_limit=\"hold\"",
        "judge_concurrency=100",
        "world.clients.slots=16",
        "scenario.steps=600",
        "scenario.duration_sec=1e7",
    ];
    load(SLOTS, &[&base, more].concat())
}

fn run(scenario: &Scenario, replication: u32) -> RunResult {
    simulate(scenario, replication, RunOptions::default()).unwrap()
}

fn metric(result: &RunResult, name: &str) -> f64 {
    result.summary.get(name).unwrap()
}

/// A metric of some replications lies within four standard errors of its theory, which are small.
fn agrees(scenario: &Scenario, name: &str, theory: f64) {
    let values: Vec<f64> = (0..8).map(|index| metric(&run(scenario, index), name)).collect();
    let found = mean(&values).unwrap();
    let error = (variance(&values).unwrap() / values.len() as f64).sqrt();
    assert!((found - theory).abs() < 4.0 * error, "{name}: {found} ± {error}, theory {theory}");
    assert!(error < 0.03 * theory, "{name}: an error of {error} proves nothing");
}

const FILTER: &str = "filter=\"zero_variance\"";

/// The chance that each of four independent members has what one has with chance `p`.
fn all_of_four(p: f64) -> f64 {
    p * p * p * p
}

#[test]
fn independent_members_are_filtered_as_often_as_all_of_them_agree() {
    let p: f64 = 0.7;
    let theory = all_of_four(p) + all_of_four(1.0 - p);
    agrees(&grouped(&[FILTER, "world.judge.positive_share=0.7"]), "filtered_group_share", theory);
}

#[test]
fn prompts_that_all_solve_or_none_are_filtered_besides() {
    let set = [
        FILTER,
        "world.judge.positive_share=0.5",
        "world.judge.solved_share=0.3",
        "world.judge.hopeless_share=0.2",
    ];
    agrees(&grouped(&set), "filtered_group_share", 0.5 + 0.5 * 2.0 * all_of_four(0.5));
}

#[test]
fn the_filter_divides_the_pace_of_a_run_that_serving_limits() {
    let p: f64 = 0.7;
    let kept = 1.0 - all_of_four(p) - all_of_four(1.0 - p);
    let pace = |more: &[&str]| {
        // The trainer is never in the way, and weights are there at once.
        let more = [&["world.trainer.step.sec=0.001", "max_head_off_policyness=8"], more].concat();
        let scenario = grouped(&more);
        mean(&(0..8).map(|i| metric(&run(&scenario, i), "steps_per_hour")).collect::<Vec<_>>())
    };
    let all = pace(&["world.judge.positive_share=0.7"]).unwrap();
    let some = pace(&[FILTER, "world.judge.positive_share=0.7"]).unwrap();
    let ratio = some / all;
    assert!((ratio - kept).abs() < 0.02, "{ratio} of the steps, {kept} of the groups");
}

#[test]
fn a_prompt_is_as_hard_under_every_policy() {
    let filtered = |eta: &str| {
        let set = [
            FILTER,
            eta,
            "world.judge.solved_share=0.3",
            "world.judge.hopeless_share=0.2",
            "world.clients.limit=800",
        ];
        let result = run(&grouped(&set), 0);
        assert_eq!(result.ended, Ended::Exhausted);
        metric(&result, "filtered_group_share")
    };
    // All 200 prompts were generated and scored, in whatever order.
    assert_eq!(filtered("max_head_off_policyness=0"), filtered("max_head_off_policyness=4"));
}

#[test]
fn over_sampling_with_drop_shortens_steps_and_counts_what_it_wastes() {
    let tail = [
        "max_head_off_policyness=0",
        "batch_size=8",
        "world.clients.slots=64",
        "world.clients.output_tokens={ kind = \"lognormal\", median = 100, p99 = 1000 }",
        "surplus=\"drop\"",
    ];
    let plain = run(&grouped(&tail), 0);
    let over = run(&grouped(&[&tail[..], &["over_sampling=1.5"]].concat()), 0);
    let pace = |result| metric(result, "steps_per_hour");
    assert!(pace(&over) > 1.1 * pace(&plain), "{} and {}", pace(&plain), pace(&over));
    assert_eq!(metric(&plain, "discarded_surplus_share"), 0.0);
    let surplus = metric(&over, "discarded_surplus_share");
    // 12 groups are admitted for 8.
    assert!((surplus - 4.0 / 12.0).abs() < 0.02, "{surplus}");
    assert_eq!(metric(&over, "staleness_head_max"), 0.0);
    let length = |result| {
        let tokens = metric(result, "trained_tokens_per_second") * 3600.0;
        tokens / metric(result, "trained_samples_per_hour")
    };
    assert!(length(&over) < 0.95 * length(&plain), "the slowest are the longest");
}

#[test]
fn groups_that_leave_their_stragglers_are_trained_sooner() {
    let tail = [
        "min_group_size=3",
        // A drain would start the longest again for ever.
        "sync_mode=\"in_flight\"",
        "world.clients.output_tokens={ kind = \"lognormal\", median = 100, p99 = 1000 }",
    ];
    let waiting = run(&grouped(&tail), 0);
    let leaving = run(&grouped(&[&tail[..], &["straggler_wait_sec=5"]].concat()), 0);
    let pace = |result| metric(result, "steps_per_hour");
    assert!(pace(&leaving) > 1.1 * pace(&waiting), "{} and {}", pace(&waiting), pace(&leaving));
    assert!(metric(&leaving, "discarded_straggler_share") > 0.05);
    assert_eq!(metric(&waiting, "discarded_straggler_share"), 0.0);
}

#[test]
fn a_filter_that_rejects_everything_for_a_while_lets_progress_resume() {
    let fault = "world.faults.at=[{ time_sec = 500, kind = \"equal_scores\", lasting_sec = 2000 }]";
    let all = run(&grouped(&[FILTER, fault, "scenario.steps=100"]), 0);
    assert_eq!(all.ended, Ended::Steps);
    let calm = run(&grouped(&[FILTER, "scenario.steps=100"]), 0);
    let longer = all.end.since(calm.end).as_secs_f64();
    assert!((1900.0..2200.0).contains(&longer), "it takes {longer} s longer");
}

#[test]
fn a_run_whose_groups_are_all_filtered_names_the_filter() {
    let fault = "world.faults.at=[{ time_sec = 500, kind = \"equal_scores\", lasting_sec = 1e6 }]";
    let result = run(&grouped(&[FILTER, fault, "scenario.duration_sec=4000"]), 0);
    let silence = result.silence.unwrap();
    assert!(matches!(silence.end, Stall::Filter { groups } if groups > 100), "{silence}");
    let said = silence.to_string();
    assert!(said.contains("groups in a row had equal scores"), "{said}");
}

#[test]
fn each_turn_of_a_prompt_is_a_group_of_its_own() {
    let set = [
        "group_size=4",
        "min_group_size=4",
        "batch_size=2",
        "over_limit=\"hold\"",
        "judge_needs=\"turn\"",
        "scenario.steps=40",
        "world.clients.arrivals={ kind = \"users\", users = 16 }",
        "world.clients.turns={ kind = \"constant\", value = 2 }",
        "world.clients.think={ kind = \"exponential\", mean_sec = 3 }",
        "world.clients.side_share=0",
    ];
    let result = run(&load(SESSIONS, &set), 0);
    assert_eq!(result.ended, Ended::Steps);
    assert_eq!(result.trained, 40 * 2 * 4);
    assert_eq!(metric(&result, "discarded_share"), 0.0);
    let different = "world.clients.turns={ kind = \"uniform\", min = 1, max = 3 }";
    let refused = problems(SESSIONS, &[&set[..], &[different]].concat());
    assert!(refused.contains("the later groups lack members"), "{refused}");
}

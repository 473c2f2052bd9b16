//! Each trouble that users meet shows in its scenario, and its cure cures it.

use std::fs;

use headway_shared::action::RunError;
use headway_sim::run::{Ended, RunFailure, RunOptions, RunResult, simulate};

use super::world_support::{load_shipped, shipped};

fn run(name: &str) -> RunResult {
    let (scenario, _) = load_shipped(name);
    let result = simulate(&scenario, 0, RunOptions::default()).unwrap();
    assert_eq!(result.ended, Ended::Duration, "{name}");
    result
}

/// A metric; one of nothing counts as 0.
fn get(result: &RunResult, metric: &str) -> f64 {
    result.summary.get(metric).unwrap_or(0.0)
}

/// The lines of a shipped scenario that decide what it does.
fn lines(name: &str) -> Vec<String> {
    let text = fs::read_to_string(shipped(name)).unwrap();
    let (_, sections) = text.split_once("[policy_serving]").unwrap();
    sections.lines().map(str::to_owned).collect()
}

#[test]
fn a_cure_changes_the_keys_of_its_trouble_and_nothing_else() {
    let pairs: [(&str, &str, &[&str]); 6] = [
        (
            "trouble-503-never-ends",
            "trouble-503-never-ends-cured",
            &["pause_timeout_sec", "transfer_timeout_sec"],
        ),
        ("trouble-judge-times-out", "trouble-judge-times-out-cured", &["judge_concurrency"]),
        ("trouble-queue-full", "trouble-queue-full-cured", &["max_size"]),
        ("trouble-queue-full", "trouble-queue-full-cured-by-block", &["drop_policy"]),
        (
            "trouble-logprob-diff-climbs",
            "trouble-logprob-diff-climbs-cured",
            &["max_head_off_policyness", "stale_filter_steps"],
        ),
        (
            "trouble-silence-after-start",
            "trouble-silence-after-start-cured",
            &["failed_share", "vote"],
        ),
    ];
    for (trouble, cure, keys) in pairs {
        let (trouble, cure) = (lines(trouble), lines(cure));
        assert_eq!(trouble.len(), cure.len());
        let changed: Vec<&str> = trouble
            .iter()
            .zip(&cure)
            .filter(|(before, after)| before != after)
            .map(|(before, _)| before.split(" =").next().unwrap())
            .collect();
        assert_eq!(changed, keys);
    }
}

#[test]
fn what_can_be_seen_before_a_run_is_warned_about_and_no_cure_is() {
    let warnings = |name: &str| load_shipped(name).1.to_string();
    let limits = warnings("trouble-503-never-ends");
    assert!(limits.contains("is 30s, but a weight sync takes 62.13 s on average"), "{limits}");
    let votes = warnings("trouble-judge-times-out");
    assert!(votes.contains("votes will time out: 16 at once"), "{votes}");
    for cure in [
        "trouble-503-never-ends-cured",
        "trouble-judge-times-out-cured",
        "trouble-queue-full-cured",
        "trouble-queue-full-cured-by-block",
        "trouble-logprob-diff-climbs-cured",
        "trouble-silence-after-start-cured",
    ] {
        assert_eq!(warnings(cure), "", "{cure}");
    }
}

#[test]
fn limits_shorter_than_the_weight_sync_refuse_everything_and_train_nothing() {
    let trouble = run("trouble-503-never-ends");
    assert_eq!(get(&trouble, "trained_samples_per_hour"), 0.0);
    assert_eq!(get(&trouble, "publications_per_hour"), 0.0);
    assert!(get(&trouble, "failed_publications_per_hour") > 20.0);
    assert!(get(&trouble, "refused_share") > 0.99);
    assert!(get(&trouble, "closed_windows_per_hour") > 20.0);
    let cure = run("trouble-503-never-ends-cured");
    assert!(get(&cure, "trained_samples_per_hour") > 300.0);
    assert_eq!(get(&cure, "failed_publications_per_hour"), 0.0);
    assert!(get(&cure, "closed_seconds_max") < 240.0);
}

#[test]
fn a_503_that_would_never_end_ends_the_run_with_its_reason() {
    let (scenario, _) = load_shipped("trouble-503-never-ends");
    let (scenario, _) = scenario.with_set("publish_retries=5").unwrap();
    match simulate(&scenario, 0, RunOptions::default()) {
        Err(RunFailure::Core { error, .. }) => {
            assert_eq!(error, RunError::PublicationFailed { attempts: 6 });
        }
        other => panic!("it should fail, but: {other:?}"),
    }
}

#[test]
fn more_votes_at_once_than_the_endpoint_serves_time_out() {
    let trouble = run("trouble-judge-times-out");
    assert!(get(&trouble, "failed_vote_share") > 0.9);
    assert!(get(&trouble, "discarded_judge_failed_share") > 0.8);
    let cure = run("trouble-judge-times-out-cured");
    assert!(get(&cure, "failed_vote_share") < 0.05);
    assert!(get(&cure, "discarded_judge_failed_share") < 0.01);
    assert!(get(&cure, "trained_samples_per_hour") > 600.0);
}

#[test]
fn a_small_queue_that_rejects_refuses_and_both_cures_do_not() {
    let trouble = run("trouble-queue-full");
    assert!(get(&trouble, "refused_queue_full_share") > 0.5);
    for name in ["trouble-queue-full-cured", "trouble-queue-full-cured-by-block"] {
        let cure = run(name);
        assert_eq!(get(&cure, "refused_queue_full_share"), 0.0, "{name}");
        let (before, after) = ("trained_samples_per_hour", get(&cure, "trained_samples_per_hour"));
        assert!(after > 1.2 * get(&trouble, before), "{name}: {after}");
    }
}

#[test]
fn staleness_climbs_under_a_loose_bound_and_stays_under_a_tight_one() {
    let (scenario, _) = load_shipped("trouble-logprob-diff-climbs");
    let (early, _) = scenario.with_sets(&["scenario.duration_sec=7200".into()]).unwrap();
    let early = simulate(&early, 0, RunOptions::default()).unwrap();
    let trouble = run("trouble-logprob-diff-climbs");
    let cure = run("trouble-logprob-diff-climbs-cured");
    let mean = "staleness_head_mean";
    assert!(get(&trouble, mean) > 1.5 * get(&early, mean), "it does not climb");
    assert!(get(&trouble, "staleness_head_p99") > 20.0);
    assert!(get(&trouble, "age_seconds_p95") > 1200.0);
    assert!(get(&cure, "staleness_head_max") <= 4.0);
    assert!(get(&cure, "age_seconds_p95") < 300.0);
    let difference = |result: &RunResult, half: &str| {
        get(result, &format!("train_rollout_logprob_abs_diff_{half}"))
    };
    assert!(difference(&trouble, "newer") > 1.5 * difference(&trouble, "older"));
    assert!(difference(&trouble, "newer") > 0.15);
    assert!(difference(&cure, "newer") < 1.1 * difference(&cure, "older"));
    assert!(difference(&cure, "newer") < 0.1);
    let trained = "trained_samples_per_hour";
    assert!(get(&cure, trained) > 0.95 * get(&trouble, trained), "the cure costs throughput");
}

#[test]
fn without_a_key_for_the_judge_requests_are_served_and_nothing_trains() {
    let trouble = run("trouble-silence-after-start");
    assert_eq!(get(&trouble, "failed_vote_share"), 1.0);
    assert_eq!(get(&trouble, "trained_samples_per_hour"), 0.0);
    assert!(get(&trouble, "admitted_per_hour") > 100.0);
    let cure = run("trouble-silence-after-start-cured");
    assert!(get(&cure, "failed_vote_share") < 0.05);
    assert!(get(&cure, "trained_samples_per_hour") > 300.0);
}

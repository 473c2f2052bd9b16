//! What commands say, and what the shell is told.

use std::fs;

use crate::all::support::{files, run, small, stderr, succeed};

#[test]
fn the_table_begins_with_what_stands_idle_and_fits_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let table = succeed(dir.path(), &["sweep", small().to_str().unwrap()]);
    let heading: Vec<&str> = table.lines().take(2).collect();
    let first: Vec<&str> = heading[0].split_whitespace().take(3).collect();
    assert_eq!(first, ["serving", "judge", "trainer"]);
    assert!(heading[1].trim_start().starts_with('η'), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert_eq!(table.lines().count(), 2 + 1 + 2, "two lines of heading, a rule, two points");
}

#[test]
fn synchronous_training_has_no_staleness() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["sweep", small().to_str().unwrap(), "--format", "json"].map(str::to_owned);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let document: serde_json::Value = serde_json::from_str(&succeed(dir.path(), &args)).unwrap();
    let metric = |point: usize, name: &str| &document["points"][point]["metrics"][name]["mean"];
    assert_eq!(document["points"][0]["settings"]["policy_training.max_head_off_policyness"], 0);
    assert_eq!(*metric(0, "staleness_head_max"), 0);
    assert!(metric(1, "staleness_head_mean").as_f64() > Some(0.0));
}

#[test]
fn cases_can_be_swept_and_grids_have_a_row_for_each_combination() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let csv = succeed(
        dir.path(),
        &[
            "sweep",
            scenario.to_str().unwrap(),
            "--over",
            "cases",
            "--over",
            "judge_concurrency=6,12,24",
            "--replications",
            "1",
            "--format",
            "csv",
        ],
    );
    let points: Vec<String> =
        csv.lines().skip(1).map(|line| line.split(',').skip(1).take(2).collect()).collect();
    assert_eq!(points, ["ours6", "ours12", "ours24", "theirs6", "theirs12", "theirs24"]);
}

#[test]
fn a_later_sweep_leaves_no_plots_of_an_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let sweep = |over: &[&str]| {
        let args = ["sweep", scenario.to_str().unwrap(), "--replications", "1"];
        succeed(dir.path(), &[&args[..], over].concat());
        let plots = files(&dir.path().join("out/small")).into_keys();
        plots.filter(|name| name.starts_with("staleness") && name.ends_with(".svg")).collect()
    };
    let grid: Vec<String> =
        sweep(&["--over", "max_head_off_policyness=0,2", "--over", "judge_concurrency=6,24"]);
    assert_eq!(grid, ["staleness-judge_concurrency-24.svg", "staleness-judge_concurrency-6.svg"]);
    let line: Vec<String> = sweep(&["--over", "max_head_off_policyness=0,2"]);
    assert_eq!(line, ["staleness.svg"]);
}

#[test]
fn a_live_configuration_is_laid_over_a_scenario() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("config.toml"), "[policy_training]\nmax_head_off_policyness = 0\n")
        .unwrap();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    let csv = |more: &[&str]| {
        let args = ["simulate", scenario, "--format", "csv", "--config", "config.toml"];
        succeed(dir.path(), &[&args[..], more].concat())
    };
    let value = |csv: &str| {
        let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let (header, row) = (lines.next().unwrap(), lines.next().unwrap());
        let column = header.iter().position(|name| *name == "staleness_head_max").unwrap();
        row[column].to_owned()
    };
    assert_eq!(value(&csv(&[])), "0");
    assert_ne!(value(&csv(&["--set", "max_head_off_policyness=4"])), "0", "--set wins");
}

#[test]
fn a_comparison_says_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let table = succeed(
        dir.path(),
        &[
            "compare",
            scenario.to_str().unwrap(),
            "--set-b",
            "max_head_off_policyness=0",
            "--replications",
            "4",
        ],
    );
    let line = table.lines().find(|line| line.contains("trained_samples_per_hour")).unwrap();
    assert!(line.ends_with("differs"), "{table}");
    assert!(dir.path().join("out/small/compare/compare.csv").is_file());
}

#[test]
fn two_cases_can_be_compared() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    let compare = |change: &[&str]| {
        let args = ["compare", scenario, "--replications", "2", "--format", "csv"];
        succeed(dir.path(), &[&args[..], change].concat())
    };
    let cases = compare(&["--case-a", "ours", "--case-b", "theirs"]);
    assert_eq!(cases, compare(&["--set-a", "gate=headway", "--set-b", "gate=openclaw"]));
    let unknown = run(dir.path(), &["compare", scenario, "--case-b", "yours"]);
    assert_eq!(unknown.status.code(), Some(2));
    let said = stderr(&unknown);
    assert!(said.contains("no case `yours`\nhelp: its cases are ours, theirs"), "{said}");
}

#[test]
fn a_run_that_fails_is_named_with_the_command_that_repeats_it() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    let broken = "world.faults.failed_save_share=1";
    let output = run(dir.path(), &["sweep", scenario, "--set", broken]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("error: policy_training.max_head_off_policyness=0: replication 0"),
        "{said}"
    );
    assert!(said.contains("publication failed"), "{said}");
    assert!(dir.path().join("out/small/runs.csv").is_file(), "what there is was written");

    let repeat = said.lines().find_map(|line| line.strip_prefix("repeat it: headway ")).unwrap();
    let words: Vec<&str> = repeat.split(' ').collect();
    let again = run(dir.path(), &words);
    assert_eq!(again.status.code(), Some(1), "{repeat}: {}", stderr(&again));
}

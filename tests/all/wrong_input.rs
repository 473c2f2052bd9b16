//! Wrong input is refused with its place and its remedy, and exit code 2.

use std::fs;

use crate::all::support::{run, small, stderr};

/// Runs `args`, with `SMALL` standing for the small scenario; it must be refused, and say all of
/// `parts`.
fn refused(args: &[&str], parts: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let args: Vec<&str> = args
        .iter()
        .map(|arg| if *arg == "SMALL" { scenario.to_str().unwrap() } else { arg })
        .collect();
    let output = run(dir.path(), &args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?} wrote to stdout");
    assert!(!said.contains("panicked"), "{said}");
    for part in parts {
        assert!(said.contains(part), "{args:?} does not say {part:?}:\n{said}");
    }
    assert!(!dir.path().join("out").exists(), "{args:?} wrote files");
}

#[test]
fn what_is_swept_is_checked() {
    let over = |text: &str, parts: &[&str]| refused(&["sweep", "SMALL", "--over", text], parts);
    over("max_head_of_policyness=0", &["--over:1:1:", "did you mean `max_head_off_policyness`"]);
    over("max_head_off_policyness", &["says no values", "help: write KEY=VALUES"]);
    over("max_head_off_policyness=0,,1", &["--over:1:27:", "a value is missing", "help: "]);
    over("max_head_off_policyness=4..x", &["`4..x` is no range", "help: "]);
    over("max_head_off_policyness=2..1", &["is empty", "help: "]);
    over("max_head_off_policyness=many", &["max_head_off_policyness", "help: "]);
    over("batch_size=0..100000", &["more than 10000", "help: "]);
}

#[test]
fn what_is_set_is_checked() {
    let set = |text: &str, parts: &[&str]| refused(&["simulate", "SMALL", "--set", text], parts);
    set("batch_size", &["--set:1:1:", "is no assignment", "help: "]);
    set("batch_sise=4", &["--set:1:1:", "did you mean `batch_size`"]);
    set("batch_size=lots", &["--set:1:12:", "help: "]);
    set("scenario.steps=-1", &["--set:1:16:", "help: "]);
}

#[test]
fn a_scenario_says_where_it_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let text =
        fs::read_to_string(small()).unwrap().replace("batch_size = 16", "batch_size = \"16\"");
    let line = 1 + text.lines().position(|line| line.starts_with("batch_size")).unwrap();
    fs::write(dir.path().join("wrong.toml"), text).unwrap();
    let output = run(dir.path(), &["sweep", "wrong.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let place = format!("wrong.toml:{line}:14:");
    assert!(stderr(&output).contains(&place), "no {place}: {}", stderr(&output));
    assert!(stderr(&output).contains("help: "), "{}", stderr(&output));
}

#[test]
fn files_and_folders_are_checked() {
    refused(&["sweep", "nothing.toml"], &["nothing.toml", "cannot be read", "help: "]);
    refused(&["simulate", "SMALL", "--config", "none.toml"], &["none.toml", "help: "]);
    refused(&["plot", "nowhere"], &["nowhere holds no result", "help: "]);
    refused(&["replay", "nothing.record"], &["nothing.record", "help: "]);
    refused(&["sweep", "SMALL", "--out", "/proc/nowhere"], &["/proc/nowhere", "--out DIR"]);
}

#[test]
fn a_folder_with_a_broken_table_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("sweep.json"), "{}").unwrap();
    let output = run(dir.path(), &["plot", "."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("sweep.json"), "{}", stderr(&output));
}

#[test]
fn two_equal_sides_are_no_comparison() {
    refused(&["compare", "SMALL"], &["A and B are the same", "--set-b KEY=VALUE"]);
    refused(&["compare", "SMALL", "--replications", "1"], &["--replications"]);
}

#[test]
fn numbers_of_options_are_checked() {
    refused(&["sweep", "SMALL", "--replications", "0"], &["--replications"]);
    refused(&["sweep", "SMALL", "--seed", "many"], &["--seed"]);
    refused(&["sweep", "SMALL", "--jobs", "0"], &["--jobs", "1..=512"]);
    refused(&["sweep", "SMALL", "--jobs", "100000"], &["--jobs", "1..=512"]);
    refused(&["sweep", "SMALL", "--format", "xml"], &["--format", "table, json, csv"]);
}

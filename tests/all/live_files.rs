//! The files that users have, unchanged, over a scenario: what would my present settings do?

use std::fs;
use std::path::Path;

use crate::all::support::{live, run, small, stderr, succeed};

const FILES: [&str; 4] = ["--config", "config.toml", "--settings", "settings.json"];

/// A folder with both files.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["config.toml", "settings.json"] {
        fs::copy(live(name), dir.path().join(name)).unwrap();
    }
    dir
}

fn with_files<'a>(command: &'a str, scenario: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[command, scenario], &FILES[..], more].concat()
}

/// The settings of the users' files, said one by one.
const SAME: [&str; 6] = [
    "judge_concurrency=4",
    "judge_timeout_sec=30",
    "max_head_off_policyness=2",
    "stale_filter_steps=8",
    "pause_timeout_sec=120",
    "queue.max_size=512",
];

#[test]
fn both_files_decide_what_a_run_does() {
    let dir = folder();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    let csv = ["--format", "csv"];
    let laid_over = succeed(dir.path(), &with_files("simulate", scenario, &csv));
    let sets: Vec<&str> = SAME.iter().flat_map(|set| ["--set", set]).collect();
    let one_by_one = [&["simulate", scenario], &csv[..], &sets].concat();
    assert_eq!(laid_over, succeed(dir.path(), &one_by_one));
    assert_ne!(laid_over, succeed(dir.path(), &["simulate", scenario, "--format", "csv"]));
}

#[test]
fn the_capacity_of_present_settings_is_checked() {
    let dir = folder();
    let scenario = small();
    let args = with_files("simulate", scenario.to_str().unwrap(), &[]);
    let said = stderr(&run(dir.path(), &args));
    let warning = "config.toml:10:21: warning: the judge cannot keep up: with 4 votes at once, 3 \
                   votes a turn and 18 s a vote, it gives 800 votes or 267 turns an hour, so a \
                   batch of 16 takes 216 s whatever `max_head_off_policyness` is";
    assert!(said.contains(warning), "{said}");
}

#[test]
fn present_settings_can_be_swept_and_compared() {
    let dir = folder();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    let table = succeed(dir.path(), &with_files("sweep", scenario, &["--replications", "1"]));
    assert_eq!(table.lines().count(), 2 + 1 + 2, "{table}");
    let change = ["--replications", "2", "--set-b", "judge_concurrency=12"];
    let table = succeed(dir.path(), &with_files("compare", scenario, &change));
    assert!(table.contains("judge_idle_share"), "{table}");
}

#[test]
fn a_start_without_submission_is_a_warning() {
    let dir = folder();
    let path = dir.path().join("settings.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"submission_enabled\": true", "\"submission_enabled\": false"))
        .unwrap();
    let scenario = small();
    let output = run(dir.path(), &with_files("simulate", scenario.to_str().unwrap(), &[]));
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("settings.json:8:27: warning: `submission_enabled` is false"), "{said}");
}

#[test]
fn what_is_set_beats_both_files() {
    let dir = folder();
    let scenario = small();
    let set = ["--set", "weight_sync_pause=false"];
    succeed(dir.path(), &with_files("simulate", scenario.to_str().unwrap(), &set));
}

#[test]
fn the_command_that_repeats_a_run_names_both_files() {
    let dir = folder();
    let scenario = small();
    let fails = ["--set", "world.faults.failed_save_share=1"];
    let output = run(dir.path(), &with_files("simulate", scenario.to_str().unwrap(), &fails));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let repeat = said.lines().find_map(|line| line.strip_prefix("repeat it: headway ")).unwrap();
    assert!(repeat.contains("--config config.toml --config settings.json"), "{repeat}");
    let words: Vec<&str> = repeat.split(' ').collect();
    assert_eq!(run(Path::new(dir.path()), &words).status.code(), Some(1));
}

//! Runs in which nothing can happen any more, or nothing does.

use std::fs;
use std::path::PathBuf;

use crate::all::support::{run, small, stderr};

/// A closed loop: nobody comes from outside.
fn closed_loop(dir: &tempfile::TempDir, more: &str) -> PathBuf {
    let text = fs::read_to_string(small()).unwrap();
    let (before, after) = text.split_once("[world.clients]").unwrap();
    let (_, after) = after.split_once("[world.judge]").unwrap();
    let clients = "[world.clients]\nkind = \"slots\"\nslots = 64\nprompt_tokens = { kind = \
                   \"constant\", value = 100 }\noutput_tokens = { kind = \"constant\", value = 500 \
                   }\n";
    let text = format!("{before}{clients}{more}\n[world.judge]{after}")
        .replace("\"next_state\"", "\"turn\"")
        .replace("park_after_sec = 120", "");
    let path = dir.path().join("loop.toml");
    fs::write(&path, text).unwrap();
    path
}

const BOTH_GO: &str = "world.faults.at=[{time_sec=200,kind=\"replica_down\",replica=0},\
                       {time_sec=200,kind=\"replica_down\",replica=1}]";

#[test]
fn a_stalled_run_is_an_error_that_names_the_loop_and_repeats() {
    let dir = tempfile::tempdir().unwrap();
    closed_loop(&dir, "");
    // Requests are held, so that nobody tries again.
    let hold = ["--set", "max_concurrent_rollouts=64", "--set", "over_limit=hold"];
    let args = [&["simulate", "loop.toml"], &hold[..], &["--set", BOTH_GO]].concat();
    let output = run(dir.path(), &args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: replication 0 stalled at "), "{said}");
    assert!(said.contains("serving blocks: no replica holds whole weights"), "{said}");
    let hold = hold.join(" ");
    let repeat = format!("headway simulate loop.toml {hold} --set '{BOTH_GO}' --replication 0");
    assert!(said.contains(&format!("repeat it: {repeat}\n")), "{said}");
    let runs = fs::read_to_string(dir.path().join("out/small/simulate/runs.csv")).unwrap();
    assert!(runs.contains(",stalled,"), "what there is was written: {runs}");
}

#[test]
fn a_source_that_runs_dry_is_no_stall() {
    let dir = tempfile::tempdir().unwrap();
    closed_loop(&dir, "limit = 100");
    let output = run(dir.path(), &["simulate", "loop.toml", "--set", "warmup_steps=0"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("stalled"), "{said}");
    let runs = fs::read_to_string(dir.path().join("out/small/simulate/runs.csv")).unwrap();
    assert!(runs.contains(",exhausted,"), "{runs}");
}

#[test]
fn a_run_whose_replicas_are_gone_is_an_error_though_requests_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let set = BOTH_GO.replace("=200", "=1000");
    let output = run(dir.path(), &["simulate", scenario.to_str().unwrap(), "--set", &set]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: replication 0 trained nothing after "), "{said}");
    assert!(said.contains("serving blocks: no replica holds whole weights"), "{said}");
    assert!(said.contains("repeat it: headway simulate "), "{said}");
}

#[test]
fn a_gate_that_nobody_opens_again_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let pause = "world.faults.at=[{time_sec=1000,kind=\"operator_pause\"}]";
    let output = run(dir.path(), &["simulate", scenario.to_str().unwrap(), "--set", pause]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("warning: replication 0 trained nothing after "), "{said}");
    assert!(said.contains("an operator has paused it"), "{said}");
}

//! `headway doctor` through the real binary.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::all::support::{headway, live, stderr};

/// A port that is free, as far as can be known.
fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

fn doctor(folder: &Path, more: &[&str]) -> Output {
    let (config, settings) = (live("config.toml"), live("settings.json"));
    let files = ["doctor", "--config", config.to_str().unwrap(), "--settings"];
    headway(folder)
        .args(files)
        .arg(settings)
        .args(["--set", "policy_serving.host=127.0.0.1"])
        .args(more)
        .env_remove("HEADWAY_ADMIN_TOKEN")
        .output()
        .unwrap()
}

#[test]
fn with_a_rule_and_a_free_port_all_that_can_be_looked_at_passes() {
    let dir = tempfile::tempdir().unwrap();
    let port = format!("policy_serving.port={}", free_port());
    let rule = ["--set", "reward_judging.rule=exact", "--set", "judge_needs=turn"];
    let output = doctor(dir.path(), &[&rule[..], &["--set", &port, "--format", "json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results: Vec<&str> = found["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["result"].as_str().unwrap())
        .collect();
    assert_eq!(results, ["passed", "passed", "passed", "passed", "passed", "skipped", "skipped"]);
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "nothing is written");
}

#[test]
fn a_check_that_fails_is_shown_with_its_cure_and_exit_code_1() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = format!("policy_serving.port={}", taken.local_addr().unwrap().port());
    // Closed at once: no Headway answers there.
    std::thread::spawn(move || taken.incoming().for_each(drop));
    let output = doctor(dir.path(), &["--set", &port]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    for expected in ["both files agree", "judge's key", "FAILED", "export", "skipped"] {
        assert!(table.contains(expected), "{expected} is not in\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 120), "{table}");
}

#[test]
fn files_that_disagree_are_wrong_input() {
    let dir = tempfile::tempdir().unwrap();
    let settings = fs::read_to_string(live("settings.json")).unwrap();
    let wrong =
        settings.replace("\"pause_on_weight_sync\": true", "\"pause_on_weight_sync\": false");
    assert_ne!(wrong, settings);
    fs::write(dir.path().join("settings.json"), wrong).unwrap();
    let config = live("config.toml");
    let args = ["doctor", "--config", config.to_str().unwrap(), "--settings", "settings.json"];
    let output = headway(dir.path()).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("`pause_on_weight_sync` contradicts `weight_sync_pause`"), "{said}");
    assert!(output.stdout.is_empty());
}

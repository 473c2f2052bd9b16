//! `headway describe`: the tables of a configuration.

use std::fs;

use serde_json::Value;

use crate::all::blessed;
use crate::all::support::{live, run, small, stderr, succeed};

#[test]
fn the_users_files_are_described_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let (config, settings) = (live("config.toml"), live("settings.json"));
    let args = ["describe", config.to_str().unwrap(), "--config", settings.to_str().unwrap()];
    let markdown = succeed(dir.path(), &[&args[..], &["--format", "markdown"]].concat());
    blessed::check("tests/data/describe/live.md", &markdown);
    for said in [
        "judge-model at https://api.example.com/v1",
        "gate headway: η 2, aggregate",
        "512 samples",
        "headway-VERSION",
        "5 retries after 1 s, then twice as long each time",
        "what is older than 8 versions is discarded",
    ] {
        assert!(markdown.replace('`', "").contains(said), "{said:?} is not in\n{markdown}");
    }
    let table = succeed(dir.path(), &args);
    for said in ["The four loops", "rollout queue", "512 samples", "pi_deploy"] {
        assert!(table.contains(said), "{said:?} is not in\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn a_run_puts_in_what_was_measured_and_says_where_it_was_configured_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let small = small();
    let small = small.to_str().unwrap();
    succeed(dir.path(), &["simulate", small, "--record"]);
    let folder = "out/small/simulate";
    for run_of in [folder.to_owned(), format!("{folder}/run.record")] {
        let output = run(dir.path(), &["describe", small, "--run", &run_of, "--format", "json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stderr(&output), "");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let queues = document["queues"].as_array().unwrap();
        let measured = &queues[0]["measured"];
        assert_eq!(queues[0]["queue"], "rollout queue");
        assert!(measured["rollout_queue_max"].as_u64().unwrap() > 0, "{measured}");
        let staleness = &document["distributions"][0]["measured"]["staleness_head_mean"];
        assert!(staleness.as_f64().unwrap() > 0.0, "{staleness}");
    }
    let other = ["describe", small, "--run", folder, "--set", "queue.output.max_size=99"];
    let output = run(dir.path(), &other);
    assert!(output.status.success());
    let said = stderr(&output);
    assert!(said.contains("another configuration: queue.output.max_size"), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("measured"));
}

#[test]
fn what_cannot_be_described_says_why() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("config.toml"), "[queue]\nmax_sise = 5\n").unwrap();
    let output = run(dir.path(), &["describe", "config.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("config.toml:2:1: "), "{}", stderr(&output));
    assert!(stderr(&output).contains("did you mean `max_size`?"), "{}", stderr(&output));
    fs::write(dir.path().join("config.toml"), "").unwrap();
    let output = run(dir.path(), &["describe", "config.toml", "--run", "nowhere.db"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("help: "), "{}", stderr(&output));
}

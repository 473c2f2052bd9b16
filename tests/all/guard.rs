//! `headway guard`, through the real binary.

use std::fs;
use std::path::Path;

use crate::all::support::{run, small, stderr, succeed};

const TUNED: &str = "out/small/tune/tuned.toml";
const RECORD: &str = "out/small/simulate/run.record";
/// Long enough for a few windows.
const LONG: [&str; 4] = ["--set", "scenario.steps=1000", "--set", "scenario.duration_sec=30000"];

/// What the small scenario is held to, as it is.
fn tune(folder: &Path) {
    let scenario = small();
    let space = ["--space", "max_head_off_policyness=4", "--window-sec", "3000"];
    let bound = ["--subject-to", "staleness_head_p99<=5"];
    let args = [&["tune", scenario.to_str().unwrap()], &space[..], &bound, &LONG].concat();
    succeed(folder, &args);
}

fn record(folder: &Path, more: &[&str]) {
    let scenario = small();
    let args = ["simulate", scenario.to_str().unwrap(), "--record"];
    succeed(folder, &[&args[..], &LONG, more].concat());
}

#[test]
fn a_run_like_those_that_were_tuned_keeps_to_the_envelope_and_one_with_a_slow_judge_does_not() {
    let dir = tempfile::tempdir().unwrap();
    tune(dir.path());
    record(dir.path(), &[]);
    let said = succeed(dir.path(), &["guard", TUNED, RECORD]);
    assert!(said.contains("run.record: ") && said.ends_with("it kept to the envelope\n"), "{said}");

    let slow = "world.faults.at=[{ time_sec = 9000, kind = \"judge_slow\", lasting_sec = 1e6, \
                factor = 5 }]";
    record(dir.path(), &["--set", slow]);
    let output = run(dir.path(), &["guard", TUNED, RECORD]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("it left the envelope once, at "), "{said}");
    assert!(said.lines().any(|line| line.starts_with(" part_seconds_judging ")), "{said}");
    assert!(said.contains("part_seconds_judging is "), "{said}");

    let csv = run(dir.path(), &["guard", TUNED, RECORD, "--format", "csv"]).stdout;
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.starts_with("metric,low,high,whole_run,inside,"), "{csv}");
    let json = run(dir.path(), &["guard", TUNED, RECORD, "--format", "json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&json["deviations"], &json["run"]), (&1.into(), &"run.record".into()));
    // Who has all the patience of the world sees no deviation.
    succeed(dir.path(), &["guard", TUNED, RECORD, "--patience", "1000"]);
}

#[test]
fn what_cannot_be_held_to_anything_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), &[]);
    let wrong = |file: &str, text: &str| {
        fs::write(dir.path().join(file), text).unwrap();
        let output = run(dir.path(), &["guard", file, RECORD]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let none = wrong("config.toml", "[policy_training]\nbatch_size = 4\n");
    assert!(none.contains("it has neither [tuned] nor [guard]"), "{none}");
    let upside = "[guard]\nwindow_sec = 600\nenvelope = { staleness_head_mean = [2, 1] }\n";
    let upside = wrong("config.toml", upside);
    assert!(upside.contains("config.toml:3:") && upside.contains("upside down"), "{upside}");
    let long = "[guard]\nwindow_sec = 1e8\nenvelope = { staleness_head_mean = [1, 2] }\n";
    let long = wrong("config.toml", long);
    assert!(long.contains("name a longer run, or an envelope with a smaller"), "{long}");
}

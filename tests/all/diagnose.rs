//! `headway diagnose` through the real binary.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::all::blessed::root;
use crate::all::support::{run, small, stderr, succeed};

fn scenario(name: &str) -> String {
    root().join(format!("scenarios/{name}.toml")).to_str().unwrap().to_owned()
}

/// Simulates a scenario for a while, with a record.
fn simulate(dir: &Path, scenario: &str, set: &[&str]) {
    let mut args = vec!["simulate", scenario, "--record", "--out", "out"];
    set.iter().for_each(|set| args.extend(["--set", set]));
    succeed(dir, &args);
}

#[test]
fn a_cause_is_named_with_its_numbers_and_the_settings_and_ends_with_1() {
    let dir = tempfile::tempdir().unwrap();
    let floor = scenario("drift-floor");
    let set = ["world.drift.padded_share=0.1", "scenario.steps=60"];
    simulate(dir.path(), &floor, &set);
    let output = run(dir.path(), &["diagnose", "out"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("\nFOUND ratios: labels, "), "{said}");
    assert!(said.contains("predicted, uncalibrated; "), "{said}");
    assert!(said.contains("    padding: log-probabilities of generated tokens alone"), "{said}");
    assert!(said.contains(" to ") && said.contains("####"), "the record has the waits: {said}");

    let output = run(dir.path(), &["diagnose", "out", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["healthy"], false);
    assert_eq!(document["causes"][0]["cause"], "labels");
    assert_eq!(document["causes"].as_array().unwrap().len(), 1);
    assert_eq!(document["ratios"]["predicted"], "uncalibrated");
    let bars = document["age_seconds"]["histogram"].as_array().unwrap();
    assert!(bars.len() > 1 && bars.len() <= 12);
    let versions: Vec<f64> = document["parts"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|p| p["versions"].as_f64())
        .collect();
    assert_eq!(versions.len(), 7);
    assert!(versions.is_sorted_by(|before, after| before >= after), "{versions:?}");
    let head = document["staleness"]["head_mean"].as_f64().unwrap();
    assert!((versions.iter().sum::<f64>() - head).abs() < 1e-3 * head, "the parts add up");
}

#[test]
fn a_healthy_run_ends_with_0_from_its_record_and_from_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    simulate(dir.path(), small().to_str().unwrap(), &[]);
    for what in ["out", "out/run.record"] {
        let said = succeed(dir.path(), &["diagnose", what]);
        assert!(said.ends_with("\nno cause found: nothing is wrong\n"), "{what}: {said}");
        assert!(said.contains("staleness, by part"), "{said}");
    }
    // A folder that holds nothing but a record is that of the record.
    fs::create_dir(dir.path().join("alone")).unwrap();
    fs::copy(dir.path().join("out/run.record"), dir.path().join("alone/run.record")).unwrap();
    let of = |what: &str| succeed(dir.path(), &["diagnose", what, "--format", "json"]);
    assert_eq!(of("alone"), of("out/run.record"));
}

#[test]
fn what_is_no_run_ends_with_2_and_says_what_to_name() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    fs::write(dir.path().join("text"), "no record").unwrap();
    succeed(dir.path(), &["sweep", small().to_str().unwrap(), "--out", "swept"]);
    let cases = [
        ("empty", "empty holds no result: there is no sweep.json and no run.json in it"),
        ("text", "text: "),
        ("missing", "missing: cannot be read: "),
        ("swept", "swept: it holds a sweep, whose points are different runs"),
    ];
    for (what, message) in cases {
        let output = run(dir.path(), &["diagnose", what]);
        assert_eq!(output.status.code(), Some(2), "{what}");
        let said = stderr(&output);
        assert!(said.starts_with(message) && said.contains("\nhelp: "), "{said}");
    }
}

//! `headway init`: what it writes loads without a warning, and runs.

use std::fs;
use std::path::Path;

use headway_shared::config::{Layers, load_live};

use crate::all::support::{files, live, run, stderr, succeed};

/// What `init` wrote into `new` loads, and a short run of it trains.
fn works(dir: &Path, args: &[&str]) {
    let text = |name: &str| fs::read_to_string(dir.join("new").join(name)).unwrap();
    let layers = Layers::new()
        .toml("config.toml", text("config.toml"))
        .json("settings.json", text("settings.json"));
    let live = load_live(&layers).unwrap_or_else(|error| panic!("{args:?}: {error}"));
    assert!(live.warnings.is_empty(), "{args:?}: {}", live.warnings);
    runs(dir, "new/scenario.toml", args);
    // The scenario and the configuration say the same.
    let with = ["--config", "new/config.toml", "--settings", "new/settings.json"];
    let described = |more: &[&str]| {
        succeed(dir, &[&["describe", "new/scenario.toml", "--format", "json"], more].concat())
    };
    assert_eq!(described(&[]), described(&with), "{args:?}");
}

fn runs(dir: &Path, scenario: &str, args: &[&str]) {
    let short = ["--set", "scenario.steps=6", "--set", "scenario.warmup_steps=0"];
    let output =
        run(dir, &[&["--quiet", "simulate", scenario, "--format", "csv"], &short[..]].concat());
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    assert_eq!(stderr(&output), "", "{args:?}");
}

#[test]
fn what_is_written_loads_without_a_warning_and_runs() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &[][..],
        &["--kind", "tasks"],
        &["--kind", "tasks", "--rule", "exact", "--engine", "tch", "--eta", "0"],
        &["--kind", "agents", "--rule", "exact", "--batch-size", "64", "--eta", "8"],
        &["--kind", "agents", "--group-size", "4", "--batch-size", "2"],
        &["--judge-url", "https://judge.example", "--judge-model", "m", "--judge-key-env", "KEY"],
        &["--kind", "tasks", "--engine-url", "http://a:1", "--engine-url", "http://b:2"],
    ] {
        succeed(dir.path(), &[&["init", "new", "--force"], args].concat());
        works(dir.path(), args);
    }
}

#[test]
fn the_scenario_of_a_configuration_that_is_there_has_its_settings() {
    let dir = tempfile::tempdir().unwrap();
    let config = live("config.toml");
    succeed(dir.path(), &["init", "new", "--from", config.to_str().unwrap(), "--name", "mine"]);
    let written = files(&dir.path().join("new"));
    assert_eq!(written.keys().collect::<Vec<_>>(), ["scenario.schema.json", "scenario.toml"]);
    runs(dir.path(), "new/scenario.toml", &["--from"]);
    assert!(dir.path().join("out/mine/simulate/run.json").exists());
    let table = |config: &str| succeed(dir.path(), &["describe", config, "--format", "json"]);
    let queues =
        |text: String| serde_json::from_str::<serde_json::Value>(&text).unwrap()["queues"].clone();
    assert_eq!(queues(table("new/scenario.toml")), queues(table(config.to_str().unwrap())));
    // A configuration of another kind: groups of trajectories, under another gate.
    let other = "[reward_judging]\njudge_needs = \"turn\"\n[policy_training]\nsample_unit = \"session\"\n\
                 group_size = 4\nbatch_size = 8\nbound = \"strict\"\n";
    fs::write(dir.path().join("other.toml"), other).unwrap();
    succeed(dir.path(), &["init", "other", "--from", "other.toml"]);
    runs(dir.path(), "other/scenario.toml", &["--from other.toml"]);
}

#[test]
fn nothing_is_replaced_unless_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("settings.json"), "mine").unwrap();
    let output = run(dir.path(), &["init"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("settings.json: is there already") && said.contains("--force"), "{said}");
    assert_eq!(files(dir.path()).len(), 1, "nothing half written");
    succeed(dir.path(), &["init", "--force"]);
    assert!(fs::read_to_string(dir.path().join("settings.json")).unwrap().contains("api_key_env"));
    let output = run(dir.path(), &["init", "other", "--name", "My Run"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("small letters, digits and dashes"), "{}", stderr(&output));
    let output = run(dir.path(), &["init", "other", "--rule", "exactly("]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(!dir.path().join("other").exists());
}

//! `headway tune`, through the real binary.

use std::path::Path;

use headway_shared::config::tuned::Tuned;

use crate::all::support::{files, run, small, stderr, succeed};

/// Tunes the small scenario over three values of η.
fn tune(folder: &Path, more: &[&str]) -> std::process::Output {
    let scenario = small();
    let args = ["tune", scenario.to_str().unwrap(), "--space", "max_head_off_policyness=0,2,4"];
    run(folder, &[&args[..], more].concat())
}

#[test]
fn tuning_writes_what_promotion_reads_and_its_plot_can_be_drawn_again() {
    let dir = tempfile::tempdir().unwrap();
    let bound = ["--subject-to", "staleness_head_p99<=5", "--set", "judge_concurrency=20"];
    let output = tune(dir.path(), &bound);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    let is_marked = |line: &str| line.ends_with(" >") || line.ends_with(" > as it is");
    assert!(table.lines().any(is_marked), "{table}");
    assert!(table.contains("\ntake "), "{table}");
    let last = table.lines().last().unwrap();
    assert!(last.contains(" of 3 combinations in ") && last.contains("grid's 24"), "{last}");

    let written = files(&dir.path().join("out/small/tune"));
    for name in ["candidates.csv", "front.csv", "tune.json", "front.svg", "front.png"] {
        assert!(written.contains_key(name), "{name}");
    }
    let text = String::from_utf8(written["tuned.toml"].clone()).unwrap();
    let (tuned, warnings) = Tuned::load("tuned.toml", &text).unwrap();
    assert!(warnings.is_empty(), "{warnings}");
    assert_eq!(tuned.provenance.overrides, ["--set judge_concurrency=20"]);
    assert_eq!(tuned.provenance.scenario_file, small().to_str().unwrap());
    assert_eq!(tuned.config.reward_judging.judge_concurrency, 20);
    assert!(text.contains("\nmax_head_off_policyness = "), "{text}");

    succeed(dir.path(), &["plot", "out/small/tune", "--out", "again"]);
    let again = files(&dir.path().join("again"));
    assert!(again.contains_key("report.html"));
    for (name, bytes) in again {
        assert!(bytes == written[&name], "{name} differs");
    }
}

#[test]
fn where_nothing_keeps_the_constraints_the_answer_is_no_and_an_old_tuned_file_goes() {
    let dir = tempfile::tempdir().unwrap();
    assert!(tune(dir.path(), &["--subject-to", "staleness_head_p99<=5"]).status.success());
    let tuned = dir.path().join("out/small/tune/tuned.toml");
    assert!(tuned.exists());
    let hard = ["--subject-to", "staleness_head_p99<=5", "--subject-to", "steps_per_hour>=1e6"];
    let output = tune(dir.path(), &hard);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("the nearest is steps_per_hour >= 1000000: it is "), "{said}");
    assert!(!tuned.exists());
}

#[test]
fn wrong_input_of_a_tuning_is_refused_with_its_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |more: &[&str], parts: &[&str]| {
        let output = tune(dir.path(), more);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {said}");
        parts.iter().for_each(|part| assert!(said.contains(part), "no {part:?}: {said}"));
        assert!(!dir.path().join("out").exists(), "{more:?} wrote files");
    };
    refused(&[], &["grows for ever", "add --subject-to 'staleness_head_p99<=4'"]);
    let bound = ["--subject-to", "staleness_head_p99<=5"];
    let with = |more: &[&'static str]| [&bound[..], more].concat();
    refused(&with(&["--space", "world.serving.replicas=1,2"]), &["--space:1:1: ", "scheduling"]);
    refused(&with(&["--maximize", "trained_sample_per_hour"]), &["did you mean"]);
    refused(&with(&["--window-sec", "1000000"]), &["shorter --window-sec"]);
}

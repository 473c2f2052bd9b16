//! `headway plan`, through the real binary.

use crate::all::support::{files, run, small, stderr, succeed};

/// Plans the small scenario on 4 GPUs.
fn plan(folder: &std::path::Path, more: &[&str]) -> std::process::Output {
    let scenario = small();
    let args = ["plan", scenario.to_str().unwrap(), "--gpus", "4"];
    run(folder, &[&args[..], more].concat())
}

#[test]
fn a_plan_ends_with_what_to_take_and_its_plots_can_be_drawn_again() {
    let dir = tempfile::tempdir().unwrap();
    let output = plan(dir.path(), &["--over", "max_head_off_policyness=0,4"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    let [.., take, bottleneck, more] = lines.as_slice() else { panic!("{table}") };
    assert!(take.starts_with("take ") && take.contains("GPU-hours per 1,000 samples"), "{take}");
    assert!(bottleneck.starts_with("bottleneck: "), "{bottleneck}");
    assert!(more.starts_with("one more GPU: "), "{more}");
    let rows = lines.iter().skip_while(|line| !line.starts_with('─'));
    let rows = rows.take_while(|line| !line.is_empty());
    assert!(rows.clone().all(|line| line.chars().count() <= 100), "{table}");
    assert_eq!(rows.count(), 1 + 3 * 2 + 1, "a rule, three splits at two bounds, one shared");

    let written = files(&dir.path().join("out/small/plan-4"));
    for name in ["plan.csv", "marginal.csv", "runs.csv", "plan.json", "front.svg", "idle.png"] {
        assert!(written.contains_key(name), "{name}");
    }
    succeed(dir.path(), &["plot", "out/small/plan-4", "--out", "again"]);
    let again = files(&dir.path().join("again"));
    assert!(again.contains_key("report.html"));
    for (name, bytes) in again {
        assert!(bytes == written[&name], "{name} differs");
    }
}

#[test]
fn a_constraint_that_nothing_keeps_is_the_answer_no() {
    let dir = tempfile::tempdir().unwrap();
    let output = plan(dir.path(), &["--constraint", "trained_samples_per_hour >= 1e6"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("breaks trained_samples_per_hour >= 1000000: it is "), "{said}");
    assert!(said.contains("no split keeps every constraint"), "{said}");
}

#[test]
fn wrong_input_of_a_plan_is_refused_with_its_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |more: &[&str], parts: &[&str]| {
        let output = plan(dir.path(), more);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {said}");
        parts.iter().for_each(|part| assert!(said.contains(part), "no {part:?}: {said}"));
        assert!(!dir.path().join("out").exists(), "{more:?} wrote files");
    };
    let constraint = ["--constraint", "stalenes_head_p99 <= 4"];
    refused(&constraint, &["--constraint:1:1: ", "did you mean `staleness_head_p99`?"]);
    let big = ["--set", "plan.min_trainer_gpus=8", "--set", "world.serving.gpus_per_replica=4"];
    refused(&big, &["4 GPUs cannot be split: the smallest plan takes 8 GPUs", "--gpus 8"]);
    let fixed = ["--set", "world.trainer={ step = { kind = \"constant\", sec = 5 } }"];
    refused(&fixed, &["help: "]);
    refused(&["--over", "max_head_off_policyness=4..x"], &["is no range"]);
    refused(&["--replications", "1"], &["--replications"]);
}

//! `headway import` writes a whole table or none, and says where a trace is wrong.

use std::fs;
use std::path::Path;

use crate::all::blessed::{self, root};
use crate::all::support::{files, run, small, stderr, succeed};

const TRACE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
                     2023-11-16 18:15:46.6805900,374,44\r\n\
                     2023-11-16 18:15:50.9951690,396,109";
const TABLE: &str = "arrival_sec,prompt_tokens,output_tokens\n0,374,44\n4.314579,396,109\n";

#[test]
fn the_table_goes_to_stdout_or_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("azure.csv"), TRACE).unwrap();
    assert_eq!(succeed(dir.path(), &["import", "azure-llm", "azure.csv"]), TABLE);
    let out = ["import", "azure-llm", "azure.csv", "--out", "new/trace.csv"];
    assert_eq!(succeed(dir.path(), &out), "");
    let written = files(&dir.path().join("new"));
    assert_eq!(written.into_iter().collect::<Vec<_>>(), [("trace.csv".into(), TABLE.into())]);
}

#[test]
fn a_broken_trace_leaves_the_old_table_and_is_named_by_line() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("azure.csv"), format!("{TRACE}\n2023-11-16,1,2\n")).unwrap();
    fs::write(dir.path().join("trace.csv"), "old").unwrap();
    let before = files(dir.path());
    let output = run(dir.path(), &["import", "azure-llm", "azure.csv", "--out", "trace.csv"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("azure.csv:4:1: `2023-11-16` is no time"), "{said}");
    assert!(said.contains("help: write it as 2023-11-16 18:15:46"), "{said}");
    assert_eq!(files(dir.path()), before);
}

#[test]
fn files_that_cannot_be_read_or_written_are_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("azure.csv"), TRACE).unwrap();
    let refused = |args: &[&str], parts: &[&str]| {
        let output = run(dir.path(), &[&["import", "azure-llm"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = stderr(&output);
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    };
    refused(&["none.csv"], &["none.csv", "cannot be read", "help: "]);
    refused(&["."], &["cannot be read", "help: "]);
    refused(&["azure.csv", "--out", "azure.csv/t.csv"], &["azure.csv/t.csv", "--out FILE"]);
    refused(&["azure.csv", "--out", "new/.."], &["names no file", "help: "]);
}

/// What `aiconfigurator cli estimate` printed for batches of 1, 64, 128 and 256.
const PRINTED: &str = include_str!("../data/aiconfigurator/qwen3-8b-h100-vllm.txt");

#[test]
fn predicted_rates_become_a_table_that_a_scenario_takes() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("printed.txt"), PRINTED).unwrap();
    let args = ["import", "aiconfigurator", "printed.txt", "--source", "May", "--out", "rates.csv"];
    let output = run(dir.path(), &args);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("3 batch sizes up to 128 of Qwen/Qwen3-8B"), "{said}");
    assert!(said.contains("do not fit: 256") && said.contains("wrote rates.csv"), "{said}");
    let table = fs::read_to_string(dir.path().join("rates.csv")).unwrap();
    assert!(table.contains("128,0.022409,5711.99,,May\n"), "{table}");
    assert_eq!(succeed(dir.path(), &args[..5]), table);

    let small = fs::read_to_string(small()).unwrap();
    fs::write(dir.path().join("small.toml"), small).unwrap();
    let simulate = |serving: &str| {
        succeed(dir.path(), &["simulate", "small.toml", "--set", serving, "--format", "json"])
    };
    let file = simulate("world.serving.decode_table=rates.csv");
    assert_ne!(file, simulate("world.serving.decode_rates=qwen3-8b-h200-vllm-tp1"));
}

#[test]
fn what_is_no_prediction_is_named_by_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("one.txt"), PRINTED).unwrap();
    let other = PRINTED.replace("14.861 ms", "soon");
    fs::write(dir.path().join("two.txt"), &other).unwrap();
    let line = 1 + other.lines().position(|line| line.contains("soon")).unwrap();
    let output = run(dir.path(), &["import", "aiconfigurator", "two.txt", "one.txt"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains(&format!("two.txt:{line}:21: `soon` is no time (`TPOT`)")), "{said}");
    assert!(said.contains("help: write it as 10.631 ms"), "{said}");
    assert!(output.stdout.is_empty());
}

/// Puts the files that ship as examples into a folder, and the scenarios.
fn examples(to: &Path) {
    let from = root().join("tests/data/import");
    for (name, bytes) in files(&from) {
        fs::write(to.join(name), bytes).unwrap();
    }
    let scenario = "scenarios/trace-replay.toml";
    fs::create_dir(to.join("scenarios")).unwrap();
    fs::copy(root().join(scenario), to.join(scenario)).unwrap();
}

#[test]
fn the_examples_of_the_page_run_as_they_are_pasted() {
    let dir = tempfile::tempdir().unwrap();
    examples(dir.path());
    let page = blessed::text("docs/import.md");
    let commands: Vec<Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("headway "))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert!(commands.len() > 12, "{commands:?}");
    for args in &commands {
        let written = succeed(dir.path(), args);
        assert!(args[0] != "sweep" || written.contains("trained"), "{written}");
    }
    for format in ["verl", "slime", "areal", "mooncake", "openclaw"] {
        assert!(commands.iter().any(|args| args.starts_with(&["import", format])), "{format}");
    }
}

#[test]
fn what_a_log_has_in_no_column_is_said_by_name() {
    let dir = tempfile::tempdir().unwrap();
    examples(dir.path());
    let output = run(dir.path(), &["import", "verl", "verl.jsonl", "--out", "steps.csv"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("4 steps with rollout_sec, step_sec"), "{said}");
    assert!(said.contains("left out: checkpoint_sec, in 1 of 4 steps"), "{said}");
    assert!(said.contains("in no column: actor/ppo_kl, critic/rewards/mean"), "{said}");
    let output = run(dir.path(), &["import", "slime", "slime.log", "--columns", "speed"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("slime has no such column") && said.contains("step_sec"), "{said}");
    fs::write(dir.path().join("bad.csv"), "step,timing_s/gen\n1,2\n2,soon\n").unwrap();
    let output = run(dir.path(), &["import", "verl", "bad.csv", "--out", "steps.csv"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("bad.csv:3:3: `soon` is no number"), "{said}");
    assert!(said.contains("help: write a number, or nothing"), "{said}");
}

/// The page's table of metrics is the one that is read.
#[test]
fn every_metric_that_is_read_is_on_the_page() {
    use headway_sim::import::System;
    let page = blessed::text("docs/import.md");
    for system in [System::Verl, System::Slime, System::Areal] {
        for column in system.columns() {
            assert!(page.contains(&format!("`{}`", column.name)), "{}", column.name);
            for metric in column.how.names() {
                let (_, end) = metric.rsplit_once('/').unwrap();
                assert!(page.contains(&format!("{end}`")), "{metric}");
            }
        }
    }
}

//! `headway calibrate` writes a scenario that runs, and says what is wrong with what it is given.

use std::fs;
use std::path::Path;

use crate::all::support::{files, run, small, stderr, succeed};

/// A recorded run in `folder`.
fn record(folder: &Path) {
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    succeed(folder, &["simulate", scenario, "--record", "--out", "run"]);
}

#[test]
fn a_recorded_run_becomes_a_scenario_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path());
    let out = ["calibrate", "run/run.record", "--out", "fit/again.toml"];
    let table = succeed(dir.path(), &out);
    assert!(table.contains("vote of the judge") && table.contains("90% interval"), "{table}");
    let text = fs::read_to_string(dir.path().join("fit/again.toml")).unwrap();
    assert!(text.contains("name = \"run-calibrated\""), "{text}");
    assert!(text.contains("from = \"run.record\""), "{text}");
    succeed(dir.path(), &["simulate", "fit/again.toml"]);
    // The same bytes again.
    let before = files(&dir.path().join("fit"));
    succeed(dir.path(), &out);
    assert_eq!(files(&dir.path().join("fit")), before);
}

#[test]
fn the_numbers_can_be_had_as_json_and_csv() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path());
    let json = succeed(dir.path(), &["calibrate", "run/run.record", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let fitted = document["fitted"].as_array().unwrap();
    let vote = fitted.iter().find(|item| item["what"] == "vote of the judge").unwrap();
    assert_eq!(vote["table"], "world.judge");
    assert!(vote["count"].as_u64() > Some(10), "{vote}");
    assert!(document["notes"].as_array().is_some_and(|notes| !notes.is_empty()));
    let csv = succeed(dir.path(), &["calibrate", "run/run.record", "--format", "csv"]);
    let header =
        "what,key,law,parameter,value,low,high,count,cut,mean,distance,p_value,r_squared\n";
    assert!(csv.starts_with(header), "{csv}");
}

#[test]
fn columns_stand_for_what_the_record_says() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path());
    fs::write(dir.path().join("log.csv"), "secs\n7\n7\n7\n7\n7\n7\n").unwrap();
    let args =
        ["calibrate", "run/run.record", "--latency", "judge=log.csv:secs", "--out", "a.toml"];
    succeed(dir.path(), &args);
    let text = fs::read_to_string(dir.path().join("a.toml")).unwrap();
    assert!(text.contains("vote = { kind = \"constant\", sec = 7 }"), "{text}");
    assert!(text.contains("vote of the judge fitted to log.csv:secs"), "{text}");
}

#[test]
fn what_is_wrong_is_said_with_its_remedy() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path());
    let bytes = fs::read(dir.path().join("run/run.record")).unwrap();
    let mut other = bytes.clone();
    // The decision version is the header's first number.
    other[14] += 1;
    fs::write(dir.path().join("other.record"), other).unwrap();
    fs::write(dir.path().join("cut.record"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(dir.path().join("text.record"), "nothing").unwrap();
    fs::write(dir.path().join("log.csv"), "secs\n1\nsoon\n").unwrap();
    let cases: [(&[&str], &str, &str); 10] = [
        (&["none.db"], "none.db: cannot be read", "help: name a file that exists"),
        (&["text.record"], "text.record: this is not a record", "help: name a record that"),
        (&["other.record"], "other.record: the header of the record is damaged", "help: name"),
        (&["cut.record"], "cut.record: the record is cut short at entry", "help: name"),
        (&["--latency", "judge=log.csv:secs"], "log.csv:3:1: `soon` is no `secs`", "help: write"),
        (&["--latency", "judge=log.csv:when"], "log.csv:1:1: there is no column `when`", "secs"),
        (&["--latency", "jugde=log.csv:secs"], "there is no latency `jugde`", "did you mean"),
        (&["--latency", "judge"], "it has no `=`", "help: write NAME=FILE:COLUMN"),
        (&["--latency", "judge=none.csv:secs"], "none.csv: cannot be read", "help: name a file"),
        (&["run/run.record", "--name", "My Run"], "no name of a scenario", "help: write small"),
    ];
    for (args, message, help) in cases {
        let output = run(dir.path(), &[&["calibrate"], args].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(message) && said.contains(help), "{args:?}: {said}");
    }
    assert!(!dir.path().join("out").exists(), "nothing was written");
    let output = run(dir.path(), &["calibrate", "run/run.record", "--warmup-steps", "100000"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("help: write --warmup-steps"), "{}", stderr(&output));
}

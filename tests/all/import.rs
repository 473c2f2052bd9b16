//! `headway import` writes a whole table or none, and says where a trace is wrong.

use std::fs;

use crate::all::support::{files, run, stderr, succeed};

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

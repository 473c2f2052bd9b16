//! Whoever reads the output may stop.

use std::process::Stdio;

use crate::all::support::{headway, small, stderr};

#[test]
fn a_closed_pipe_is_no_failure_and_the_files_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = headway(dir.path())
        .args(["sweep", small().to_str().unwrap(), "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    assert!(dir.path().join("out/small/sweep.csv").is_file());
}

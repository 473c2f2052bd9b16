//! Records of simulated runs replay.

use std::fs;

use crate::all::support::{run, small, stderr, succeed};

#[test]
fn a_recorded_run_replays_and_a_damaged_record_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["simulate", small().to_str().unwrap(), "--record"]);
    let record = "out/small/simulate/run.record";
    let said = succeed(dir.path(), &["replay", record]);
    assert!(said.contains("the same decisions"), "{said}");

    let mut bytes = fs::read(dir.path().join(record)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(dir.path().join("damaged.record"), bytes).unwrap();
    let output = run(dir.path(), &["replay", "damaged.record"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("help: "), "{}", stderr(&output));
}

//! A process that is killed leaves no half-written file.

use std::fs;
use std::process::Stdio;
use std::thread;

use crate::all::support::{files, headway, small, succeed};

#[test]
fn a_killed_sweep_leaves_the_earlier_result_whole() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    succeed(dir.path(), &["sweep", scenario]);
    let folder = dir.path().join("out/small");
    let before = files(&folder);

    let mut child = headway(dir.path())
        .args(["sweep", scenario, "--replications", "100000", "--seed", "8"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    // It is at work when it has its staging folder.
    while fs::read_dir(&folder).unwrap().count() == before.len() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        thread::yield_now();
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");

    for (name, bytes) in &before {
        assert!(fs::read(folder.join(name)).unwrap() == *bytes, "{name} was changed");
    }
    succeed(dir.path(), &["sweep", scenario]);
    assert_eq!(files(&folder), before, "what the killed one left is gone");
}

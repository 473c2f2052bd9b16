//! The way of a newcomer, from top to bottom.

use std::fs;
use std::process::Command;

use crate::all::blessed::root;

#[test]
fn a_newcomer_gets_from_a_clone_to_a_promoted_configuration() {
    let clone = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("scenarios"), clone.path().join("scenarios")).unwrap();
    let output = Command::new("bash")
        .arg(root().join("scripts/tutorial.sh"))
        .env("HEADWAY", env!("CARGO_BIN_EXE_headway"))
        .env("FROM", clone.path())
        .env("STEPS", "24")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let out = clone.path().join("out/tutorial");
    for left in ["sweep/staleness.svg", "mine.toml", "tune/tuned.toml", "promoted.db"] {
        assert!(out.join(left).exists(), "{left}: {said}");
    }
    let config = fs::read_to_string(out.join("config.toml")).unwrap();
    assert!(config.contains("[guard.envelope]"), "it was promoted: {config}");
}

//! A run that trains nothing says why.

use std::path::Path;

use crate::all::support::{run, stderr};

/// What is said about a shipped scenario.
fn said(name: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let path = scenarios.join(format!("{name}.toml"));
    let output = run(dir.path(), &["simulate", path.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    stderr(&output)
}

#[test]
fn votes_that_all_fail_are_named() {
    let said = said("trouble-silence-after-start");
    assert!(said.contains("trained nothing: "), "{said}");
    assert!(said.contains("(most of them: judge_failed), 100.0% of the votes failed"), "{said}");
}

#[test]
fn publications_that_all_fail_are_named() {
    let said = said("trouble-503-never-ends");
    assert!(said.contains("trained nothing: 100.0% of the requests were refused"), "{said}");
    assert!(said.contains("publications an hour failed"), "{said}");
}

#[test]
fn a_run_that_trains_says_nothing_of_the_kind() {
    let said = said("trouble-silence-after-start-cured");
    assert!(!said.contains("trained nothing"), "{said}");
}

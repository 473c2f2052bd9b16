//! `headway torture`, through the real binary.

use crate::all::support::{run, succeed};

#[test]
fn a_hundred_seeds_break_nothing_on_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let play = |jobs| succeed(dir.path(), &["torture", "--seeds", "100", "--jobs", jobs]);
    assert_eq!(play("1"), "100 seeds, of which 0 broke something\n");
    assert_eq!(play("3"), play("1"));
    assert!(!dir.path().join("out").exists(), "nothing was reduced");
}

#[test]
fn no_seed_is_no_torture() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(run(dir.path(), &["torture", "--seeds", "many"]).status.code(), Some(2));
}

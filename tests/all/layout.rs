//! How large files of code may be.

use std::fs;
use std::path::{Path, PathBuf};

use super::blessed::root;

/// The files of code below a folder, each with its lines.
fn sources(folder: &Path) -> Vec<(PathBuf, usize)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // What was built may hold code that nobody wrote.
            if !path.ends_with("target") {
                found.extend(sources(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            found.push((path, lines));
        }
    }
    found
}

fn longer_than(most: usize, folder: &str) -> Vec<(PathBuf, usize)> {
    let found = sources(&root().join(folder));
    assert!(!found.is_empty(), "{folder} holds no code");
    found.into_iter().filter(|(_, lines)| *lines > most).collect()
}

#[test]
fn a_command_parses_its_options_calls_what_does_the_work_and_prints() {
    // What takes a hundred lines does more: it belongs to a crate, or to a module beside.
    assert_eq!(longer_than(99, "src/commands"), []);
}

#[test]
fn a_file_of_code_is_read_in_one_sitting() {
    for folder in ["src", "tests", "shared", "sim", "runtime", "benches"] {
        assert_eq!(longer_than(500, folder), []);
    }
}

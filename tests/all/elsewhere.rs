//! What went wrong in other systems: every test that the page names is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::all::blessed;

/// The names of all functions in the tests of the workspace.
fn functions() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let crates = ["tests", "shared", "sim", "runtime"];
    crates.iter().for_each(|name| collect(&blessed::root().join(name), &mut found));
    found
}

fn collect(path: &Path, found: &mut BTreeSet<String>) {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        entries.for_each(|entry| collect(&entry.unwrap().path(), found));
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        let text = fs::read_to_string(path).unwrap();
        let names = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('('));
        found.extend(names.map(|(name, _)| name.to_owned()));
    }
}

#[test]
fn every_test_that_is_named_exists() {
    let page = blessed::text("docs/elsewhere.md");
    let rows = page.lines().filter(|line| line.starts_with("| ")).skip(1);
    let functions = functions();
    let mut named = 0;
    for row in rows {
        let tests = row.rsplit('|').nth(1).unwrap();
        for name in tests.split('`').filter(|name| name.contains('_')) {
            assert!(functions.contains(name), "there is no test {name}, of\n{row}");
            named += 1;
        }
    }
    assert!(named > 30, "{named} tests are named");
}

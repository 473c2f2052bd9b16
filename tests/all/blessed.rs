//! Files that tests compare with what the code gives; `HEADWAY_BLESS=1` rewrites them.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the repository, as text.
pub(super) fn text(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The scenarios that ship, in the order of their names.
pub(super) fn scenarios() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("scenarios")).unwrap();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

/// Fails where the file at `path` differs from `expected`, or rewrites it.
pub(super) fn check(path: &str, expected: &str) {
    let full = root().join(path);
    if std::env::var_os("HEADWAY_BLESS").is_some_and(|value| value == "1") {
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(&full, expected).unwrap();
        return;
    }
    let found = fs::read_to_string(&full).unwrap_or_default();
    if found == expected {
        return;
    }
    let differs = |(a, b): (&str, &str)| a != b;
    let line = found.lines().zip(expected.lines()).take_while(|pair| !differs(*pair)).count();
    panic!(
        "{path}:{}: is not what the code gives\n  in the file: {}\n  from code:   {}\nrun \
         `make bless` and read the difference",
        line + 1,
        found.lines().nth(line).unwrap_or("(ends)"),
        expected.lines().nth(line).unwrap_or("(ends)"),
    );
}

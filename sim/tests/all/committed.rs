//! Committed results, and how they are made anew.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text must be that of the committed file, byte for byte. With `HEADWAY_BLESS=1` in the
/// environment the file is written instead.
pub(crate) fn check(name: &str, text: &str) {
    let path = root().join(name);
    if env::var_os("HEADWAY_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        return;
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let lines = committed.lines().chain(std::iter::repeat(""));
    for (number, (line, old)) in text.lines().zip(lines).enumerate() {
        let number = number + 1;
        assert_eq!(line, old, "{name}:{number} has changed; if it should: HEADWAY_BLESS=1");
    }
    assert_eq!(text, committed, "{name} has changed; if it should: HEADWAY_BLESS=1");
}

/// A file beside the workspace that not everybody has; says so where it is missing.
pub(crate) fn beside(name: &str) -> Option<String> {
    let path = root().join("../shared").join(name);
    let text = fs::read_to_string(&path).ok();
    if text.is_none() {
        eprintln!("SKIPPED: ../shared/{name} is not there");
    }
    text
}

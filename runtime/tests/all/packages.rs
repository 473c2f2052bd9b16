//! Python packages that tests run: `scripts/test_packages.sh` installs them.

use std::path::{Path, PathBuf};

/// Where `what` is installed, under `target`; `None`: it is not, and need not be.
pub(crate) fn installed(folder: &str, what: &str) -> Option<PathBuf> {
    // The workspace's: the tests of the whole use this, too.
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = crates.ancestors().find(|folder| folder.join("Cargo.lock").exists());
    let place = root.unwrap_or(crates).join("target").join(folder);
    if place.join("installed.txt").exists() {
        return Some(place);
    }
    let said = format!("{what} is not installed: run scripts/test_packages.sh");
    assert!(std::env::var_os("HEADWAY_TEST_ALL").is_none(), "{said}");
    eprintln!("SKIPPED: {said}");
    None
}

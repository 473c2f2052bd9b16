//! Python packages that tests run: `scripts/test_packages.sh` installs them.

use std::path::{Path, PathBuf};

/// Where `what` is installed, under `target`; `None`: it is not, and need not be.
pub(super) fn installed(folder: &str, what: &str) -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target").join(folder);
    if place.join("installed.txt").exists() {
        return Some(place);
    }
    let said = format!("{what} is not installed: run scripts/test_packages.sh");
    assert!(std::env::var_os("HEADWAY_TEST_ALL").is_none(), "{said}");
    eprintln!("SKIPPED: {said}");
    None
}

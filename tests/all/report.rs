//! `report.html` of every command that writes one, in a real browser.
//!
//! `make test` installs Playwright (`scripts/test_packages.sh`) and finds a Chromium
//! (`scripts/test_browser.sh`), and demands this test; without them it says that it was skipped.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::all::packages;
use crate::all::support::{run, small, stderr, succeed};

/// What a browser may be called.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The browser of this machine; `None`: there is none, and need not be.
fn browser() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&path).flat_map(|dir| BROWSERS.map(|name| dir.join(name)));
    let found = places.into_iter().find(|place| place.is_file());
    if found.is_none() {
        let said = "there is no Chromium: run scripts/test_browser.sh";
        assert!(env::var_os("HEADWAY_TEST_ALL").is_none(), "{said}");
        eprintln!("SKIPPED: {said}");
    }
    found
}

/// A scenario whose texts would be markup where they are not escaped.
fn hostile(folder: &Path) -> String {
    let text = fs::read_to_string(small()).unwrap();
    let title = "title = \"</title><script>window.broken = 1</script>\"";
    let text = text.replace("title = \"A small world for tests\"", title);
    assert!(text.contains("window.broken"));
    let name = "<script>window.broken=1<script>.toml";
    fs::write(folder.join(name), text).unwrap();
    name.to_owned()
}

/// A folder of each command, by its name.
fn pages(dir: &Path) {
    let scenario = hostile(dir);
    let scenario = scenario.as_str();
    let make = |args: &[&str]| drop(succeed(dir, args));
    let bounds = ["--over", "max_head_off_policyness=0,2,6"];
    make(&[&["sweep", scenario, "--replications", "3", "--out", "sweep"][..], &bounds].concat());
    make(&["simulate", scenario, "--record", "--out", "simulate"]);
    let space = ["--space", "max_head_off_policyness=0,2,4", "--out", "tune"];
    let bound = ["--subject-to", "staleness_head_p99<=5"];
    make(&[&["tune", scenario][..], &space, &bound].concat());
    make(&["plan", scenario, "--gpus", "4", "--out", "plan"]);
    let gates = ["--gates", "headway,prime_rl,sync", "--sync-modes", "in_flight,rolling"];
    make(&[&["tournament", "--workload", scenario, "--out", "tournament"][..], &gates].concat());
    let record = "simulate/run.record";
    make(&["plot", record, "--out", "live"]);
    // Whether it is within its tolerances does not matter here.
    let validate = ["validate", "--scenario", scenario, "--replications", "4", "--out", "validate"];
    let output = run(dir, &[&validate[..], &["--warmup-steps", "2", record]].concat());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
}

#[test]
fn every_page_reads_sorts_and_says_its_values_in_a_browser() {
    let Some(packages) = packages::installed("playwright", "Playwright") else { return };
    let Some(browser) = browser() else { return };
    let dir = tempfile::tempdir().unwrap();
    pages(dir.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/report.py");
    let mut command = Command::new("python3");
    command.arg("-B").arg(script).arg(browser).arg(dir.path()).env("PYTHONPATH", packages);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", stderr(&output));
}

//! What the crates may use. Clippy forbids single types and functions (`clippy.toml`); here is what
//! it cannot see.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::blessed::root;

/// The names of everything that a crate is built from, itself included.
fn built_from(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", package, "--edges", "normal", "--prefix", "none"])
        .args(["--offline", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn assert_free_of(package: &str, forbidden: &[&str]) {
    let names = built_from(package);
    assert!(names.contains(package), "{names:?}");
    let found: Vec<&String> = names
        .iter()
        .filter(|name| {
            forbidden.iter().any(|word| match word.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => *name == word,
            })
        })
        .collect();
    assert!(found.is_empty(), "{package} is built from {found:?}");
}

/// Every way out of the process: without these crates, and without the modules of std below, the
/// core cannot read a clock, a random number, a file or a socket.
const OUTSIDE: &[&str] = &[
    "libc",
    "rustix",
    "nix",
    "windows*",
    "getrandom",
    "mio",
    "socket2",
    "tokio*",
    "async*",
    "rand*",
    "fastrand",
    "oorandom",
    "chrono",
    "time",
    "jiff",
    "instant",
    "rusqlite",
    "libsqlite3*",
    "sqlx*",
    "reqwest",
    "hyper*",
    "ureq",
    "axum*",
    "plotters*",
    "rayon*",
    "crossbeam*",
    "indicatif",
    "clap*",
];

#[test]
fn the_core_is_built_from_nothing_that_reaches_outside() {
    assert_free_of("headway-shared", OUTSIDE);
}

#[test]
fn the_simulator_has_no_clock_no_network_and_no_runtime() {
    let forbidden = [
        "tokio*",
        "async*",
        "chrono",
        "time",
        "jiff",
        "instant",
        "rusqlite",
        "libsqlite3*",
        "reqwest",
        "hyper*",
        "ureq",
        "axum*",
        "headway",
        "headway-runtime",
    ];
    assert_free_of("headway-sim", &forbidden);
}

#[test]
fn the_runtime_does_not_depend_on_the_simulator() {
    assert_free_of("headway-runtime", &["headway-sim", "headway"]);
}

/// The lines of all Rust files below a folder, without comments, as `file:line` and text.
fn code_below(folder: &Path) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            lines.extend(code_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let place = path.strip_prefix(root()).unwrap().display().to_string();
            lines.extend(text.lines().enumerate().map(|(index, line)| {
                let code = line.split("//").next().unwrap_or("");
                (format!("{place}:{}", index + 1), code.to_owned())
            }));
        }
    }
    lines
}

fn assert_unnamed(folder: &str, words: &[&str], why: &str) {
    let code = code_below(&root().join(folder));
    assert!(code.len() > 1000, "{folder} has only {} lines", code.len());
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let found: Vec<String> = code
        .iter()
        .filter(|(_, line)| {
            words.iter().any(|word| {
                line.match_indices(word).any(|(start, _)| {
                    let (before, after) = (&line[..start], &line[start + word.len()..]);
                    !before.ends_with(is_part) && !after.starts_with(is_part)
                })
            })
        })
        .map(|(place, line)| format!("{place}: {}", line.trim()))
        .collect();
    assert!(found.is_empty(), "{why}:\n{}", found.join("\n"));
}

#[test]
fn no_float_is_in_the_core() {
    let why = "the core decides with whole numbers, which are the same on every platform";
    assert_unnamed("shared/src/core", &["f32", "f64"], why);
}

#[test]
fn shared_names_no_module_that_reaches_outside() {
    let modules = ["std::fs", "std::net", "std::env", "std::thread", "std::process", "std::sync"];
    assert_unnamed("shared/src", &modules, "facts come in as an `Input`");
}

/// `clippy.toml` names the maps of std; those of hashbrown have an arbitrary order as well.
#[test]
fn no_map_with_an_arbitrary_order_is_in_shared_or_sim() {
    let maps = ["HashMap", "HashSet", "RandomState", "DefaultHasher"];
    for folder in ["shared/src", "sim/src"] {
        assert_unnamed(folder, &maps, "its order changes from run to run");
    }
}

/// Tests plant bugs in the core to see that they are found. The feature is theirs alone.
#[test]
fn no_bug_is_planted_in_what_is_shipped() {
    let features = |edges: &str| {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--workspace", "--edges", edges, "--prefix", "none"])
            .args(["--offline", "--locked"])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let planted = "headway-shared feature \"planted\"";
    assert!(features("normal,dev,features").contains(planted), "the tests have it");
    assert!(!features("normal,build,features").contains(planted));
}

#[test]
fn nobody_switches_the_lints_off_that_keep_results_the_same() {
    for folder in ["shared/src", "sim/src"] {
        let lints = ["disallowed_types", "disallowed_methods"];
        assert_unnamed(folder, &lints, "`clippy.toml` says what to write instead");
    }
}

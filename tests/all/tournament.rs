//! `headway tournament`, through the real binary.

use crate::all::support::{files, run, small, stderr, succeed};

const FEW: [&str; 6] = [
    "tournament",
    "--gates",
    "sync,one_step_off,headway_strict",
    "--sync-modes",
    "in_flight,rolling",
    "--workload",
];

#[test]
fn a_tournament_writes_its_table_and_plots_and_any_threads_write_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let args = [&FEW[..], &[scenario.to_str().unwrap()]].concat();
    let table = succeed(dir.path(), &[&args[..], &["--out", "one", "--jobs", "1"]].concat());
    assert!(table.contains("Fastest within a limit on staleness"), "{table}");
    let written = files(&dir.path().join("one"));
    let names =
        ["tournament.csv", "tournament.json", "small-front.svg", "small-gates.png", "report.html"];
    for name in names {
        assert!(written.contains_key(name), "{name}");
    }
    let csv = String::from_utf8(written["tournament.csv"].clone()).unwrap();
    // A gate without a knob has a row per sync mode, without parking and with it.
    assert_eq!(csv.lines().filter(|line| line.starts_with("small,sync,")).count(), 4, "{csv}");
    succeed(dir.path(), &[&args[..], &["--out", "two", "--jobs", "2"]].concat());
    assert!(files(&dir.path().join("two")) == written);
    let page = String::from_utf8(written["report.html"].clone()).unwrap();
    let parts = [
        "Which gate trains the most within a p99 staleness of 4, and why?",
        "headway tournament --workload small.toml --gates sync,one_step_off,headway_strict --sync-modes \
         in_flight,rolling</code>",
        "<caption>Every row of small</caption>",
        "<caption>Each gate at its fastest with a p99 of at most 4</caption>",
    ];
    parts.iter().for_each(|part| assert!(page.contains(part), "no {part:?}"));
    succeed(dir.path(), &["plot", "one", "--out", "again"]);
    for (name, bytes) in files(&dir.path().join("again")) {
        assert!(bytes == written[&name], "{name} differs");
    }
}

#[test]
fn wrong_input_of_a_tournament_is_refused_with_its_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], parts: &[&str]| {
        let output = run(dir.path(), &[&["tournament"], args].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        parts.iter().for_each(|part| assert!(said.contains(part), "no {part:?}: {said}"));
        assert!(!dir.path().join("out").exists(), "{args:?} wrote files");
    };
    refused(&["--gates", "arael"], &["there is no `arael`", "did you mean `areal`?"]);
    refused(&["--sync-modes", "later"], &["--sync-modes: ", "pause_drain, pause_abort"]);
    refused(
        &["--workload", "medium"],
        &["no workload and no file `medium`", "mild, heavy, sessions"],
    );
    refused(&["--workload", "mild", "--workload", "mild"], &["two workloads are named"]);
    refused(&["--replications", "1"], &["--replications"]);
    refused(&["--set", "batch_size=0"], &["batch_size"]);
}

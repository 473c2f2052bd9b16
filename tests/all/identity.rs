//! The same input gives the same bytes.

use crate::all::support::{files, small, succeed};

#[test]
fn a_sweep_writes_the_same_bytes_on_one_thread_on_two_and_again() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let sweep = |jobs: &str, out: &str| {
        let scenario = scenario.to_str().unwrap();
        let args = ["sweep", scenario, "--jobs", jobs, "--out", out, "--format", "json"];
        (succeed(dir.path(), &args), files(&dir.path().join(out)))
    };
    let (stdout, first) = sweep("1", "first");
    for (jobs, out) in [("2", "second"), ("2", "third")] {
        let (again, others) = sweep(jobs, out);
        assert_eq!(again, stdout);
        assert_eq!(others.keys().collect::<Vec<_>>(), first.keys().collect::<Vec<_>>());
        for (name, bytes) in &others {
            assert!(*bytes == first[name], "{name} differs");
        }
    }
    for name in ["sweep.csv", "runs.csv", "histogram.csv", "series.csv", "sweep.json"] {
        assert!(first.contains_key(name), "{name} is missing");
    }
    for plot in ["staleness", "throughput", "refusals", "parts", "histogram"] {
        assert!(first.contains_key(&format!("{plot}.svg")), "{plot} is missing");
        assert!(first.contains_key(&format!("{plot}.png")), "{plot} is missing");
    }
}

#[test]
fn plots_drawn_again_from_the_csv_files_are_the_same_plots() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    for command in ["sweep", "simulate"] {
        succeed(dir.path(), &[command, scenario, "--out", "result"]);
        succeed(dir.path(), &["plot", "result", "--out", "again"]);
        let (drawn, again) = (files(&dir.path().join("result")), files(&dir.path().join("again")));
        assert!(again.len() >= 6, "{command} has plots");
        for (name, bytes) in &again {
            assert!(*bytes == drawn[name], "{name} of {command} differs");
        }
        std::fs::remove_dir_all(dir.path().join("result")).unwrap();
        std::fs::remove_dir_all(dir.path().join("again")).unwrap();
    }
}

#[test]
fn results_know_no_folder_and_no_time() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    succeed(dir.path(), &["sweep", scenario.to_str().unwrap()]);
    let here = dir.path().to_str().unwrap();
    for (name, bytes) in files(&dir.path().join("out/small")) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(here) && !text.contains("tests/data"), "{name} holds a path");
        assert!(!text.contains("NaN"), "{name} holds an undefined number");
    }
}

#[test]
fn another_seed_gives_other_results() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let csv = |seed: &str| {
        let scenario = scenario.to_str().unwrap();
        succeed(dir.path(), &["simulate", scenario, "--seed", seed, "--format", "csv"])
    };
    assert_ne!(csv("1"), csv("2"));
    assert_eq!(csv("2"), csv("2"));
}

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
    for name in
        ["report.html", "sweep.csv", "runs.csv", "histogram.csv", "series.csv", "sweep.json"]
    {
        assert!(first.contains_key(name), "{name} is missing");
    }
    for plot in ["staleness", "throughput", "refusals", "parts", "histogram"] {
        assert!(first.contains_key(&format!("{plot}.svg")), "{plot} is missing");
        assert!(first.contains_key(&format!("{plot}.png")), "{plot} is missing");
    }
}

#[test]
fn the_page_and_the_plots_drawn_again_from_the_csv_files_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    for command in ["sweep", "simulate"] {
        succeed(dir.path(), &[command, scenario, "--out", "result"]);
        succeed(dir.path(), &["plot", "result", "--out", "again"]);
        let (drawn, again) = (files(&dir.path().join("result")), files(&dir.path().join("again")));
        assert!(again.len() >= 7 && again.contains_key("report.html"), "{command} has plots");
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

/// The assignments of a drift that is mixed into the small world.
const DRIFT: [&str; 6] = [
    "--set",
    "world.drift.sigma0=0.03",
    "--set",
    "world.drift.a=0.004",
    "--set",
    "world.drift.p=1.6",
];

#[test]
fn predicted_ratios_are_the_same_on_any_number_of_threads_and_are_marked_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let run = |command: &str, jobs: &str, out: &str| {
        let args = [command, scenario.to_str().unwrap(), "--jobs", jobs, "--out", out];
        let text = succeed(dir.path(), &[&args[..], &DRIFT].concat());
        (text, files(&dir.path().join(out)))
    };
    let (table, first) = run("sweep", "1", "first");
    assert!(table.contains("ratio, log-prob, ESS, clipped and effective: uncalibrated"), "{table}");
    let (again, second) = run("sweep", "2", "second");
    assert_eq!(table, again);
    assert!(first == second, "a file differs");
    let text = |name: &str| String::from_utf8(first[name].clone()).unwrap();
    for name in ["sweep.csv", "runs.csv", "ratios.csv"] {
        let csv = text(name);
        assert!(csv.lines().skip(1).all(|line| line.contains(",uncalibrated,")), "{name}");
    }
    assert!(text("sweep.json").contains("\"drift\": \"uncalibrated\""));
    for name in ["ratios.svg", "effective.svg"] {
        assert!(text(name).contains("(uncalibrated)</title>"), "{name}");
    }
    let (_, single) = run("simulate", "1", "single");
    assert!(single.contains_key("ratio-staleness.png") && single.contains_key("ratios.csv"));

    // Drawn again from the files they are the same; a result without ratios takes them away.
    succeed(dir.path(), &["plot", "first", "--out", "drawn"]);
    for (name, bytes) in files(&dir.path().join("drawn")) {
        assert!(bytes == first[&name], "{name} differs");
    }
    let plain = ["sweep", scenario.to_str().unwrap(), "--out", "first"];
    succeed(dir.path(), &plain);
    let plain = files(&dir.path().join("first"));
    for name in ["ratios.csv", "ratios.svg", "ratios.png", "effective.svg", "effective.png"] {
        assert!(!plain.contains_key(name), "{name} is left");
    }
}

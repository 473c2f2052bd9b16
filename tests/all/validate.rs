//! `headway validate` through the real binary, on simulated records.

use std::fs;
use std::path::Path;

use crate::all::support::{files, run, small, stderr, succeed};

/// A record of the small world, long enough to say something.
fn record(folder: &Path, out: &str, set: &[&str]) {
    let path = small();
    let mut args = vec!["simulate", path.to_str().unwrap(), "--record", "--out", out];
    args.extend(["--set", "scenario.steps=60", "--set", "scenario.duration_sec=36000"]);
    args.extend(set.iter().flat_map(|set| ["--set", *set]));
    succeed(folder, &args);
}

fn validate<'a>(scenario: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["validate", "--scenario", scenario, "--replications", "4"];
    fixed.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn records_are_predicted_in_their_own_world_and_missed_in_another() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    record(dir.path(), "own", &[]);
    record(dir.path(), "tight", &["max_head_off_policyness=1"]);
    record(dir.path(), "slow", &["world.judge.vote.mean_sec=60"]);
    let [own, tight, slow] = ["own/run.record", "tight/run.record", "slow/run.record"];
    let loose = ["--tolerance", "*=none", "--tolerance", "steps_per_hour=25%"];

    let said = succeed(dir.path(), &validate(scenario, &[&loose[..], &[own, tight]].concat()));
    assert!(said.ends_with("2 of 2 runs are predicted within every tolerance\n"), "{said}");
    let made = files(&dir.path().join("out/small/validate"));
    let names: Vec<&str> = made.keys().map(String::as_str).collect();
    let pictures = ["report.html", "validation-idle.png", "validation-idle.svg"];
    let expected = ["validation.csv", "validation.json", "validation.png", "validation.svg"];
    assert_eq!(names, [&pictures[..], &expected].concat());
    let table = String::from_utf8(made["validation.csv"].clone()).unwrap();
    let header = "run,max_head_off_policyness,metric,unit,measured,predicted,low,high,inside,\
                  tolerance,within,error,relative_error";
    assert_eq!(table.lines().next(), Some(header));
    assert!(table.contains("\ntight,1,steps_per_hour,1/h,"), "{table}");

    succeed(dir.path(), &["plot", "out/small/validate", "--out", "again"]);
    let again = files(&dir.path().join("again"));
    assert_eq!(again.len(), 5, "{:?}", again.keys());
    again.iter().for_each(|(name, bytes)| assert!(*bytes == made[name], "{name} differs"));
    fs::create_dir(dir.path().join("odd")).unwrap();
    fs::write(dir.path().join("odd/validation.json"), &made["validation.json"]).unwrap();
    let odd = table.replace(",steps_per_hour,", ",steps_per_day,");
    fs::write(dir.path().join("odd/validation.csv"), odd).unwrap();
    let output = run(dir.path(), &["plot", "odd"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("validation.csv: line 4: `steps_per_day` is no metric"));

    let output = run(dir.path(), &validate(scenario, &[&loose[..], &[slow]].concat()));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(said.contains("beyond the tolerance: slow: steps_per_hour: predicted "), "{said}");
    assert!(said.ends_with("0 of 1 runs are predicted within every tolerance\n"), "{said}");
    let warned = stderr(&output);
    assert!(warned.contains("warning: slow: its world differs: vote_seconds_mean is "), "{warned}");
    assert!(warned.contains("has no [calibration]"), "{warned}");

    let known = format!("{slow}@world.judge.vote.mean_sec=60");
    succeed(dir.path(), &validate(scenario, &[&loose[..], &[&known]].concat()));
}

#[test]
fn json_and_csv_are_what_is_in_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    record(dir.path(), "own", &[]);
    for (format, file) in [("csv", "validation.csv"), ("json", "validation.json")] {
        let loose = ["--tolerance", "*=none", "--format", format, "--out", "to"];
        let said =
            succeed(dir.path(), &validate(scenario, &[&loose[..], &["own/run.record"]].concat()));
        assert_eq!(said, fs::read_to_string(dir.path().join("to").join(file)).unwrap());
    }
}

#[test]
fn what_is_wrong_with_a_validation_is_said_with_what_to_write() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    record(dir.path(), "own", &["scenario.steps=20"]);
    let own = "own/run.record";
    let wrong: [(&[&str], &str); 5] = [
        (&["nowhere.db"], "nowhere.db: cannot be read"),
        (&[own, "--tolerance", "steps_per_hour=often"], "--tolerance: `often` is no distance"),
        (&[own, "--warmup-steps", "20"], "and the warm-up takes 20 steps\nhelp: "),
        (&[own, "--set", "batch_size=3"], "`batch_size=3` changes the scheduling sections"),
        (&["own/run.record@world.judge.vote.mean_sec=slow"], "mean_sec"),
    ];
    for (args, expected) in wrong {
        let output = run(dir.path(), &validate(scenario, args));
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("help: "), "{args:?}: {}", stderr(&output));
    }
}

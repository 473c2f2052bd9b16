//! What commands say on stderr while they work, and when they are asked to be quiet.

use std::fs;

use headway_runtime::store;
use headway_shared::record::RecordedRun;
use headway_shared::source::RunSource;

use crate::all::blessed::root;
use crate::all::support::{headway, run, small, stderr};

#[test]
fn a_pipe_gets_no_control_characters_and_a_log_of_ci_no_line_for_what_is_short() {
    let dir = tempfile::tempdir().unwrap();
    let small = small();
    for args in [
        &["simulate", small.to_str().unwrap()][..],
        &["sweep", small.to_str().unwrap(), "--replications", "2"],
        &["torture", "--seeds", "3", "--inputs", "300"],
    ] {
        for ci in [None, Some("true")] {
            let mut command = headway(dir.path());
            command.args(args).env("TERM", "xterm-256color").envs(ci.map(|ci| ("CI", ci)));
            let output = command.output().unwrap();
            let said = stderr(&output);
            assert!(output.status.success(), "{said}");
            assert!(!said.contains(['\u{1b}', '\r']), "{args:?}: {said:?}");
            assert!(!said.contains(" left"), "{args:?}: {said}");
        }
    }
}

#[test]
fn quiet_hides_what_went_well_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let small = small();
    let small = small.to_str().unwrap();
    let loud = run(dir.path(), &["simulate", small]);
    assert!(stderr(&loud).starts_with("wrote "), "{}", stderr(&loud));
    let quiet = run(dir.path(), &["simulate", small, "--quiet"]);
    assert_eq!(stderr(&quiet), "");
    assert_eq!(quiet.stdout, loud.stdout);
    let before = run(dir.path(), &["-q", "simulate", small]);
    assert_eq!(stderr(&before), "");
    // A warning is not what went well.
    let set = ["simulate", small, "--quiet", "--set", "policy_training.correction=none"];
    let warned = run(dir.path(), &set);
    assert!(stderr(&warned).contains("warning: "), "{}", stderr(&warned));
    let wrong = run(dir.path(), &["simulate", "nowhere.toml", "--quiet"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("cannot be read"), "{}", stderr(&wrong));
}

#[test]
fn what_is_said_of_a_record_is_the_same_where_progress_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let released = root().join("tests/data/released");
    for record in ["record-0.1.0.record", "record-0.1.0.db"] {
        let record = released.join(record);
        for command in ["replay", "calibrate", "diagnose"] {
            let said = |ci: &str| {
                let mut asked = headway(dir.path());
                asked.arg(command).arg(&record).env("CI", ci);
                let output = asked.output().unwrap();
                assert_ne!(output.status.code(), Some(2), "{command}: {}", stderr(&output));
                (output.status.code(), output.stdout, output.stderr)
            };
            assert_eq!(said("true"), said("false"), "{command} {}", record.display());
        }
    }
}

#[test]
fn a_record_has_as_many_inputs_as_progress_counts_to() {
    let released = root().join("tests/data/released");
    let simulated = fs::read(released.join("record-0.1.0.record")).unwrap();
    let simulated = RecordedRun::open_any("simulated", simulated).unwrap();
    let live = store::RecordedRun::open_any(&released.join("record-0.1.0.db")).unwrap();
    let runs: [&dyn RunSource; 2] = [&simulated, &live];
    for run in runs {
        let mut inputs = 0;
        run.inputs(&mut |_, _| inputs += 1).unwrap();
        assert_eq!(run.length(), Some(inputs), "{}", run.name());
    }
}

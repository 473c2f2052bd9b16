//! What commands say on stderr while they work, and when they are asked to be quiet.

use std::fs;

use headway_runtime::store;
use headway_shared::check::check_with;
use headway_shared::record::{Reader, RecordedRun};
use headway_shared::replay::{replay, replay_with};
use headway_shared::source::RunSource;

use crate::all::blessed::root;
use crate::all::support::{headway, run, small, stderr, succeed};

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
    let small = root().join("tests/data/small.toml");
    let made = run(dir.path(), &["simulate", small.to_str().unwrap(), "--record", "--out", "made"]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let own = dir.path().join("made/run.record");
    // A live one, which another decision version may have decided: then it is refused, either way.
    let live = root().join("tests/data/released/record-0.1.0.db");
    let same = store::RecordedRun::open(&live).is_ok();
    for (record, must) in [(own, true), (live, same)] {
        for command in ["replay", "check", "calibrate", "diagnose"] {
            let said = |ci: &str| {
                let mut asked = headway(dir.path());
                asked.arg(command).arg(&record).env("CI", ci);
                let output = asked.output().unwrap();
                let refused = output.status.code() == Some(2);
                assert!(!(must && refused), "{command}: {}", stderr(&output));
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

#[test]
fn a_record_that_is_verified_is_counted_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["simulate", small().to_str().unwrap(), "--record", "--out", "."]);
    let simulated = fs::read(dir.path().join("run.record")).unwrap();
    let open = || Reader::open(&simulated[..]).unwrap();
    let inputs = replay(open()).unwrap().decisions.inputs;
    assert!(inputs > 0);
    assert_eq!(open().count_inputs(), inputs);
    let cut = Reader::open(&simulated[..simulated.len() / 2]).unwrap();
    assert!((1..inputs).contains(&cut.count_inputs()));

    let (mut replayed, mut checked) = (0, 0);
    replay_with(open(), &mut || replayed += 1).unwrap();
    check_with(open(), &mut || checked += 1).unwrap();
    assert_eq!([replayed, checked], [inputs; 2]);

    let live = dir.path().join("run.db");
    let released = root().join("tests/data/released/record-0.1.0.db");
    fs::copy(released, &live).unwrap();
    let (mut replayed, mut checked) = (0, 0);
    store::replay_stretches_with(&live, &mut || replayed += 1).unwrap();
    store::check_with(&live, &mut || checked += 1).unwrap();
    let verifiable = store::count_verifiable(&live).unwrap();
    assert_eq!([replayed, checked], [verifiable; 2]);
}

//! Looking back into recorded runs.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::all::support::{run, small, stderr, succeed};

const RECORD: &str = "out/small/simulate/run.record";

fn recorded(set: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let small = small();
    succeed(dir.path(), &[&["simulate", small.to_str().unwrap(), "--record"], set].concat());
    dir
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let said = succeed(folder, &[&["replay", RECORD, "--format", "json"], args].concat());
    serde_json::from_str(&said).unwrap()
}

#[test]
fn the_state_at_an_instant_is_shown_and_the_end_where_the_run_is_over() {
    let dir = recorded(&[]);
    let said = succeed(dir.path(), &["replay", RECORD, "--until", "10m", "--state"]);
    for expected in [
        "run: ",
        "learner: version ",
        "replica 0: ",
        "gate headway: places = (η 4",
        "rollout queue: ",
        "ledger: ",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in\n{said}");
    }
    let early = json(dir.path(), &["--until", "300"]);
    let late = json(dir.path(), &["--until", "5.5m"]);
    let time = |document: &Value| document["time_sec"].as_f64().unwrap();
    assert!(time(&early) <= 300.0 && time(&late) > time(&early) && time(&late) <= 330.0);
    let admitted = |document: &Value| document["state"]["ledger"]["admitted"].as_u64().unwrap();
    assert!(admitted(&early) < admitted(&late));
    let output = run(dir.path(), &["replay", RECORD, "--until", "30d", "--state"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("before 2592000s: this is its end"), "{}", stderr(&output));
    let output = run(dir.path(), &["replay", RECORD, "--until", "soon"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("or 90s, 5m, 1.5h, 2d"), "{}", stderr(&output));
}

#[test]
fn the_life_of_a_sample_adds_up() {
    let dir = recorded(&[]);
    let mut trained = 0;
    for sample in ["3", "17", "40"] {
        let document = json(dir.path(), &["--explain", sample]);
        let life = &document["sample"];
        assert_eq!(life["stages"][0]["stage"], "admitted");
        let times: Vec<f64> = life["stages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|stage| stage["time_sec"].as_f64().unwrap())
            .collect();
        assert!(times.is_sorted(), "{life}");
        if life["fate"] == "trained" {
            trained += 1;
            let parts = life["staleness"]["parts"].as_object().unwrap();
            let sum: u64 = parts.values().map(|part| part.as_u64().unwrap()).sum();
            assert_eq!(life["staleness"]["head"].as_u64(), Some(sum), "{life}");
            assert_eq!(times.len(), 8, "{life}");
        }
    }
    assert!(trained > 0);
    let said = succeed(dir.path(), &["replay", RECORD, "--explain", "3"]);
    for expected in
        ["sample 3 of session ", "  admitted ", "  fate: ", "as sample 3", "start vote "]
    {
        assert!(said.contains(expected), "{expected:?} is not in\n{said}");
    }
}

#[test]
fn a_refused_request_is_shown_with_the_gates_formula() {
    let dir = recorded(&["--set", "max_head_off_policyness=0"]);
    let bytes = fs::read(dir.path().join(RECORD)).unwrap();
    let refused = headway_shared::record::RecordedRun::open("run", bytes).unwrap();
    let mut why = None;
    headway_shared::source::follow(&refused, &mut |_, _, actions, _| {
        for action in actions {
            if let headway_shared::action::Action::Refuse { request, reason, .. } = action
                && *reason == headway_shared::action::Refusal::Stale
            {
                why.get_or_insert(request.0);
            }
        }
    })
    .unwrap();
    let why = why.expect("a request was refused").to_string();
    let said = succeed(dir.path(), &["replay", RECORD, "--why", &why]);
    assert!(said.contains("429: the staleness bound left no place"), "{said}");
    assert!(said.contains("gate headway: (η 0 + 1 - publish lag "), "{said}");
    assert!(said.contains(" with 429, stale; retry after "), "{said}");
    let document = json(dir.path(), &["--why", &why]);
    let met = &document["request"]["met"];
    assert_eq!(met["verdict"], "stale");
    for replica in met["state"]["replicas"].as_array().unwrap() {
        let n = |name: &str| replica["capacity"][name].as_i64().unwrap();
        let formula = (n("eta") + 1 - n("publish_lag")).max(0) * n("batch") - n("outstanding");
        assert_eq!(n("places"), formula, "{replica}");
        assert!(n("places") <= 0 || replica["open"] == false, "{replica}");
    }
    let said = succeed(dir.path(), &["replay", RECORD, "--why", "0"]);
    assert!(said.contains("it may start") && said.contains("as sample 0"), "{said}");
}

#[test]
fn a_held_request_says_what_it_waited_for() {
    let set =
        ["--set", "max_head_off_policyness=0", "--set", "over_limit=hold", "--set", "hold_sec=20"];
    let dir = recorded(&set);
    let bytes = fs::read(dir.path().join(RECORD)).unwrap();
    let run = headway_shared::record::RecordedRun::open("run", bytes).unwrap();
    let (mut held, mut expired) = (None, None);
    headway_shared::source::follow(&run, &mut |_, _, actions, _| {
        for action in actions {
            match action {
                headway_shared::action::Action::Hold { request } => {
                    held.get_or_insert(request.0);
                }
                headway_shared::action::Action::Refuse { request, reason, .. }
                    if *reason == headway_shared::action::Refusal::HoldExpired =>
                {
                    expired.get_or_insert(request.0);
                }
                _ => {}
            }
        }
    })
    .unwrap();
    let held = held.expect("a request was held").to_string();
    let said = succeed(dir.path(), &["replay", RECORD, "--why", &held]);
    assert!(said.contains(&format!("hold request {held}")), "{said}");
    let expired = expired.expect("a hold expired").to_string();
    let said = succeed(dir.path(), &["replay", RECORD, "--why", &expired]);
    assert!(said.contains("what it met then (hold_expired):"), "{said}");
}

#[test]
fn what_is_not_in_the_run_is_named_with_what_is() {
    let dir = recorded(&[]);
    for (question, said) in [
        ("--explain", "its samples until then are 0 to "),
        ("--why", "the newest one until then is request "),
    ] {
        let output = run(dir.path(), &["replay", RECORD, question, "99999999"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
        let output = run(dir.path(), &["replay", RECORD, question, "0", "--until", "0"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    }
}

/// Records that builds of earlier releases wrote: every later build must read them.
fn released() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/released");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 2, "{paths:?}");
    paths
}

/// If the decision version has changed since, what is shown is this build's and says so; a record is
/// never made anew for a newer build.
#[test]
fn a_record_of_each_release_is_read_and_explained() {
    let dir = tempfile::tempdir().unwrap();
    for path in released() {
        assert!(fs::metadata(&path).unwrap().len() < 200_000, "{}", path.display());
        // A database is copied: reading one makes files beside it.
        let name = path.file_name().unwrap().to_str().unwrap();
        fs::copy(&path, dir.path().join(name)).unwrap();
        let args = ["replay", name, "--state", "--explain", "0", "--why", "0"];
        let output = run(dir.path(), &args);
        let said = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        for expected in ["ledger: ", "sample 0 of session ", "fate: ", "request 0 of session "] {
            assert!(said.contains(expected), "{name}: {expected:?} is not in\n{said}");
        }
        let plain = run(dir.path(), &["replay", name]);
        let other = stderr(&output).contains("decided this run; what is shown is what this build");
        match other {
            false => assert!(plain.status.success(), "{name}: {}", stderr(&plain)),
            true => {
                assert_eq!(plain.status.code(), Some(2), "{name}");
                assert!(stderr(&plain).contains("verify it with a build of that decision version"));
            }
        }
    }
}

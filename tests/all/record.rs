//! Records of simulated and of live runs replay.

use std::fs;
use std::path::Path;

use headway_runtime::store::{Batch, Database, Keep, Row, Writer};
use headway_shared::config::Config;
use headway_shared::core::Scheduler;
use headway_shared::id::ReplicaId;
use headway_shared::input::Input;
use headway_shared::record::Decisions;
use headway_shared::time::Time;
use headway_shared::version::DeployVersion;

use crate::all::support::{run, small, stderr, succeed};

#[test]
fn a_recorded_run_replays_and_a_damaged_record_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["simulate", small().to_str().unwrap(), "--record"]);
    let record = "out/small/simulate/run.record";
    let said = succeed(dir.path(), &["replay", record]);
    assert!(said.contains("the same decisions"), "{said}");
    let said = succeed(dir.path(), &["check", record]);
    assert!(said.contains("work: ") && said.ends_with("  nothing is wrong\n"), "{said}");

    let mut bytes = fs::read(dir.path().join(record)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(dir.path().join("damaged.record"), bytes).unwrap();
    let output = run(dir.path(), &["replay", "damaged.record"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("help: "), "{}", stderr(&output));
    let output = run(dir.path(), &["check", record, "damaged.record"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("  nothing is wrong\n"), "the first is good: {said}");
    assert!(said.contains("  WRONG: input ") && said.ends_with("the check failed\n"), "{said}");
}

/// The database of a run with a few inputs.
fn database(path: &Path) {
    let config = Config::default();
    let mut scheduler = Scheduler::new(config.clone());
    let up = Input::ReplicaUp { replica: ReplicaId(0), deploy: DeployVersion::new(0) };
    let mut rows = Vec::new();
    for (seq, input) in [up, Input::SourceExhausted, Input::Tick].into_iter().enumerate() {
        let at = Time::from_secs(seq as u64);
        scheduler.handle(at, &input);
        let actions: Vec<_> = std::iter::from_fn(|| scheduler.poll_action()).collect();
        let actions = Decisions::default().add(at, &actions);
        rows.push(Row::Input { seq: seq as u64, at, input: Box::new(input), actions });
    }
    let database = Database::open(path, &config).unwrap();
    let keep = Keep { snapshots: 4, inputs: true };
    let writer = Writer::start(database, keep, || 0, |_| {}).unwrap();
    writer.commit(Batch { last: 2, rows });
}

#[test]
fn the_database_of_a_live_run_replays_and_another_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    database(&dir.path().join("run.db"));
    let said = succeed(dir.path(), &["replay", "run.db"]);
    assert!(
        said.starts_with("run.db: 3 inputs until 2s, 0 snapshots, the same decisions"),
        "{said}"
    );

    let mut bytes = fs::read(dir.path().join("run.db")).unwrap();
    let name = b"headway";
    let place = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[place] = b'x';
    fs::write(dir.path().join("other.db"), bytes).unwrap();
    let output = run(dir.path(), &["replay", "other.db"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let expected = "other.db: this is a database, but not a record of a Headway run\nhelp: ";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn the_database_of_a_live_run_is_checked_and_what_is_wrong_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let record = dir.path().join("run.db");
    database(&record);
    let said = succeed(dir.path(), &["check", "run.db"]);
    let expected = "run.db: 3 inputs until 2s, 0 snapshots\n  samples: 0 admitted = 0 trained + 0 \
                    discarded + 0 outstanding + 0 parked\n  work: 0 started, 0 under way at the \
                    end\n  nothing is wrong\n";
    assert_eq!(said, expected);

    let change = |sql: &str| {
        rusqlite::Connection::open(&record).unwrap().execute_batch(sql).unwrap();
    };
    change("INSERT INTO steps VALUES (7, 0, '[]', 1, NULL, NULL)");
    let output = run(dir.path(), &["check", "run.db"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    let wrong = "WRONG: input 1: train step 7 is in the table, and was not started";
    assert!(said.contains(wrong), "{said}");

    change("UPDATE header SET value = '99' WHERE key = 'decision_version'");
    for command in ["check", "replay"] {
        let output = run(dir.path(), &[command, "run.db"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("help: "), "{}", stderr(&output));
    }
}

//! Records of simulated and of live runs replay.

use std::fs;
use std::path::Path;

use headway_runtime::store::{Batch, Database, Row, Writer};
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

    let mut bytes = fs::read(dir.path().join(record)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(dir.path().join("damaged.record"), bytes).unwrap();
    let output = run(dir.path(), &["replay", "damaged.record"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("help: "), "{}", stderr(&output));
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
    let writer = Writer::start(database, 4, true, |_| {}).unwrap();
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

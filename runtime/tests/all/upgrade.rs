//! A record that another decision version decided is taken over, or left as it is.

use std::path::Path;

use headway_runtime::driver::Recovery;
use headway_runtime::store::{replay, replay_stretches};
use serde_json::Value;

use crate::all::checks::nothing_is_wrong;
use crate::all::live::{SMALL, Setup, query, turn};
use crate::all::trajectories::Agent;
use crate::all::trajectories_killed as killed;

/// A stretch of a record: its inputs, its version, and whether it can be verified.
fn stretches(record: &Path) -> Vec<(u64, u64, u32, bool)> {
    let replayed = replay_stretches(record).unwrap();
    let each = replayed.iter().map(|(stretch, report)| {
        (stretch.from, stretch.to, stretch.decision_version, report.is_some())
    });
    each.collect()
}

fn change(record: &Path, sql: &str) {
    rusqlite::Connection::open(record).unwrap().execute_batch(sql).unwrap();
}

const OTHER: &str = "UPDATE header SET value = '99' WHERE key = 'decision_version'";

fn setup() -> Setup {
    let mut setup = Setup::new(SMALL);
    setup.checkpoints = true;
    setup.driver.keep_snapshots = 1;
    setup.driver.snapshot_every = 5;
    setup
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ended_in_order_is_taken_over_with_nothing_to_decide_again() {
    let dir = tempfile::tempdir().unwrap();
    let live = setup().start(dir.path()).await;
    for session in ["a", "b", "c"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.steps == 1 && status.gauges.output_queue == 1).await;
    let (ended, record) = live.end().await;
    ended.unwrap();
    change(&record, OTHER);
    let inputs: i64 = query(&record, "SELECT count(*) FROM inputs");
    let inputs = inputs.cast_unsigned();
    let error = replay(&record).unwrap_err().to_string();
    assert!(error.starts_with("the record has decision version 99"), "{error}");

    let live = setup().start(dir.path()).await;
    live.answer(&turn("d", "hello")).await;
    live.until(|status| status.ledger.steps == 2 && status.ledger.publications == 2).await;
    let ids: Vec<u64> = live.trainer.batches()[0].iter().map(|sample| sample.id.0).collect();
    assert_eq!(ids, [2, 3], "what was trained is not trained again, and what waited is");
    let (ended, record) = live.end().await;
    ended.unwrap();
    let epoch: String = query(&record, "SELECT from_input || ' ' || handled_again FROM epochs");
    assert_eq!(epoch, format!("{inputs} 0"));
    let found = stretches(&record);
    assert_eq!(found[0], (0, inputs, 99, false));
    assert_eq!((found.len(), found[1].0, found[1].3), (2, inputs, true));
    nothing_is_wrong(&record);
    // And again: it is this build's own now.
    let recovery = Recovery::open(&record, setup().config).unwrap();
    assert_eq!(recovery.taken_over(), None);
}

/// A killed run of trajectories, of which some are trained.
async fn killed_run(dir: &Path) -> std::path::PathBuf {
    let (mut child, url) = killed::start(dir, 0);
    let url = url.unwrap();
    for session in ["a", "b", "c"] {
        let mut agent = Agent::new(session);
        for last in [false, true] {
            let answer: Value = killed::ask(&url, &agent.asks("hello", last)).await.unwrap();
            agent.hears(&answer);
        }
    }
    killed::ask(&url, &Agent::new("open").asks("hello", false)).await.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let record = dir.join("run.db");
    // Whatever the last snapshot was: a tail remains.
    let tail = "DELETE FROM snapshots WHERE inputs > (SELECT max(seq) - 3 FROM inputs)";
    change(&record, &format!("{OTHER}; {tail}"));
    record
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_is_taken_over_where_that_contradicts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let record = killed_run(dir.path()).await;
    let trained = "SELECT group_concat(id) FROM samples WHERE fate = 'trained'";
    let before: Option<String> = query(&record, trained);
    let live = killed::setup().start(dir.path()).await;
    let answer = live.answer(&Agent::new("more").asks("hello", true)).await;
    assert_eq!(answer["sample_id"], 4);
    live.until(|status| status.ledger.trained > 0).await;
    let again: Vec<u64> = live.trainer.batches().iter().flatten().map(|s| s.id.0).collect();
    for id in before.iter().flat_map(|ids| ids.split(',')) {
        assert!(!again.contains(&id.parse().unwrap()), "sample {id} was trained before");
    }
    let (ended, record) = live.end().await;
    ended.unwrap();
    let again: i64 = query(&record, "SELECT handled_again FROM epochs");
    assert!(again > 0);
    nothing_is_wrong(&record);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_would_be_contradicted_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let record = killed_run(dir.path()).await;
    // As if the other version had seen to it before the run was killed.
    change(
        &record,
        "UPDATE samples SET fate = 'trained', step = 9, resolved = (SELECT max(seq) FROM inputs)
         WHERE id = 3",
    );
    let error = Recovery::open(&record, killed::setup().config).map(drop).unwrap_err().to_string();
    assert!(error.contains("sample 3 is `trained` in the table"), "{error}");
    assert!(error.contains("help: start it once with the build that wrote it"), "{error}");
    let epochs: i64 = query(&record, "SELECT count(*) FROM epochs");
    assert_eq!(epochs, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_of_another_layout_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let (_, record) = setup().start(dir.path()).await.end().await;
    let layout = "UPDATE snapshots
                  SET core = CAST(substr(core, 1, 8) || x'63000000' || substr(core, 13) AS BLOB)";
    change(&record, &format!("{OTHER}; {layout}"));
    let error = Recovery::open(&record, setup().config).map(drop).unwrap_err().to_string();
    assert!(error.contains("the snapshot has layout 99"), "{error}");
    assert!(error.contains("help: go on with the build that wrote it"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_the_first_format_is_brought_to_this_one() {
    let dir = tempfile::tempdir().unwrap();
    let (_, record) = setup().start(dir.path()).await.end().await;
    change(
        &record,
        "DROP VIEW generated; DROP TABLE turns; DROP TABLE epochs;
         UPDATE header SET value = '1' WHERE key = 'format'",
    );
    nothing_is_wrong(&record);
    let live = setup().start(dir.path()).await;
    live.answer(&turn("a", "hello")).await;
    let (ended, record) = live.end().await;
    ended.unwrap();
    let format: String = query(&record, "SELECT value FROM header WHERE key = 'format'");
    assert_eq!(format, "2");
    nothing_is_wrong(&record);
}

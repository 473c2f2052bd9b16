//! The record: readable, replayed to the same decisions, and never half written.

use std::path::Path;

use headway_runtime::driver::Recovery;
use headway_runtime::store::{StoreError, replay};
use serde_json::{Value, json};

use crate::all::live::{Live, SMALL, Setup, config, query, turn};

/// Three turns, of which two are a batch, and one that fails.
pub(super) async fn busy(dir: &Path) -> Live {
    let mut setup = Setup::new(SMALL);
    setup.driver.snapshot_every = 7;
    let live = setup.start(dir).await;
    for (session, text) in [("a", "hello"), ("b", "say:other"), ("c", "hello")] {
        live.answer(&turn(session, text)).await;
    }
    assert_eq!(live.ask(&turn("d", "fail")).await.status(), 500);
    live.until(|status| status.ledger.publications == 1 && status.ledger.outstanding() == 1).await;
    live
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_is_in_the_record_with_all_that_belongs_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let (ended, record) = busy(dir.path()).await.end().await;
    ended.unwrap();
    let text = |column: &str, id: u32| -> String {
        query(&record, &format!("SELECT {column} FROM samples WHERE id = {id}"))
    };
    assert_eq!(text("response", 0), "hello");
    assert_eq!(text("tokens", 0), "[104,101,108,108,111,256]");
    assert_eq!(text("segments", 0), "[[0,6]]");
    assert_eq!(text("finish", 0), "stop");
    assert_eq!(text("metadata", 0), "{\"answer\":\"hello\"}");
    let logprobs: Vec<f32> = serde_json::from_str(&text("logprobs", 0)).unwrap();
    assert_eq!(logprobs.len(), 6);
    let fates: String = query(&record, "SELECT group_concat(coalesce(fate, '-')) FROM samples");
    assert_eq!(fates, "trained,trained,-,generation_failed");
    let scores: String = query(&record, "SELECT group_concat(score) FROM samples WHERE step = 0");
    assert_eq!(scores, "1.0,0.0");
    let votes: i64 = query(&record, "SELECT count(*) FROM votes WHERE outcome = 'score'");
    assert_eq!(votes, 3);
    let step: String = query(&record, "SELECT samples || ok FROM steps");
    assert_eq!(step, "[0,1]1");
    let loss: f64 = query(&record, "SELECT value FROM step_metrics WHERE name = 'loss'");
    assert_eq!(loss, 0.5);
    let names: String = query(&record, "SELECT group_concat(name) FROM sessions");
    assert_eq!(names, "a,b,c,d");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_decides_the_same_from_the_start_and_from_a_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let live = busy(dir.path()).await;
    // Also while the run goes on.
    live.until(|status| status.committed == status.inputs).await;
    let inputs = live.driver.status().inputs;
    let report = replay(&live.record).unwrap();
    assert_eq!(report.decisions.inputs, inputs);
    assert!(report.snapshots > 0);
    let (ended, record) = live.end().await;
    ended.unwrap();
    let whole = replay(&record).unwrap();
    let oldest: i64 = query(&record, "SELECT min(inputs) FROM snapshots");
    let delete = format!("DELETE FROM inputs WHERE seq < {oldest}");
    rusqlite::Connection::open(&record).unwrap().execute_batch(&delete).unwrap();
    let tail = replay(&record).unwrap();
    assert_eq!((tail.end, tail.decisions.inputs), (whole.end, whole.decisions.inputs));
    assert!(tail.decisions.actions < whole.decisions.actions);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_used_by_one_process_and_only_by_its_own_kind() {
    let dir = tempfile::tempdir().unwrap();
    let live = busy(dir.path()).await;
    let second = Recovery::open(&live.record, config(SMALL)).map(drop).unwrap_err();
    assert!(matches!(second, StoreError::InUse), "{second}");
    let other = dir.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let error = Recovery::open(&other, config(SMALL)).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::NotARecord), "{error}");
    live.end().await.0.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_ends_the_run_and_acknowledges_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    live.answer(&turn("a", "hello")).await;
    live.engine.hold(true);
    let running = live.begin(&turn("b", "hello"));
    live.engine.wait_for_turns(1);
    live.until(|status| status.committed == status.inputs).await;
    let full = "CREATE TRIGGER full BEFORE INSERT ON inputs
                BEGIN SELECT raise(ABORT, 'database or disk is full'); END";
    rusqlite::Connection::open(&live.record).unwrap().execute_batch(full).unwrap();
    live.engine.hold(false);
    let lost = running.await.unwrap();
    assert_eq!(lost.status(), 500);
    let error: Value = lost.json().await.unwrap();
    assert_eq!(error["error"]["code"], "unrecorded");
    let refused = live.ask(&turn("c", "hello")).await;
    assert_eq!(refused.status(), 503);
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["message"], "the run has ended");
    let ready: Value = live.get("/readyz").await.json().await.unwrap();
    let reason = ready["reason"].as_str().unwrap();
    assert!(reason.contains("database or disk is full"), "{reason}");
    let (ended, record) = live.end().await;
    assert!(ended.unwrap_err().to_string().starts_with("the record could not be written"));
    replay(&record).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_not_in_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(SMALL);
    setup.gateway.api_key = headway_runtime::secret::Secret::new("very-secret-key");
    let live = setup.start(dir.path()).await;
    let body = json!({"messages": [{"role": "user", "content": "hi"}], "turn_type": "main"});
    let answered = live.post(&body).bearer_auth("very-secret-key").send().await.unwrap();
    assert_eq!(answered.status(), 200);
    let (_, record) = live.end().await;
    let bytes = std::fs::read(&record).unwrap();
    assert!(!bytes.windows(15).any(|window| window == b"very-secret-key"));
}

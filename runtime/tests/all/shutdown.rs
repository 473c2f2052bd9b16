//! A run ends in order, and goes on where it ended.

use std::path::Path;

use headway_runtime::shared::config::OverLimit;
use headway_runtime::shared::rule::Rule;
use headway_runtime::shared::time::Span;
use headway_runtime::store::replay;
use serde_json::{Value, json};

use crate::all::checks::nothing_is_wrong;
use crate::all::live::{SMALL, Setup, query, turn};

fn setup() -> Setup {
    let mut setup = Setup::new(SMALL);
    setup.checkpoints = true;
    setup
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_is_answered_and_nothing_new_is_admitted() {
    let dir = tempfile::tempdir().unwrap();
    let live = setup().start(dir.path()).await;
    live.engine.hold(true);
    let running = live.begin(&turn("a", "hello"));
    live.engine.wait_for_turns(1);
    live.driver.shut_down(headway_runtime::shared::time::Span::from_secs(20)).await;
    live.until(|status| status.ending).await;
    let refused = live.ask(&turn("b", "hello")).await;
    assert_eq!(refused.status(), 503);
    let ready: Value = live.get("/readyz").await.json().await.unwrap();
    assert_eq!(ready["reason"], "the run is ending");
    live.engine.hold(false);
    assert_eq!(running.await.unwrap().status(), 200);
    let record = live.record.clone();
    live.ended().await.unwrap();
    replay(&record).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_end_in_time_is_aborted() {
    let dir = tempfile::tempdir().unwrap();
    let live = setup().start(dir.path()).await;
    live.engine.hold(true);
    let running = live.begin(&turn("a", "hello"));
    live.engine.wait_for_turns(1);
    live.driver.shut_down(headway_runtime::shared::time::Span::ZERO).await;
    assert_eq!(running.await.unwrap().status(), 500);
    let record = live.record.clone();
    live.ended().await.unwrap();
    let fate: String = query(&record, "SELECT fate FROM samples");
    assert_eq!(fate, "generation_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_with_what_was_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let live = setup().start(dir.path()).await;
    for session in ["a", "b", "c"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.steps == 1 && status.gauges.output_queue == 1).await;
    let before = live.driver.status();
    let (ended, _) = live.end().await;
    ended.unwrap();

    let live = setup().start(dir.path()).await;
    let status = live.driver.status();
    assert_eq!((status.learner, status.gauges.output_queue), (before.learner, 1));
    assert!(status.now > before.now);
    live.answer(&turn("d", "hello")).await;
    live.until(|status| status.ledger.steps == 2).await;
    let ids: Vec<u64> = live.trainer.batches()[0].iter().map(|sample| sample.id.0).collect();
    assert_eq!(ids, [2, 3]);
    assert_eq!(live.trainer.batches()[0][0].tokens.len(), 8 + 6);
    let (ended, record) = live.end().await;
    ended.unwrap();
    replay(&record).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_waits_for_its_user_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[policy_training]\n batch_size = 1";
    let start = || {
        let mut setup = Setup::new(text);
        setup.checkpoints = true;
        let rule = Rule::read("matches(next_state, 'thanks')");
        setup.judge = std::sync::Arc::new(rule.unwrap());
        setup
    };
    let live = start().start(dir.path()).await;
    live.answer(&turn("a", "hello")).await;
    live.until(|status| status.committed == status.inputs).await;
    live.end().await.0.unwrap();
    let live = start().start(dir.path()).await;
    live.answer(&turn("a", "thanks")).await;
    live.until(|status| status.ledger.trained == 1).await;
    assert_eq!(live.trainer.batches()[0][0].reward, 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_submission_starts_paused_and_a_later_one_resumes() {
    let dir = tempfile::tempdir().unwrap();
    let mut paused = setup();
    paused.driver.submission_enabled = false;
    let live = paused.start(dir.path()).await;
    let refused = live.ask(&turn("a", "hello")).await;
    assert_eq!(refused.status(), 503);
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["code"], json!("paused"));
    live.end().await.0.unwrap();
    let live = setup().start(dir.path()).await;
    live.answer(&turn("a", "hello")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_configuration_is_taken_up_at_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let live = setup().start(dir.path()).await;
    live.answer(&turn("a", "hello")).await;
    live.end().await.0.unwrap();
    let mut other = Setup::new(&SMALL.replace("batch_size = 2", "batch_size = 1"));
    other.checkpoints = true;
    let live = other.start(dir.path()).await;
    live.until(|status| status.ledger.steps == 1).await;
    let (ended, record) = live.end().await;
    ended.unwrap();
    let kinds: i64 = query(&record, "SELECT count(*) FROM inputs WHERE input LIKE '%reconfigure%'");
    assert_eq!(kinds, 1);
    replay(&record).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_checkpoint_loses_what_came_after_it_and_versions_go_on_upward() {
    let dir = tempfile::tempdir().unwrap();
    let live = setup().start(dir.path()).await;
    for session in ["a", "b", "c", "d"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.steps == 2 && status.ledger.publications == 2).await;
    live.answer(&turn("e", "hello")).await;
    live.end().await.0.unwrap();
    std::fs::write(dir.path().join("checkpoint"), "1 0").unwrap();
    let live = setup().start(dir.path()).await;
    let status = live.driver.status();
    assert_eq!(status.learner.number(), 3);
    let lost = headway_runtime::shared::action::Discard::LostWeights;
    assert_eq!(status.ledger.discarded[lost.index()], 1);
    live.end().await.0.unwrap();
    std::fs::write(dir.path().join("checkpoint"), "9 0").unwrap();
    let error = setup().try_start(dir.path()).await.map(drop).unwrap_err().to_string();
    assert!(error.starts_with("the trainer's checkpoint is version 9"), "{error}");
}

/// As the record of a run that is killed at this moment.
fn copy_record(from: &Path, folder: &Path) {
    let to = folder.join("run.db");
    let connection = rusqlite::Connection::open(from).unwrap();
    connection.execute("VACUUM INTO ?1", [to.to_str().unwrap()]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_a_crash_ended_over_an_older_checkpoint_trains_nothing_that_is_lost() {
    let (dir, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let live = setup().start(dir.path()).await;
    for session in ["a", "b", "c", "d"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.steps == 2 && status.ledger.publications == 2).await;
    live.trainer.hold(true);
    for session in ["e", "f"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.gauges.training && status.committed == status.inputs).await;
    copy_record(&live.record, killed.path());
    live.trainer.hold(false);
    live.end().await.0.unwrap();
    std::fs::write(killed.path().join("checkpoint"), "1 0").unwrap();
    let live = setup().start(killed.path()).await;
    let status = live.driver.status();
    assert_eq!((status.learner.number(), status.gauges.training), (3, false));
    let lost = headway_runtime::shared::action::Discard::LostWeights;
    assert_eq!(status.ledger.discarded[lost.index()], 2);
    for session in ["g", "h"] {
        live.ask_until_served(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.steps == 3).await;
    let (trained, (ended, record)) = (live.trainer.batches(), live.end().await);
    ended.unwrap();
    assert_eq!(trained.len(), 1, "the batch of g and h, and not that of e and f");
    let steps: String = query(&record, "SELECT group_concat(ok) FROM steps");
    assert_eq!(steps, "1,1,0,1");
    nothing_is_wrong(&record);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_place_does_not_hold_up_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = setup();
    setup.config.policy_serving.over_limit = OverLimit::Hold;
    let live = setup.start(dir.path()).await;
    live.trainer.hold(true);
    let mut waiting = Vec::new();
    while live.driver.status().gauges.held == 0 {
        waiting.push(live.begin(&turn(&format!("{}", waiting.len()), "hello")));
        live.until(|status| status.ledger.offered as usize == waiting.len()).await;
    }
    live.trainer.hold(false);
    live.driver.shut_down(Span::from_secs(1_000_000)).await;
    live.ended().await.unwrap();
    let last = waiting.pop().unwrap().await.unwrap();
    assert_eq!(last.status(), 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_step_gives_its_samples_back() {
    let dir = tempfile::tempdir().unwrap();
    let live = setup().start(dir.path()).await;
    live.trainer.fail_steps(2);
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    let status = live.until(|status| status.ledger.steps == 1).await;
    assert_eq!((status.ledger.failed_steps, status.ledger.trained), (2, 2));
    let (ended, record) = live.end().await;
    ended.unwrap();
    let steps: String = query(&record, "SELECT group_concat(ok) FROM steps");
    assert_eq!(steps, "0,0,1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_completed_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let start = || {
        let text = SMALL.replace("batch_size = 2", "batch_size = 1\n group_size = 2");
        let mut setup = Setup::new(&text);
        setup.checkpoints = true;
        setup
    };
    let member = |session: &str| {
        let mut body = turn(session, "hello");
        body["group_id"] = json!("mine");
        body
    };
    let live = start().start(dir.path()).await;
    live.answer(&member("a")).await;
    live.end().await.0.unwrap();
    let live = start().start(dir.path()).await;
    live.answer(&member("b")).await;
    live.until(|status| status.ledger.trained == 2).await;
}

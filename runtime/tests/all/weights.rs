//! Weights reach the engine, or do not.

use headway_runtime::shared::action::Discard;
use serde_json::{Value, json};

use crate::all::engine::LoadScript;
use crate::all::live::{Live, Setup, query, turn};

fn text(more: &str) -> String {
    format!(
        "{more}
        [reward_judging]
        judge_needs = \"turn\"
        [policy_training]
        batch_size = 2
        max_head_off_policyness = 4"
    )
}

/// Two turns, which are a batch.
async fn train_once(live: &Live) {
    let steps = live.driver.status().ledger.steps;
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.steps == steps + 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_get_503_inside_the_window_alone_and_the_new_version_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let serving = "[policy_serving]\n sync_mode = \"pause_drain\"";
    let live = Setup::new(&text(serving)).start(dir.path()).await;
    train_once(&live).await;
    live.until(|status| status.ledger.publications == 1).await;
    // A turn that runs keeps the next window open.
    live.trainer.hold(true);
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.engine.hold(true);
    let running = live.begin(&turn("c", "hello"));
    live.engine.wait_for_turns(1);
    live.trainer.hold(false);
    live.until(|status| status.gauges.closed).await;
    let refused = live.ask(&turn("d", "hello")).await;
    assert_eq!(refused.status(), 503);
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait));
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["message"], "submission paused for weight update");
    live.engine.hold(false);
    let response = running.await.unwrap();
    assert_eq!(response.headers()["x-policy-versions"], "1:6");
    live.until(|status| status.ledger.publications == 2).await;
    let after = live.ask(&turn("d", "hello")).await;
    assert_eq!(after.headers()["x-policy-versions"], "2:6");
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_change_under_a_running_turn_and_its_segments_say_where() {
    let dir = tempfile::tempdir().unwrap();
    let serving = "[policy_serving]\n sync_mode = \"in_flight\"";
    let live = Setup::new(&text(serving)).start(dir.path()).await;
    live.trainer.hold(true);
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    let mut body = turn("c", "long:30");
    body["stream"] = json!(true);
    live.engine.hold_after(10);
    let mut long = live.ask(&body).await;
    assert_eq!(long.headers()["x-policy-version"], "0");
    live.engine.wait_until_held();
    live.trainer.hold(false);
    live.until(|status| status.ledger.publications == 1).await;
    live.engine.hold(false);
    while long.chunk().await.unwrap().is_some() {}
    live.until(|status| status.committed == status.inputs).await;
    let segments: String = query(&live.record, "SELECT segments FROM samples WHERE id = 2");
    assert_eq!(segments, "[[0,10],[1,21]]");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_save_is_counted_and_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let serving = "[policy_serving]\n publish_retry_delay_sec = 0.001";
    let live = Setup::new(&text(serving)).start(dir.path()).await;
    live.trainer.fail_saves(2);
    train_once(&live).await;
    let status = live.until(|status| status.ledger.publications == 1).await;
    assert_eq!(status.ledger.failed_publications, 2);
    let after = live.ask(&turn("c", "hello")).await;
    assert_eq!(after.headers()["x-policy-versions"], "1:6");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_that_always_fails_ends_the_run_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let serving = "[policy_serving]\n publish_retry_delay_sec = 0.001\n publish_retries = 1";
    let live = Setup::new(&text(serving)).start(dir.path()).await;
    live.trainer.fail_saves(100);
    train_once(&live).await;
    let status = live.until(|status| status.error.is_some()).await;
    assert!(status.error.unwrap().starts_with("publication failed 2 times in a row"));
    let refused = live.ask(&turn("c", "hello")).await;
    assert_eq!(refused.status(), 503);
    let (ended, _) = live.end().await;
    assert!(ended.unwrap_err().to_string().starts_with("publication failed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hung_load_is_abandoned_and_the_gate_reopens() {
    let dir = tempfile::tempdir().unwrap();
    let serving = "[policy_serving]\n load_timeout_sec = 0.01\n publish_retry_delay_sec = 0.001";
    let live = Setup::new(&text(serving)).start(dir.path()).await;
    live.engine.loads(LoadScript::Hangs);
    train_once(&live).await;
    live.until(|status| status.ledger.failed_publications >= 1).await;
    live.engine.loads(LoadScript::Good);
    live.until(|status| status.ledger.publications == 1 && !status.gauges.closed).await;
    let after = live.ask(&turn("c", "hello")).await;
    assert_eq!(after.headers()["x-policy-versions"], "1:6");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_fails_whole_keeps_the_old_weights_serving() {
    let dir = tempfile::tempdir().unwrap();
    let serving = "[policy_serving]\n publish_retry_delay_sec = 60";
    let live = Setup::new(&text(serving)).start(dir.path()).await;
    live.engine.loads(LoadScript::Fails);
    train_once(&live).await;
    live.until(|status| status.ledger.failed_publications == 1).await;
    let after = live.ask(&turn("c", "hello")).await;
    assert_eq!(after.headers()["x-policy-versions"], "0:6");
    live.engine.loads(LoadScript::Breaks);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_dies_is_named_and_its_turns_fail() {
    let dir = tempfile::tempdir().unwrap();
    let serving = "[policy_serving]\n aborted = \"discard\"";
    let live = Setup::new(&text(serving)).start(dir.path()).await;
    live.engine.hold(true);
    let running = live.begin(&turn("a", "hello"));
    live.engine.wait_for_turns(1);
    live.engine.die();
    assert_eq!(running.await.unwrap().status(), 500);
    let refused = live.ask(&turn("b", "hello")).await;
    assert_eq!(refused.status(), 503);
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["code"], "no_replica");
    let ready: Value = live.get("/readyz").await.json().await.unwrap();
    assert_eq!(ready["reason"], "policy serving blocks: no replica holds whole weights");
}

#[tokio::test(flavor = "multi_thread")]
async fn probabilities_that_are_no_numbers_are_not_trained_on() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(&text("")).start(dir.path()).await;
    assert_eq!(live.ask(&turn("a", "nan")).await.status(), 500);
    let status = live.driver.status();
    assert_eq!(status.ledger.discarded[Discard::GenerationFailed.index()], 1);
    live.answer(&turn("b", "hello")).await;
    live.until(|status| status.committed == status.inputs).await;
    let kept: i64 = query(&live.record, "SELECT count(*) FROM samples WHERE tokens IS NOT NULL");
    assert_eq!(kept, 1);
}

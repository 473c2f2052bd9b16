//! All five ways in which weights reach two replicas, and every way in which they do not.

use headway_runtime::store::replay;
use serde_json::{Value, json};

use crate::all::engine::LoadScript;
use crate::all::live::{Live, Setup, query, turn};

const MODES: [&str; 5] = ["pause_drain", "pause_abort", "pause_keep", "in_flight", "rolling"];

async fn start(dir: &tempfile::TempDir, mode: &str, serving: &str) -> Live {
    let text = format!(
        "[policy_serving]
        sync_mode = \"{mode}\"
        aborted = \"resume\"
        {serving}
        [reward_judging]
        judge_needs = \"turn\"
        [policy_training]
        batch_size = 2
        max_head_off_policyness = 4"
    );
    let mut setup = Setup::new(&text);
    setup.replicas = 2;
    setup.start(dir.path()).await
}

/// Two turns, which are a batch, with a trainer that does not train it yet.
async fn fill_a_batch(live: &Live) {
    live.trainer.hold(true);
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
}

/// A streamed turn of 31 tokens on each replica, of which 10 are generated.
async fn begin_long_turns(live: &Live) -> Vec<reqwest::Response> {
    live.engines.iter().for_each(|engine| engine.hold_after(10));
    let mut streams = Vec::new();
    for session in ["c", "d"] {
        let mut body = turn(session, "long:30");
        body["stream"] = json!(true);
        streams.push(live.ask(&body).await);
    }
    for engine in &live.engines {
        engine.wait_for_turns(1);
        engine.wait_until_held();
    }
    streams
}

/// One step, whose weights are published, and no second one.
async fn train_once(live: &Live) {
    live.trainer.hold(false);
    live.until(|status| status.ledger.steps == 1).await;
    live.trainer.hold(true);
}

async fn is_refused(live: &Live) {
    let refused = live.ask(&turn("e", "hello")).await;
    assert_eq!(refused.status(), 503);
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["message"], "submission paused for weight update");
}

/// The run ends in order; the segments of the two long turns.
async fn end(live: Live) -> [String; 2] {
    let (ended, record) = live.end().await;
    ended.unwrap();
    replay(&record).unwrap();
    let of = |id: u32| query(&record, &format!("SELECT segments FROM samples WHERE id = {id}"));
    [of(2), of(3)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mode_that_pauses_refuses_inside_its_window_alone() {
    for (mode, segments) in [
        ("pause_drain", "[[0,31]]"),
        ("pause_abort", "[[0,10],[1,21]]"),
        ("pause_keep", "[[0,10],[1,21]]"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let live = start(&dir, mode, "").await;
        live.engines.iter().for_each(|engine| engine.loads(LoadScript::Waits));
        fill_a_batch(&live).await;
        let streams = begin_long_turns(&live).await;
        assert!(!live.driver.status().gauges.closed, "{mode}: not before the window");
        train_once(&live).await;
        live.until(|status| status.gauges.closed).await;
        is_refused(&live).await;
        // A mode that drains loads only then; frozen turns stand still until they are loaded.
        live.engines.iter().for_each(|engine| engine.hold(false));
        is_refused(&live).await;
        live.engines.iter().for_each(|engine| engine.loads(LoadScript::Good));
        for stream in streams {
            assert!(stream.text().await.unwrap().contains("\"finish_reason\":\"stop\""));
        }
        live.until(|status| status.ledger.publications == 1 && !status.gauges.closed).await;
        let after = live.ask(&turn("e", "hello")).await;
        assert_eq!(after.headers()["x-policy-versions"], "1:6", "{mode}");
        live.trainer.hold(false);
        assert_eq!(end(live).await, [segments, segments], "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_that_change_in_flight_close_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(&dir, "in_flight", "").await;
    live.engines.iter().for_each(|engine| engine.loads(LoadScript::Waits));
    fill_a_batch(&live).await;
    let streams = begin_long_turns(&live).await;
    train_once(&live).await;
    let asked = live.begin(&turn("e", "hello"));
    live.until(|status| status.gauges.running == 3).await;
    live.engines.iter().for_each(|engine| engine.loads(LoadScript::Good));
    live.until(|status| status.ledger.publications == 1).await;
    live.engines.iter().for_each(|engine| engine.hold(false));
    assert_eq!(asked.await.unwrap().status(), 200);
    for stream in streams {
        assert!(stream.text().await.unwrap().contains("\"finish_reason\":\"stop\""));
    }
    assert_eq!(live.driver.status().ledger.refused.iter().sum::<u64>(), 0);
    live.trainer.hold(false);
    assert_eq!(end(live).await, ["[[0,10],[1,21]]"; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_load_one_after_the_other_leave_one_that_serves() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(&dir, "rolling", "").await;
    live.engines.iter().for_each(|engine| engine.loads(LoadScript::Waits));
    fill_a_batch(&live).await;
    let streams = begin_long_turns(&live).await;
    train_once(&live).await;
    // The first one drains, then loads; the second serves meanwhile, of the two the one without a turn.
    live.engines[1].hold(false);
    live.until(|status| status.gauges.running == 1).await;
    for place in [0, 1] {
        let served = live.ask(&turn("e", "hello")).await;
        assert_eq!(served.headers()["x-policy-versions"], "0:6", "{place}");
        live.engines[0].hold(false);
        live.engines[0].wait_for_turns(0);
    }
    // Then the first, with the new version, while the second loads.
    live.engines[0].loads(LoadScript::Good);
    live.until(|status| status.gauges.publish_lag_sum == 1).await;
    live.engines[1].wait_for_turns(0);
    let served = live.ask(&turn("f", "hello")).await;
    assert_eq!(served.headers()["x-policy-versions"], "1:6");
    live.engines[1].loads(LoadScript::Good);
    live.until(|status| status.ledger.publications == 1).await;
    for stream in streams {
        assert!(stream.text().await.unwrap().contains("\"finish_reason\":\"stop\""));
    }
    assert_eq!(live.driver.status().ledger.refused.iter().sum::<u64>(), 0);
    live.trainer.hold(false);
    assert_eq!(end(live).await, ["[[0,31]]"; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_on_one_replica_the_other_goes_on_and_it_is_tried_again() {
    let failures = [
        // A transfer and a load that is whole leave the old weights; one that hangs or breaks does not.
        (LoadScript::Lost, 2),
        (LoadScript::Fails, 2),
        (LoadScript::Hangs, 1),
        (LoadScript::Breaks, 1),
    ];
    for mode in MODES {
        for (failure, up) in failures {
            let dir = tempfile::tempdir().unwrap();
            let serving = "publish_retry_delay_sec = 0.002\n publish_retries = 100
                transfer_timeout_sec = 0.01\n load_timeout_sec = 0.01";
            let live = start(&dir, mode, serving).await;
            live.engines[1].loads(failure);
            for session in ["a", "b"] {
                live.answer(&turn(session, "hello")).await;
            }
            live.until(|status| status.ledger.failed_publications > 0).await;
            live.until(|status| status.gauges.replicas_up == up).await;
            live.ask_until_served(&turn("c", "hello")).await;
            live.engines[1].loads(LoadScript::Good);
            let status = live.until(|status| status.ledger.publications == 1).await;
            assert_eq!((status.gauges.replicas_up, status.gauges.closed), (2, false), "{mode}");
            assert_eq!(status.gauges.publish_lag_sum, 0, "{mode} {failure:?}");
            let after = live.ask(&turn("e", "hello")).await;
            assert_eq!(after.headers()["x-policy-versions"], "1:6", "{mode} {failure:?}");
            let (ended, record) = live.end().await;
            ended.unwrap();
            replay(&record).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_replica_is_left_the_gate_stays_closed_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(&dir, "pause_drain", "publish_retry_delay_sec = 60").await;
    live.engines.iter().for_each(|engine| engine.loads(LoadScript::Breaks));
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.failed_publications == 1).await;
    let refused = live.ask(&turn("c", "hello")).await;
    assert_eq!(refused.status(), 503);
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["code"], "no_replica");
    let ready = live.get("/readyz").await;
    assert_eq!(ready.status(), 503);
    let ready: Value = ready.json().await.unwrap();
    assert_eq!(ready["reason"], "policy serving blocks: no replica holds whole weights");
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_that_always_fail_end_the_run_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let serving = "publish_retry_delay_sec = 0.001\n publish_retries = 2";
    let live = start(&dir, "in_flight", serving).await;
    live.engines[0].loads(LoadScript::Fails);
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    let status = live.until(|status| status.error.is_some()).await;
    assert_eq!(status.ledger.failed_publications, 3, "the first, and two more");
    assert!(status.error.unwrap().starts_with("publication failed 3 times in a row"));
    let (ended, record) = live.end().await;
    assert!(ended.unwrap_err().to_string().starts_with("publication failed"));
    replay(&record).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_that_hangs_is_given_up_and_its_late_weights_take_no_place() {
    let dir = tempfile::tempdir().unwrap();
    let serving = "publish_retry_delay_sec = 0.001\n publish_retries = 100
        save_timeout_sec = 0.02";
    let live = start(&dir, "in_flight", serving).await;
    live.trainer.hold_saves(true);
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.failed_publications >= 2).await;
    live.trainer.hold_saves(false);
    live.until(|status| status.ledger.publications == 1).await;
    let after = live.ask(&turn("c", "hello")).await;
    assert_eq!(after.headers()["x-policy-versions"], "1:6");
    let (ended, record) = live.end().await;
    ended.unwrap();
    replay(&record).unwrap();
}

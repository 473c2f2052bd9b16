//! A live run held to an envelope: judges that fail, and what the guard does about it.

use headway_runtime::secret::Secret;
use headway_runtime::shared::config::{Envelope, GuardSettings, OnDeviation, Range};
use headway_runtime::shared::guard::Verdict;
use headway_runtime::shared::metrics::METRICS;
use headway_runtime::shared::time::Span;
use headway_runtime::store;
use serde_json::{Value, json};

use crate::all::live::{Live, Setup, config, turn};

/// Batches of 2; a vote that is no score discards its sample.
const PROMOTED: &str = "
    [policy_serving]
    sync_mode = \"in_flight\"
    [reward_judging]
    judge_needs = \"turn\"
    judge_retries = 0
    [policy_training]
    batch_size = 2
    max_head_off_policyness = 4
";

/// Short windows that may discard one sample in ten.
pub(super) fn guard(on_deviation: OnDeviation) -> GuardSettings {
    let metric = METRICS.iter().find(|metric| metric.name == "discarded_share").unwrap();
    let ranges = vec![(metric, Range { low: 0.0, high: 0.1 })];
    GuardSettings {
        on_deviation,
        patience: 2,
        settle: Span::ZERO,
        envelope: Envelope { window: Span::from_millis(20), ranges },
        previous: Some(Box::new(config(&PROMOTED.replace("batch_size = 2", "batch_size = 1")))),
    }
}

async fn start(dir: &tempfile::TempDir, on_deviation: OnDeviation) -> Live {
    let mut setup = Setup::new(PROMOTED);
    setup.driver.guard = Some(guard(on_deviation));
    setup.gateway.admin_token = Secret::new("token");
    setup.start(dir.path()).await
}

/// Asks until the guard has found something; `answered`: with what a judge can score.
async fn play(live: &Live, answered: bool, wished: impl Fn(&Value) -> bool) -> Value {
    for number in 0.. {
        let mut body = turn(&format!("{answered}-{number}"), "hello");
        if !answered {
            body["metadata"] = json!({});
        }
        // While the bound is reached, a refusal is right.
        let _ = live.ask(&body).await;
        let guard = found(live).await;
        if wished(&guard) {
            return guard;
        }
    }
    Value::Null
}

async fn found(live: &Live) -> Value {
    let request = live.client.get(format!("{}/admin/state", live.url)).bearer_auth("token");
    let state: Value = request.send().await.unwrap().json().await.unwrap();
    state["guard"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deviation_is_shown_and_counted_and_ends_when_the_run_is_well_again() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(&dir, OnDeviation::Log).await;
    let well = play(&live, true, |guard| guard["last"]["readings"][0]["value"] == 0.0).await;
    assert_eq!((&well["deviations"], &well["last"]["verdict"]), (&json!(0), &json!("within")));
    let ill = play(&live, false, |guard| guard["deviating"] == true).await;
    let reading = &ill["deviation"]["readings"][0];
    assert_eq!((&reading["metric"], &reading["high"]), (&json!("discarded_share"), &json!(0.1)));
    assert!(reading["value"].as_f64().unwrap() > 0.1, "{ill}");
    assert_eq!(reading["windows_outside"], 2);
    let page = live.get("/metrics").await.text().await.unwrap();
    for line in ["headway_guard_deviating 1", "headway_guard_deviations_total 1"] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    let well = play(&live, true, |guard| guard["deviating"] == false).await;
    assert_eq!((&well["deviations"], &well["rolled_back"]), (&json!(1), &json!(false)));
    let (ended, record) = live.end().await;
    ended.unwrap();
    // It has logged, and changed nothing.
    let replayed = store::replay_stretches(&record).unwrap();
    assert!(replayed.iter().all(|(_, report)| report.is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_brings_the_previous_configuration_back_by_a_recorded_input() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(&dir, OnDeviation::Rollback).await;
    play(&live, false, |guard| guard["rolled_back"] == true).await;
    let status = live.driver.status();
    let deviation = status.guard.unwrap().deviation.clone().unwrap();
    assert_eq!(deviation.verdict, Verdict::RollBack);
    live.until_nothing_is_kept().await;
    // One sample is a batch again, whatever else waited.
    let steps = live.driver.status().ledger.steps;
    live.ask_until_served(&turn("after", "hello")).await;
    let status = live.until(|status| status.ledger.steps > steps).await;
    assert_eq!(status.gauges.output_queue, 0);
    let (ended, record) = live.end().await;
    ended.unwrap();
    for (_, report) in store::check(&record).unwrap() {
        assert_eq!(report.unwrap().findings, []);
    }
}

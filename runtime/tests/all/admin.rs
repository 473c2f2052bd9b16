//! What operators and probes see and do.

use headway_runtime::secret::Secret;
use serde_json::{Value, json};

use crate::all::live::{Live, SMALL, Setup, turn};

async fn live(dir: &tempfile::TempDir, token: Option<&str>) -> Live {
    let mut setup = Setup::new(SMALL);
    setup.gateway.admin_token = token.and_then(Secret::new);
    setup.start(dir.path()).await
}

async fn call(live: &Live, method: &str, path: &str) -> reqwest::Response {
    let method = method.parse().unwrap();
    let request = live.client.request(method, format!("{}{path}", live.url));
    request.bearer_auth("token").send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_api_is_off_unless_a_token_is_set() {
    let dir = tempfile::tempdir().unwrap();
    let off = live(&dir, None).await;
    assert_eq!(call(&off, "GET", "/admin/state").await.status(), 404);
    let dir = tempfile::tempdir().unwrap();
    let other = live(&dir, Some("other")).await;
    for (method, path) in [("GET", "/admin/state"), ("POST", "/admin/pause")] {
        assert_eq!(call(&other, method, path).await.status(), 401);
    }
    assert_eq!(other.get("/admin/ledger").await.status(), 401);
    assert!(!other.driver.status().gauges.closed);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_pauses_and_resumes() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir, Some("token")).await;
    assert_eq!(live.get("/readyz").await.status(), 200);
    assert_eq!(call(&live, "POST", "/admin/pause").await.status(), 200);
    let refused = live.ask(&turn("s", "hello")).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "60");
    let ready = live.get("/readyz").await;
    assert_eq!(ready.status(), 503);
    let ready: Value = ready.json().await.unwrap();
    assert_eq!(ready["reason"], "the run blocks: an operator has paused it");
    assert_eq!(call(&live, "POST", "/admin/resume").await.status(), 200);
    live.answer(&turn("s", "hello")).await;
    let ledger: Value = call(&live, "GET", "/admin/ledger").await.json().await.unwrap();
    assert_eq!((&ledger["offered"], &ledger["admitted"]), (&json!(2), &json!(1)));
    assert_eq!(ledger["refused"]["paused"], 1);
    let state: Value = call(&live, "GET", "/admin/state").await.json().await.unwrap();
    assert_eq!(state["replicas_up"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_and_metrics_are_there_for_prometheus() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir, None).await;
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.publications == 1).await;
    let text = live.get("/metrics").await.text().await.unwrap();
    for line in [
        "headway_trained_total 2",
        "headway_learner_version 1",
        "headway_refused_total{reason=\"stale\"} 0",
        "# TYPE headway_trained_total counter",
        "headway_run_staleness_head_mean 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_names_every_path_that_answers() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir, Some("token")).await;
    let description: Value = live.get("/openapi.json").await.json().await.unwrap();
    let paths = description["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 15);
    for (path, methods) in paths {
        for method in methods.as_object().unwrap().keys() {
            let response = call(&live, &method.to_uppercase(), path).await;
            let status = response.status().as_u16();
            let known = !matches!(status, 404 | 405 | 500);
            assert!(known, "{method} {path}: {status}");
        }
        // And no other method does.
        for method in ["get", "put", "post", "patch", "delete"] {
            if methods.get(method).is_none() {
                let response = call(&live, &method.to_uppercase(), path).await;
                assert_eq!(response.status(), 405, "{method} {path}");
            }
        }
    }
    let models: Value = live.get("/v1/models").await.json().await.unwrap();
    assert_eq!(models["data"][0]["id"], "policy");
    let health: Value = live.get("/healthz").await.json().await.unwrap();
    assert_eq!(health, json!({"ok": true}));
}

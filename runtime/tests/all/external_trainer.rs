//! A trainer outside: it pulls, trains, reports; it crashes, is late, says things twice.

use headway_runtime::shared::time::Span;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::all::engine::script;
use crate::all::live::query;
use crate::all::outside::{Run, text};
use crate::all::sglang_server::SglangServer;

struct World {
    dir: tempfile::TempDir,
    server: SglangServer,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = SglangServer::start(dir.path(), |prompt| script(prompt).0);
        Self { dir, server }
    }

    /// A run that lends tasks for so long.
    async fn run(&self, lease: Span) -> Run {
        let engines = [self.server.url()];
        let text = text("sync_mode = \"in_flight\"");
        let run = Run::start(self.dir.path(), &text, &engines, lease).await;
        run.until(|status| status.gauges.replicas_up == 1).await;
        run
    }
}

const LONG: Span = Span::from_secs(60);
const SHORT: Span = Span::from_nanos(20_000_000);

fn code(said: &Value) -> &str {
    said["error"]["code"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_pulled_reported_and_published() {
    let world = World::new();
    let run = world.run(LONG).await;
    run.turns("a", 2).await;
    let task = run.pull("one").await;
    assert_eq!((&task["task"], &task["version"]), (&json!("train"), &json!(0)));
    assert_eq!(task["lease_sec"], 60.0);
    assert_eq!(task["correction"]["name"], "ppo_clip");
    let samples = task["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 2);
    for sample in samples {
        let length = sample["tokens"].as_array().unwrap().len();
        for list in ["loss_mask", "rollout_log_probs", "versions"] {
            assert_eq!(sample[list].as_array().unwrap().len(), length, "{list}");
        }
        let trained = sample["loss_mask"].as_array().unwrap().iter().filter(|mask| **mask == 1);
        assert_eq!(trained.count(), 6);
    }
    let (status, said) = run.report(&task, Some(world.dir.path())).await;
    assert_eq!((status, said), (StatusCode::OK, json!({"counted": true, "version": 1})));
    run.until_published(1).await;
    assert_eq!(world.server.label(), "headway-1");
    run.until(|status| status.committed == status.inputs).await;
    let loss: f64 = query(&run.record, "SELECT value FROM step_metrics WHERE name = 'loss'");
    assert_eq!(loss, 0.25);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_reported_twice_is_trained_once() {
    let world = World::new();
    let run = world.run(LONG).await;
    run.turns("a", 2).await;
    let task = run.pull("one").await;
    assert_eq!(run.report(&task, None).await.1["counted"], true);
    assert_eq!(run.report(&task, None).await.1["counted"], false);
    let status = run.until(|status| status.ledger.steps == 1).await;
    assert_eq!((status.ledger.trained, status.learner.number()), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_whose_trainer_crashed_goes_to_another_and_the_first_learns_of_it() {
    let world = World::new();
    let run = world.run(SHORT).await;
    run.turns("a", 2).await;
    let first = run.pull("one").await;
    let second = run.pull("two").await;
    assert_eq!(first["samples"], second["samples"], "nothing is lost");
    assert_ne!(first["lease"], second["lease"]);
    let (status, said) = run.trainer("heartbeat", json!({"lease": first["lease"]})).await;
    assert_eq!((status, code(&said)), (StatusCode::CONFLICT, "lease_lost"));
    assert_eq!(run.report(&second, None).await.1["counted"], true);
    assert_eq!(run.report(&first, None).await.1["counted"], false, "late, and the same batch");
    assert_eq!(run.until(|status| status.ledger.steps == 1).await.ledger.trained, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_trainer_is_refused_while_another_has_its_step() {
    let world = World::new();
    let run = world.run(LONG).await;
    run.turns("a", 2).await;
    let first = run.pull("one").await;
    // The same name asks again: it has crashed, and gets its step at once.
    let again = run.pull("one").await;
    assert_eq!(first["batch"], again["batch"]);
    let (status, said) = run.report(&first, None).await;
    assert_eq!((status, code(&said)), (StatusCode::CONFLICT, "lease_lost"));
    assert!(said["error"]["message"].as_str().unwrap().contains("pull again"), "{said}");
    let (status, _) = run.trainer("heartbeat", json!({"lease": again["lease"]})).await;
    assert_eq!(status, 200);
    assert_eq!(run.report(&again, None).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_nobody_else_took_may_be_reported_late() {
    let world = World::new();
    let run = world.run(Span::from_nanos(1)).await;
    run.turns("a", 2).await;
    let task = run.pull("one").await;
    assert_eq!(run.report(&task, None).await.1["counted"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_that_a_report_does_not_name_are_asked_for() {
    let world = World::new();
    let run = world.run(LONG).await;
    run.turns("a", 2).await;
    let task = run.pull("one").await;
    run.report(&task, None).await;
    let task = run.pull("one").await;
    assert_eq!((&task["task"], &task["version"]), (&json!("save"), &json!(1)));
    let (status, said) = run.trainer("weights", json!({"version": 2, "path": "/x"})).await;
    assert_eq!((status, code(&said)), (StatusCode::CONFLICT, "other_version"));
    let body = json!({"version": 1, "path": world.dir.path()});
    assert_eq!(run.trainer("weights", body).await.1, json!({"published": true}));
    run.until_published(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_failed_is_tried_again_with_the_same_samples() {
    let world = World::new();
    let run = world.run(LONG).await;
    run.turns("a", 2).await;
    let task = run.pull("one").await;
    let body = json!({"version": 0, "batch": task["batch"], "lease": task["lease"], "ok": false});
    assert_eq!(run.trainer("report", body).await.0, 200);
    let again = run.pull("one").await;
    assert_eq!(again["samples"], task["samples"]);
    assert_eq!(run.report(&again, None).await.1["counted"], true);
    let status = run.until(|status| status.ledger.steps == 1).await;
    assert_eq!(status.ledger.failed_steps, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_in_the_middle_of_a_lease_loses_and_doubles_nothing() {
    let world = World::new();
    let run = world.run(LONG).await;
    run.turns("a", 2).await;
    let task = run.pull("one").await;
    run.end().await;
    let run = world.run(LONG).await;
    // The batch has the same name, so that what was trained meanwhile counts.
    let other = run.pull("two").await;
    assert_eq!(other["batch"], task["batch"]);
    let (status, said) = run.report(&task, None).await;
    assert_eq!((status, code(&said)), (StatusCode::CONFLICT, "lease_lost"));
    assert_eq!(run.report(&other, Some(world.dir.path())).await.1["counted"], true);
    run.until_published(1).await;
    run.end().await;
    // What was reported is known for good.
    let run = world.run(LONG).await;
    assert_eq!(run.report(&task, None).await.1["counted"], false);
    let status = run.until(|status| status.gauges.replicas_up == 1).await;
    assert_eq!((status.ledger.trained, status.learner.number()), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trainer_with_other_parameters_is_told_what_to_load() {
    let world = World::new();
    let run = world.run(LONG).await;
    run.train_once("a", world.dir.path()).await;
    run.until_published(1).await;
    run.turns("b", 2).await;
    let pull = json!({"trainer": "one", "version": 0, "wait_sec": 20});
    let (status, said) = run.trainer("pull", pull).await;
    assert_eq!((status, code(&said)), (StatusCode::CONFLICT, "other_version"));
    let message = said["error"]["message"].as_str().unwrap();
    assert!(message.contains(world.dir.path().to_str().unwrap()), "{message}");
    let (status, _) = run.trainer("pull", json!({"trainer": "one", "version": 1})).await;
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trainer_that_went_back_goes_on_with_the_version_that_it_has() {
    let world = World::new();
    let run = world.run(LONG).await;
    run.train_once("a", world.dir.path()).await;
    run.until_published(1).await;
    let book = world.dir.path().join("trainer.json");
    let first = std::fs::read(&book).unwrap();
    run.train_once("b", world.dir.path()).await;
    run.until_published(2).await;
    run.end().await;
    std::fs::write(&book, first).unwrap();
    let run = world.run(LONG).await;
    let pull = |version: u32| json!({"trainer": "one", "version": version, "wait_sec": 20});
    // The parameters of version 1 are version 3, whose weights nobody has written.
    let (status, task) = run.trainer("pull", pull(1)).await;
    assert_eq!(
        (status, &task["task"], &task["version"]),
        (StatusCode::OK, &json!("save"), &json!(3))
    );
    let body = json!({"version": 3, "path": world.dir.path()});
    assert_eq!(run.trainer("weights", body).await.1, json!({"published": true}));
    run.until_published(3).await;
    run.turns("c", 2).await;
    let (status, said) = run.trainer("pull", pull(2)).await;
    assert_eq!((status, code(&said)), (StatusCode::CONFLICT, "other_version"));
    let (status, task) = run.trainer("pull", pull(1)).await;
    assert_eq!((status, &task["version"]), (StatusCode::OK, &json!(3)), "{task}");
    let (status, said) = run.report(&task, Some(world.dir.path())).await;
    assert_eq!((status, &said["version"]), (StatusCode::OK, &json!(4)));
    run.until(|status| status.ledger.steps == 3 && status.learner.number() == 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_and_nonsense_are_refused() {
    let world = World::new();
    let run = world.run(LONG).await;
    let client = crate::all::live::client();
    let pull = client.post(format!("{}/trainer/pull", run.url)).json(&json!({"trainer": "x"}));
    assert_eq!(pull.send().await.unwrap().status(), 401);
    assert_eq!(run.trainer("pull", json!({"trainer": "x"})).await.0, StatusCode::NO_CONTENT);
    for (path, body) in [
        ("pull", json!({})),
        ("pull", json!({"trainer": "x", "wait_sec": 1e9})),
        ("report", json!({"version": 0, "batch": "x", "weights": "relative/folder"})),
        ("report", json!({"version": 0, "batch": "x", "reward": 1})),
    ] {
        assert_eq!(run.trainer(path, body.clone()).await.0, 400, "{body}");
    }
    let (status, said) = run.trainer("report", json!({"version": 0, "batch": "x"})).await;
    assert_eq!((status, code(&said)), (StatusCode::CONFLICT, "other_batch"));
    let description = client.get(format!("{}/openapi.json", run.url)).send().await.unwrap();
    let description: Value = description.json().await.unwrap();
    for path in ["pull", "heartbeat", "report", "weights", "state"] {
        assert!(description["paths"].get(format!("/trainer/{path}")).is_some(), "{path}");
    }
}

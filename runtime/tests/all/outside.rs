//! A run whose engine and trainer are outside: a server that speaks the protocol of SGLang or vLLM,
//! and whoever pulls batches over HTTP.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use headway_runtime::driver::{self, DriverHandle, Parts, Recovery, Status};
use headway_runtime::engine::{RemoteEngine, ServerKind};
use headway_runtime::gateway::{self, Training};
use headway_runtime::secret::Secret;
use headway_runtime::shared::id::ReplicaId;
use headway_runtime::shared::rule::Rule;
use headway_runtime::shared::time::Span;
use headway_runtime::shared::version::DeployVersion;
use headway_runtime::tokenizer::Bytes;
use headway_runtime::trainer::external::ExternalTrainer;
use headway_runtime::{engine, trainer};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::live::{client, config, turn};

const PATIENCE: Duration = Duration::from_secs(20);

/// Judged by the answer in `metadata`, in batches of 2.
pub(super) fn text(serving: &str) -> String {
    format!(
        "[policy_serving]\n{serving}\npublish_retry_delay_sec = 0.001
        [reward_judging]
        judge_needs = \"turn\"
        [policy_training]
        batch_size = 2
        max_head_off_policyness = 4"
    )
}

/// How often a server is looked at: a test waits for it.
const LOOK: Duration = Duration::from_millis(5);

/// A run that is going on.
pub(super) struct Run {
    pub(super) url: String,
    pub(super) driver: DriverHandle,
    pub(super) record: PathBuf,
    run: JoinHandle<Result<(), driver::DriverError>>,
    client: Client,
    _stop: oneshot::Sender<()>,
}

impl Run {
    /// Starts, or goes on; does not wait for the engines.
    pub(super) async fn start(dir: &Path, text: &str, engines: &[String], lease: Span) -> Self {
        Self::start_as(dir, text, engines, lease, gateway::Options::default()).await
    }

    /// The same with a gateway of these options.
    pub(super) async fn start_as(
        dir: &Path,
        text: &str,
        engines: &[String],
        lease: Span,
        options: gateway::Options,
    ) -> Self {
        Self::start_with(dir, text, engines, lease, options, ServerKind::Sglang).await
    }

    /// The same with engines of another kind.
    pub(super) async fn start_with(
        dir: &Path,
        text: &str,
        engines: &[String],
        lease: Span,
        options: gateway::Options,
        kind: ServerKind,
    ) -> Self {
        let record = dir.join("run.db");
        let recovery = Recovery::open(&record, config(text)).unwrap();
        let clock = recovery.clock();
        let newest = DeployVersion::new(recovery.learner().number());
        let links = engines.iter().enumerate().map(|(index, url)| {
            let replica = ReplicaId(u32::try_from(index).unwrap());
            let mut made = RemoteEngine::new(kind, url, Secret::new("engine-key"), newest);
            made.probe_interval = LOOK;
            engine::spawn(replica, clock, 1024, made).unwrap()
        });
        let (external, desk) = ExternalTrainer::new(dir.join("trainer.json"), lease).unwrap();
        let parts = Parts {
            tokenizer: Arc::new(Bytes),
            judge: Arc::new(Rule::exact()),
            engines: links.collect(),
            trainer: trainer::spawn(clock, external).unwrap(),
        };
        let started = driver::start(recovery, parts, driver::Options::default()).await;
        let (driver, run) = started.unwrap();
        let (listener, address) = gateway::listen("127.0.0.1", 0).await.unwrap();
        let training = Training { desk, token: Secret::new("trainer-token").unwrap() };
        let options = gateway::Options { training: Some(training), ..options };
        let router = gateway::router(driver.clone(), Arc::new(Bytes), options);
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(gateway::serve(listener, router, async { drop(stopped.await) }));
        let url = format!("http://{address}");
        Self { url, driver, record, run, client: client(), _stop: stop }
    }

    /// Starts with one engine, and waits until it is up.
    pub(super) async fn with(dir: &Path, serving: &str, engine: &str) -> Self {
        let run = Self::start(dir, &text(serving), &[engine.to_owned()], Span::from_secs(60)).await;
        run.until(|status| status.gauges.replicas_up == 1).await;
        run
    }

    pub(super) async fn ask(&self, body: &Value) -> Response {
        let request = self.client.post(format!("{}/v1/chat/completions", self.url)).json(body);
        let answer = tokio::time::timeout(PATIENCE, request.send()).await;
        answer.unwrap_or_else(|_| panic!("it stays {:#?}", self.driver.status())).unwrap()
    }

    pub(super) fn begin(&self, body: &Value) -> JoinHandle<Response> {
        let request = self.client.post(format!("{}/v1/chat/completions", self.url)).json(body);
        tokio::spawn(async { request.send().await.unwrap() })
    }

    /// Asks until so many main turns are answered, each in a session of its own.
    pub(super) async fn turns(&self, name: &str, count: usize) {
        for number in 0..count {
            let response = self.ask(&turn(&format!("{name}-{number}"), "hello")).await;
            assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        }
    }

    pub(super) async fn trainer(&self, path: &str, body: Value) -> (StatusCode, Value) {
        let request = self.client.post(format!("{}/trainer/{path}", self.url));
        let request = request.bearer_auth("trainer-token").json(&body);
        let response = tokio::time::timeout(PATIENCE, request.send()).await.unwrap().unwrap();
        let status = response.status();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or(Value::Null))
    }

    /// Waits for something to do.
    pub(super) async fn pull(&self, trainer: &str) -> Value {
        let (status, task) =
            self.trainer("pull", json!({"trainer": trainer, "wait_sec": 20})).await;
        assert_eq!(status, 200, "{task}");
        task
    }

    /// Reports that a task is done, with new weights in a directory.
    pub(super) async fn report(&self, task: &Value, weights: Option<&Path>) -> (StatusCode, Value) {
        let body = json!({
            "version": task["version"], "batch": task["batch"], "lease": task["lease"],
            "metrics": {"loss": 0.25}, "weights": weights,
        });
        self.trainer("report", body).await
    }

    /// Two turns, and the step that they make.
    pub(super) async fn train_once(&self, name: &str, weights: &Path) {
        self.turns(name, 2).await;
        let task = self.pull("one").await;
        let (status, said) = self.report(&task, Some(weights)).await;
        assert_eq!(status, 200, "{said}");
    }

    /// Waits until the run is as wished.
    pub(super) async fn until(&self, wished: impl FnMut(&Status) -> bool) -> Status {
        let mut driver = self.driver.clone();
        let found = tokio::time::timeout(PATIENCE, driver.until(wished)).await;
        found.unwrap_or_else(|_| panic!("it stays {:#?}", self.driver.status())).unwrap()
    }

    /// Waits until so many publications are loaded.
    pub(super) async fn until_published(&self, times: u64) {
        self.until(|status| status.ledger.publications == times && !status.gauges.closed).await;
    }

    /// Ends the run at once, with what is under way.
    pub(super) async fn end(self) {
        self.driver.shut_down(Span::ZERO).await;
        tokio::time::timeout(PATIENCE, self.run).await.unwrap().unwrap().unwrap();
    }
}

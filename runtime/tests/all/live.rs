//! A live run: gateway, driver and record, with a scripted engine and trainer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use headway_runtime::driver::{self, DriverError, DriverHandle, Parts, Recovery, Status};
use headway_runtime::gateway;
use headway_runtime::judge::Judge;
use headway_runtime::shared::config::{Config, Layers, load_config};
use headway_runtime::shared::id::ReplicaId;
use headway_runtime::shared::rule::Rule;
use headway_runtime::shared::time::Span;
use headway_runtime::tokenizer::Bytes;
use headway_runtime::{engine, trainer};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::engine::{EngineControl, Scripted};
use super::trainer::{Scripted as ScriptedTrainer, TrainerControl};
use headway_runtime::trainer::Probe;

/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Judged by the answer in `metadata`, in batches of 2; no request sees a sync window.
pub(super) const SMALL: &str = "
    [policy_serving]
    sync_mode = \"in_flight\"
    [reward_judging]
    judge_needs = \"turn\"
    [policy_training]
    batch_size = 2
    max_head_off_policyness = 4
";

pub(super) fn config(text: &str) -> Config {
    load_config(&Layers::new().toml("config.toml", text)).unwrap().0
}

/// What a run is made of.
pub(super) struct Setup {
    pub(super) config: Config,
    pub(super) judge: Arc<dyn Judge>,
    pub(super) gateway: gateway::Options,
    pub(super) driver: driver::Options,
    /// The trainer keeps checkpoints.
    pub(super) checkpoints: bool,
}

impl Setup {
    pub(super) fn new(text: &str) -> Self {
        Self {
            config: config(text),
            judge: Arc::new(Rule::exact()),
            gateway: gateway::Options::default(),
            driver: driver::Options::default(),
            checkpoints: false,
        }
    }

    pub(super) async fn start(self, dir: &Path) -> Live {
        self.try_start(dir).await.unwrap()
    }

    pub(super) async fn try_start(self, dir: &Path) -> Result<Live, DriverError> {
        let record = dir.join("run.db");
        let recovery = Recovery::open(&record, self.config)?;
        let (engine, trainer) = (EngineControl::new(), TrainerControl::default());
        let script = Scripted { control: engine.clone(), version: 0 };
        let clock = recovery.clock();
        let link = engine::spawn(ReplicaId(0), clock, 1024, script).unwrap();
        let checkpoint = self.checkpoints.then(|| dir.join("checkpoint"));
        let probe = Probe(self.driver.probe.clone());
        let script = ScriptedTrainer { control: trainer.clone(), checkpoint, probe };
        let parts = Parts {
            tokenizer: Arc::new(Bytes),
            judge: self.judge,
            engines: vec![link],
            trainer: trainer::spawn(clock, script).unwrap(),
        };
        let (mut driver, run) = driver::start(recovery, parts, self.driver).await?;
        driver.until(|status| status.gauges.replicas_up == 1).await.unwrap();
        let (listener, address) = gateway::listen("127.0.0.1", 0).await.unwrap();
        let router = gateway::router(driver.clone(), Arc::new(Bytes), self.gateway);
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(gateway::serve(listener, router, async { drop(stopped.await) }));
        let url = format!("http://{address}");
        Ok(Live { url, driver, run, engine, trainer, record, client: client(), _stop: stop })
    }
}

pub(super) fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new()
}

/// A run that is going on.
pub(super) struct Live {
    pub(super) url: String,
    pub(super) driver: DriverHandle,
    run: JoinHandle<Result<(), DriverError>>,
    pub(super) engine: EngineControl,
    pub(super) trainer: TrainerControl,
    pub(super) record: PathBuf,
    pub(super) client: Client,
    _stop: oneshot::Sender<()>,
}

/// A main turn of a session.
pub(super) fn turn(session: &str, text: &str) -> Value {
    json!({
        "messages": [{"role": "user", "content": text}],
        "session_id": session,
        "turn_type": "main",
        "metadata": {"answer": text},
    })
}

impl Live {
    pub(super) fn post(&self, body: &Value) -> RequestBuilder {
        self.client.post(format!("{}/v1/chat/completions", self.url)).json(body)
    }

    pub(super) async fn ask(&self, body: &Value) -> Response {
        tokio::time::timeout(PATIENCE, self.post(body).send()).await.unwrap().unwrap()
    }

    /// The answer to a request that must be answered.
    pub(super) async fn answer(&self, body: &Value) -> Value {
        let response = self.ask(body).await;
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        response.json().await.unwrap()
    }

    pub(super) async fn get(&self, path: &str) -> Response {
        self.client.get(format!("{}{path}", self.url)).send().await.unwrap()
    }

    /// Asks without waiting for the answer.
    pub(super) fn begin(&self, body: &Value) -> JoinHandle<Response> {
        let request = self.post(body);
        tokio::spawn(async { request.send().await.unwrap() })
    }

    /// Waits until the run is as wished.
    pub(super) async fn until(&self, wished: impl FnMut(&Status) -> bool) -> Status {
        let mut driver = self.driver.clone();
        let found = tokio::time::timeout(PATIENCE, driver.until(wished)).await;
        found.unwrap_or_else(|_| panic!("it stays {:#?}", self.driver.status())).unwrap()
    }

    /// Ends the run in order, and returns how it ended.
    pub(super) async fn end(self) -> (Result<(), DriverError>, PathBuf) {
        self.driver.shut_down(Span::from_secs(10)).await;
        let ended = tokio::time::timeout(PATIENCE, self.run).await.unwrap().unwrap();
        (ended, self.record)
    }

    /// Waits for a run that ends by itself.
    pub(super) async fn ended(self) -> Result<(), DriverError> {
        tokio::time::timeout(PATIENCE, self.run).await.unwrap().unwrap()
    }
}

/// Reads a record as the `sqlite3` shell would.
pub(super) fn query<T: rusqlite::types::FromSql>(record: &Path, sql: &str) -> T {
    let connection = rusqlite::Connection::open(record).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

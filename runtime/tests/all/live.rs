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
use headway_runtime::tokenizer::{Bytes, Tokenizer};
use headway_runtime::{engine, trainer};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
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
    pub(super) replicas: u32,
    pub(super) tokenizer: Arc<dyn Tokenizer>,
    /// Where it serves; 0: anywhere.
    pub(super) port: u16,
}

impl Setup {
    pub(super) fn new(text: &str) -> Self {
        Self {
            config: config(text),
            judge: Arc::new(Rule::exact()),
            gateway: gateway::Options::default(),
            driver: driver::Options::default(),
            checkpoints: false,
            replicas: 1,
            tokenizer: Arc::new(Bytes),
            port: 0,
        }
    }

    pub(super) async fn start(self, dir: &Path) -> Live {
        self.try_start(dir).await.unwrap()
    }

    pub(super) async fn try_start(self, dir: &Path) -> Result<Live, DriverError> {
        let record = dir.join("run.db");
        let recovery = Recovery::open(&record, self.config)?;
        let trainer = TrainerControl::default();
        let clock = recovery.clock();
        let (mut engines, mut links) = (Vec::new(), Vec::new());
        for replica in 0..self.replicas {
            let control = EngineControl::new();
            control.comes_up(false);
            let script = Scripted { control: control.clone(), version: 0 };
            links.push(engine::spawn(ReplicaId(replica), clock, 1024, script).unwrap());
            engines.push(control);
        }
        let checkpoint = self.checkpoints.then(|| dir.join("checkpoint"));
        let probe = Probe(self.driver.probe.clone());
        let script = ScriptedTrainer { control: trainer.clone(), checkpoint, probe };
        let parts = Parts {
            tokenizer: self.tokenizer.clone(),
            judge: self.judge,
            engines: links,
            trainer: trainer::spawn(clock, script).unwrap(),
        };
        let (mut driver, run) = driver::start(recovery, parts, self.driver).await?;
        // One after the other, so that the core knows them in this order.
        for (before, engine) in (0..).zip(&engines) {
            driver.until(|status| status.gauges.replicas_up == before).await.unwrap();
            engine.comes_up(true);
        }
        driver.until(|status| status.gauges.replicas_up == self.replicas).await.unwrap();
        let (listener, address) = gateway::listen("127.0.0.1", self.port).await.unwrap();
        let router = gateway::router(driver.clone(), self.tokenizer, self.gateway);
        let served = gateway::Serving::start(listener, router);
        let url = format!("http://{address}");
        let engine = engines[0].clone();
        Ok(Live { url, driver, run, engine, engines, trainer, record, client: client(), served })
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
    pub(super) run: JoinHandle<Result<(), DriverError>>,
    /// The first replica's.
    pub(super) engine: EngineControl,
    pub(super) engines: Vec<EngineControl>,
    pub(super) trainer: TrainerControl,
    pub(super) record: PathBuf,
    pub(super) client: Client,
    pub(super) served: gateway::Serving,
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

    /// Asks until it is served; until then only a weight update may be in the way.
    pub(super) async fn ask_until_served(&self, body: &Value) -> Response {
        loop {
            let response = self.ask(body).await;
            if response.status() == 200 {
                return response;
            }
            assert_eq!(response.status(), 503);
            let error: Value = response.json().await.unwrap();
            assert_eq!(error["error"]["code"], "weight_sync", "{error}");
        }
    }

    /// Waits until nothing is on its way, and sees that nothing of it is kept.
    pub(super) async fn until_nothing_is_kept(&self) -> Status {
        let nothing = |status: &Status| {
            let kept = headway_runtime::driver::Kept { sessions: 0, ..status.kept };
            kept == headway_runtime::driver::Kept::default()
        };
        self.until(nothing).await
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

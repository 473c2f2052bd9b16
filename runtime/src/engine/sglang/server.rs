//! The calls of a server.

use std::time::Duration;

use headway_shared::action::InFlight;
use headway_shared::config::KvOnSync;
use headway_shared::version::DeployVersion;
use reqwest::Response;
use serde::Serialize;
use serde_json::{Value, json};

use super::chunk::Reader;
use crate::engine::Generate;
use crate::engine::remote::calls::{self, CallError, Calls, MOST_SHOWN, SHORT};
use crate::engine::remote::{Loaded, Order, Protocol, Standing, Sync, label};
use crate::secret::Secret;

/// The path of turns.
const GENERATE: &str = "/generate";
/// How long to wait before a refused flush is tried again.
const AGAIN: Duration = Duration::from_millis(50);

/// What a server does with the turns in flight while it loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    /// It ends them.
    Abort,
    /// It puts them back into its queue and computes their cache again afterwards.
    Retract,
    /// They stand still and keep their cache.
    InPlace,
}

impl From<Sync> for Pause {
    fn from(sync: Sync) -> Self {
        match (sync.in_flight, sync.kv) {
            (InFlight::Drained, _) => Self::Abort,
            (InFlight::Frozen | InFlight::Running, KvOnSync::Recompute) => Self::Retract,
            (InFlight::Frozen | InFlight::Running, KvOnSync::Keep) => Self::InPlace,
        }
    }
}

/// What is asked of it for a turn, beside its ids.
#[derive(Serialize)]
struct Turn<'t> {
    rid: &'t str,
    sampling_params: Value,
    return_logprob: bool,
    stream: bool,
}

/// A server.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Server(Calls);

impl Server {
    /// Empties its cache; refused while anything runs.
    async fn flush(&self) -> Result<(), CallError> {
        self.0.call("/flush_cache", None, Some(SHORT)).await.map(drop)
    }

    /// Loads a checkpoint, and labels it. Takes as long as it takes.
    async fn update(&self, order: &Order) -> Result<(), CallError> {
        let body = json!({
            "model_path": order.path,
            "weight_version": label(order.version),
            "abort_all_requests": false,
            "flush_cache": Pause::from(order.sync) != Pause::InPlace,
        });
        let path = "/update_weights_from_disk";
        let text = self.0.call(path, Some(&body), None).await?;
        let answer: Option<Value> = serde_json::from_str(&text).ok();
        match answer.as_ref().and_then(|answer| answer["success"].as_bool()) {
            Some(true) => Ok(()),
            Some(false) => {
                let said = text.chars().take(MOST_SHOWN).collect();
                Err(CallError::Refused { path, status: 200, said })
            }
            None => Err(CallError::Garbage { path, what: "the answer does not say `success`" }),
        }
    }
}

impl Protocol for Server {
    type Reader = Reader;

    const BROKEN: Option<&'static str> = None;
    const CONFIRMS: bool = false;

    fn connect(url: &str, key: Option<Secret>) -> Result<Self, reqwest::Error> {
        Calls::new(url, key, GENERATE).map(Self)
    }

    async fn model(&self) -> Result<String, CallError> {
        let path = "/get_model_info";
        let answer = self.0.ask(path).await?;
        let named =
            ["tokenizer_path", "model_path"].into_iter().find_map(|key| answer[key].as_str());
        let what = "the answer has no text `model_path`";
        named.map(str::to_owned).ok_or(CallError::Garbage { path, what })
    }

    fn calls(&self) -> &Calls {
        &self.0
    }

    async fn probe(&self) -> Result<String, CallError> {
        self.0.call("/health", None, Some(SHORT)).await?;
        self.0.label("/get_weight_version").await
    }

    async fn usable(&self) -> Result<(), String> {
        Ok(())
    }

    async fn name(&self, version: DeployVersion) -> Result<(), CallError> {
        let body = json!({"new_version": label(version), "abort_all_requests": false});
        self.0.call("/update_weight_version", Some(&body), Some(SHORT)).await.map(drop)
    }

    async fn generate(&self, generate: &Generate, rid: &str) -> Result<Response, CallError> {
        let mut sampling = calls::sampling(generate);
        sampling["top_k"] = json!(-1);
        sampling["max_new_tokens"] = json!(calls::left(generate));
        // SGLang's seeds have 31 bits to spare on every backend.
        let seed = generate.sampling.seed;
        sampling["sampling_seed"] = json!((seed ^ seed >> 32) & 0x7fff_ffff);
        let body = Turn { rid, sampling_params: sampling, return_logprob: true, stream: true };
        self.0.turn("input_ids", generate, &body).await
    }

    fn reader(&self, _: Standing) -> Reader {
        Reader::default()
    }

    async fn abort(&self, rid: &str) -> Result<(), CallError> {
        let body = json!({"rid": rid, "abort_all": false});
        self.0.call("/abort_request", Some(&body), Some(SHORT)).await.map(drop)
    }

    /// Pauses the server, and empties its cache where turns do not keep theirs. A flush is refused
    /// while anything runs, so it is tried until it is granted.
    async fn prepare(&self, sync: Sync) -> Result<(), String> {
        let pause = Pause::from(sync);
        let mode = match pause {
            Pause::Abort => "abort",
            Pause::Retract => "retract",
            Pause::InPlace => "in_place",
        };
        let body = json!({"mode": mode});
        let paused = self.0.call("/pause_generation", Some(&body), Some(SHORT)).await;
        paused.map_err(|error| error.to_string())?;
        if pause == Pause::InPlace {
            return Ok(());
        }
        loop {
            match self.flush().await {
                Ok(()) => return Ok(()),
                Err(CallError::Refused { .. }) => tokio::time::sleep(AGAIN).await,
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    async fn load(&self, order: Order) -> Loaded {
        let failed = self.update(&order).await.err();
        let now = self.probe().await;
        let holds = |version| now.as_ref().is_ok_and(|now| *now == label(version));
        match failed {
            None if holds(order.version) => Loaded::Whole,
            None => {
                let now =
                    now.map_or_else(|error| error.to_string(), |now| format!("its label is {now}"));
                let label = label(order.version);
                let why = format!("the server said that it loaded {label}, but {now}");
                Loaded::Failed { intact: false, why }
            }
            // A server that cannot read a checkpoint keeps the old weights, and with them their
            // label.
            Some(error) => {
                let intact = order.before.is_some_and(holds);
                Loaded::Failed { intact, why: error.to_string() }
            }
        }
    }

    async fn go_on(&self) -> Result<(), CallError> {
        self.0.call("/continue_generation", Some(&json!({})), Some(SHORT)).await.map(drop)
    }
}

//! SGLang as a serving engine, over HTTP.
//!
//! Turns go to `/generate` as token ids, with `return_logprob` and as a stream: what is trained on
//! are the ids and log-probabilities that the server sent, and every piece of the stream carries the
//! label of the weights that made it. Headway's labels are `headway-VERSION`; a token with another
//! label, or none, fails its turn. Weights are directories that the server reads itself.
//!
//! A server that dies takes its turns with it ([`Lost`](super::EngineEvent::Lost)); when it answers
//! again, it is up with the version that its label says. The label `default` is that of a server
//! that was started and never updated: it holds the checkpoint that the run began with, version 0.
//!
//! `docs/engines.md` says which calls are made and what is exact.

mod chunk;
mod load;
mod server;
mod serving;
mod turn;

use std::time::Duration;

use headway_shared::version::DeployVersion;

use super::{Engine, EngineMailbox};
use crate::secret::Secret;
use server::Server;
use serving::Serving;

/// What an engine is made of.
#[derive(Clone, Debug)]
pub struct SglangEngine {
    /// Where the server listens, such as `http://127.0.0.1:31000`.
    pub url: String,
    /// The key it asks for, if any.
    pub key: Option<Secret>,
    /// The newest version that a server can hold when the run begins or goes on: the learner's.
    pub newest: DeployVersion,
    /// How long to wait between two looks at whether it is still there.
    pub probe_interval: Duration,
}

impl SglangEngine {
    /// An engine that looks at its server every second.
    #[must_use]
    pub fn new(url: &str, key: Option<Secret>, newest: DeployVersion) -> Self {
        let url = url.trim_end_matches('/').to_owned();
        Self { url, key, newest, probe_interval: Duration::from_secs(1) }
    }
}

impl Engine for SglangEngine {
    fn run(self, mailbox: EngineMailbox) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let server = Server::new(&self.url, self.key.clone());
        // To return is to be down.
        match (runtime, server) {
            (Ok(runtime), Ok(server)) => {
                let serving = Serving::new(server, self.newest, self.probe_interval, &mailbox);
                runtime.block_on(serving.serve(mailbox.commands));
            }
            (Err(error), _) => eprintln!("engine {}: {error}", self.url),
            (_, Err(error)) => eprintln!("engine {}: {error}", self.url),
        }
    }
}

/// The server does not say what it serves.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {why}")]
pub struct NoModel {
    /// The server.
    pub url: String,
    /// What it said, or did not.
    pub why: String,
}

/// The directory of the tokenizer and model that a server was started with, as its own file system
/// has it.
///
/// # Errors
/// [`NoModel`]: it is not there, or says something else.
pub async fn served_model(url: &str, key: Option<Secret>) -> Result<String, NoModel> {
    let failed = |why: String| NoModel { url: url.to_owned(), why };
    let server = Server::new(url.trim_end_matches('/'), key).map_err(|e| failed(e.to_string()))?;
    server.model().await.map_err(|error| failed(error.to_string()))
}

/// The label of a version.
fn label(version: DeployVersion) -> String {
    format!("headway-{}", version.number())
}

/// The version that a label names, if it is one of Headway's.
fn version_of(label: &str) -> Option<DeployVersion> {
    let number = label.strip_prefix("headway-")?;
    number.parse().ok().map(DeployVersion::new)
}

/// The label of a server that was started without one.
const UNLABELLED: &str = "default";

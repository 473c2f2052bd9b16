//! SGLang as a serving engine, over HTTP.
//!
//! Turns go to `/generate` as token ids, with `return_logprob` and as a stream: what is trained on
//! are the ids and log-probabilities that the server sent, and every piece of the stream carries the
//! label of the weights that made it. A token with a label that is none of Headway's, or with none,
//! fails its turn. Weights are directories that the server reads itself.
//!
//! `docs/engines.md` says which calls are made and what is exact.

mod chunk;
mod server;

use std::time::Duration;

use headway_shared::version::DeployVersion;

use super::remote;
use super::{Engine, EngineMailbox, NoModel};
use crate::secret::Secret;
use server::Server;

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
        Self { url: url.to_owned(), key, newest, probe_interval: Duration::from_secs(1) }
    }
}

impl Engine for SglangEngine {
    fn run(self, mailbox: EngineMailbox) {
        let server = Server::new(&self.url, self.key);
        remote::run(&self.url, server, self.newest, self.probe_interval, mailbox);
    }
}

/// The directory of the tokenizer and model that a server was started with, as its own file system
/// has it.
///
/// # Errors
/// [`NoModel`]: it is not there, or says something else.
pub async fn served_model(url: &str, key: Option<Secret>) -> Result<String, NoModel> {
    let failed = |why: String| NoModel { url: url.to_owned(), why };
    let server = Server::new(url, key).map_err(|error| failed(error.to_string()))?;
    server.model().await.map_err(|error| failed(error.to_string()))
}

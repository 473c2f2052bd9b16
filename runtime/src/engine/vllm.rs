//! vLLM as a serving engine, over HTTP.
//!
//! Turns go to `/inference/v1/generate`, tokens in and tokens out, as a stream: what is trained on are
//! the ids and log-probabilities that the server sent. vLLM says at the end of a turn which label each
//! of its tokens was made under; labels change while it is paused, and nowhere else. So a token's
//! version is known when it comes as long as no load has begun since its turn did. Once one has, the
//! rest of the turn is kept back until its end, and is stamped by what the server says then. What was
//! stamped before is compared with it, too: a turn whose stamps the server does not confirm fails.
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
pub struct VllmEngine {
    /// Where the server listens, such as `http://127.0.0.1:8100`.
    pub url: String,
    /// The key it asks for, if any.
    pub key: Option<Secret>,
    /// The newest version that a server can hold when the run begins or goes on: the learner's.
    pub newest: DeployVersion,
    /// How long to wait between two looks at whether it is still there.
    pub probe_interval: Duration,
}

impl VllmEngine {
    /// An engine that looks at its server every second.
    #[must_use]
    pub fn new(url: &str, key: Option<Secret>, newest: DeployVersion) -> Self {
        Self { url: url.to_owned(), key, newest, probe_interval: Duration::from_secs(1) }
    }
}

impl Engine for VllmEngine {
    fn run(self, mailbox: EngineMailbox) {
        let server = Server::new(&self.url, self.key);
        remote::run(&self.url, server, self.newest, self.probe_interval, mailbox);
    }
}

/// The model that a server was started with: a directory as its own file system has it, or a name.
///
/// # Errors
/// [`NoModel`]: it is not there, or says something else.
pub async fn served_model(url: &str, key: Option<Secret>) -> Result<String, NoModel> {
    let failed = |why: String| NoModel { url: url.to_owned(), why };
    let server = Server::new(url, key).map_err(|error| failed(error.to_string()))?;
    server.model().await.map_err(|error| failed(error.to_string()))
}

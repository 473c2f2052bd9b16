//! What all HTTP clients of this crate have in common.

use reqwest::ClientBuilder;
use serde::Deserialize;

/// A client to be built, with TLS.
pub(crate) fn client() -> ClientBuilder {
    // Another part of the process may have chosen already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}

/// An answer of an OpenAI-compatible endpoint to a chat, as far as it is read.
#[derive(Debug, Deserialize)]
pub(crate) struct Completion {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Debug, Deserialize)]
struct Message {
    content: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Usage {
    total_tokens: u32,
}

impl Completion {
    /// The text of the first choice; empty where it has none.
    pub(crate) fn text(&self) -> Option<&str> {
        Some(self.choices.first()?.message.content.as_deref().unwrap_or_default())
    }

    /// Tokens read and written; 0 where it does not say.
    pub(crate) fn tokens(&self) -> u32 {
        self.usage.as_ref().map_or(0, |usage| usage.total_tokens)
    }
}

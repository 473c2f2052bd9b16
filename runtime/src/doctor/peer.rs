//! Who is at the configured address.

use std::io;
use std::time::Duration;

use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::http;
use crate::secret::Secret;

/// How long a Headway may take to answer; a side turn waits for the engine.
const PATIENCE: Duration = Duration::from_secs(30);
/// The title of a gateway's description.
const TITLE: &str = "Headway gateway";

/// Who is there.
pub(super) enum There {
    Nobody,
    Headway(Peer),
    /// A Headway that wants another key.
    Locked,
    Another,
    /// Nobody could listen there either.
    Unusable(io::Error),
}

/// A Headway that runs.
#[derive(Clone)]
pub(super) struct Peer {
    client: Client,
    url: String,
    key: Option<Secret>,
    token: Option<Secret>,
}

/// Listens for a moment, or asks who does.
pub(super) async fn look(host: &str, port: u16, key: Option<Secret>) -> There {
    match TcpListener::bind((host, port)).await {
        Ok(_) => return There::Nobody,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
        Err(error) => return There::Unusable(error),
    }
    let Ok(client) = http::client().timeout(PATIENCE).no_proxy().build() else {
        return There::Another;
    };
    // Who listens everywhere listens on loopback.
    let host = match host {
        "0.0.0.0" => "127.0.0.1".to_owned(),
        "::" | "[::]" => "[::1]".to_owned(),
        host if host.contains(':') && !host.starts_with('[') => format!("[{host}]"),
        host => host.to_owned(),
    };
    let peer = Peer { client, url: format!("http://{host}:{port}"), key, token: None };
    let described =
        peer.get("/openapi.json").await.is_ok_and(|(_, body)| body["info"]["title"] == TITLE);
    if !described {
        return There::Another;
    }
    match peer.get("/v1/models").await {
        Ok((StatusCode::UNAUTHORIZED, _)) => There::Locked,
        _ => There::Headway(peer),
    }
}

impl Peer {
    pub(super) fn operated_with(self, token: Secret) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Asks as a client, below `/admin` as an operator.
    pub(super) async fn get(&self, path: &str) -> reqwest::Result<(StatusCode, Value)> {
        self.send(path, self.client.get(format!("{}{path}", self.url))).await
    }

    pub(super) async fn post(
        &self,
        path: &str,
        body: &Value,
    ) -> reqwest::Result<(StatusCode, Value)> {
        self.send(path, self.client.post(format!("{}{path}", self.url)).json(body)).await
    }

    /// A side turn of one token, which never trains: its status, and the code of its error.
    pub(super) async fn side_turn(&self) -> reqwest::Result<(StatusCode, String)> {
        let body = json!({
            "messages": [{"role": "user", "content": "ping"}],
            "turn_type": "side",
            "max_tokens": 1,
        });
        let (status, body) = self.post("/v1/chat/completions", &body).await?;
        Ok((status, body["error"]["code"].as_str().unwrap_or("").to_owned()))
    }

    async fn send(
        &self,
        path: &str,
        request: RequestBuilder,
    ) -> reqwest::Result<(StatusCode, Value)> {
        let secret = if path.starts_with("/admin") { &self.token } else { &self.key };
        let request = match secret {
            Some(secret) => request.bearer_auth(secret.reveal()),
            None => request,
        };
        let response = request.send().await?;
        let status = response.status();
        let text = response.text().await?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::Null)))
    }
}

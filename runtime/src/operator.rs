//! An operator of a run elsewhere, over its admin API.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::http;
use crate::secret::{ADMIN_TOKEN, Secret};

/// How long a run may take to answer: it has to write to its disk first.
const PATIENCE: Duration = Duration::from_secs(30);
/// The title of a gateway's description.
const TITLE: &str = "Headway gateway";
/// What the configuration is sent and received as.
const TOML: &str = "application/toml";

/// A run that is asked over HTTP.
#[derive(Clone, Debug)]
pub struct Remote {
    client: Client,
    url: String,
    token: Secret,
}

/// What changed, or would.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Reconfigured {
    /// It has changed: its input is on the run's disk.
    pub applied: bool,
    /// What, and when it takes effect.
    pub changed: Vec<Changed>,
}

/// A key with another value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Changed {
    /// Its path.
    pub key: String,
    /// Its value before, to be read.
    #[serde(deserialize_with = "shown")]
    pub old: String,
    /// Its value after.
    #[serde(deserialize_with = "shown")]
    pub new: String,
    /// When it takes effect, such as `next admission`.
    pub effect: String,
}

/// A value as TOML has it.
fn shown<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(value)? {
        Value::Null => "absent".to_owned(),
        value => value.to_string(),
    })
}

/// Why a run could not be asked, or said no. None of these has changed anything, but for
/// [`Silent`](Self::Silent), which may have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// It is no address.
    #[error(
        "`{0}` is no address of a run\nhelp: write it with its scheme, such as http://127.0.0.1:30000"
    )]
    Url(String),
    /// Nobody answers.
    #[error("{url}: nobody answers: {why}\nhelp: does it run, and is this its address?")]
    Unreachable {
        /// Where.
        url: String,
        /// What the connection says.
        why: String,
    },
    /// The token is not the run's.
    #[error(
        "{0}: it refuses the admin token (401)\nhelp: give the one that it was started with, by \
         --token-file or in the variable {ADMIN_TOKEN}"
    )]
    Unauthorised(String),
    /// It is a Headway, without the admin API.
    #[error(
        "{0}: this Headway has no admin API to configure it by (404)\nhelp: start it with the variable \
         {ADMIN_TOKEN} set, and with this version"
    )]
    NoAdmin(String),
    /// It is something else.
    #[error(
        "{url}: this is no Headway: {why}\nhelp: name the address at which `headway run` serves"
    )]
    Foreign {
        /// Where.
        url: String,
        /// What it answered.
        why: String,
    },
    /// It does not want what it was sent.
    #[error("{url}: it refuses: {message}")]
    Refused {
        /// Where.
        url: String,
        /// What it said.
        message: String,
    },
    /// It got the configuration, and gave no answer.
    #[error(
        "{url}: no answer to the new configuration: {why}\nhelp: it may be in force or not: look with \
         --dry-run, and promote again"
    )]
    Silent {
        /// Where.
        url: String,
        /// What the connection says.
        why: String,
    },
}

impl Remote {
    /// A run at an address, `/v1` at its end or not.
    ///
    /// # Errors
    /// It is no address.
    pub fn new(url: &str, token: Secret) -> Result<Self, RemoteError> {
        let wrong = || RemoteError::Url(url.to_owned());
        let base = url.trim_end_matches('/').trim_end_matches("/v1").trim_end_matches('/');
        let parsed = reqwest::Url::parse(base).map_err(|_| wrong())?;
        if !["http", "https"].contains(&parsed.scheme()) || parsed.host_str().is_none() {
            return Err(wrong());
        }
        let client = http::client().timeout(PATIENCE).no_proxy().build().map_err(|_| wrong())?;
        Ok(Self { client, url: base.to_owned(), token })
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The configuration in force, as TOML: every scheduling key, and `[guard]` where there is one.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn config(&self) -> Result<String, RemoteError> {
        let url = format!("{}/admin/config", self.url);
        let answer = self.send(self.client.get(url)).await;
        let Answer { status, is_toml, text } = answer.map_err(|why| self.unreachable(why))?;
        match status {
            StatusCode::OK if is_toml => Ok(text),
            _ => Err(self.refused(status, &text).await),
        }
    }

    /// Hands over the scheduling sections, whole, and `[guard]`; with `dry_run` only asks what would
    /// change.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn reconfigure(
        &self,
        toml: &str,
        dry_run: bool,
    ) -> Result<Reconfigured, RemoteError> {
        let url = format!("{}/admin/config?dry_run={dry_run}", self.url);
        let request = self.client.post(url).header(CONTENT_TYPE, TOML).body(toml.to_owned());
        let silent = |why| RemoteError::Silent { url: self.url.clone(), why };
        let Answer { status, text, .. } = self.send(request).await.map_err(silent)?;
        if status != StatusCode::OK {
            return Err(self.refused(status, &text).await);
        }
        serde_json::from_str(&text)
            .map_err(|_| silent("what came is no JSON of a Headway".to_owned()))
    }

    fn unreachable(&self, why: String) -> RemoteError {
        RemoteError::Unreachable { url: self.url.clone(), why }
    }

    /// What an answer means that is not the wished one.
    async fn refused(&self, status: StatusCode, text: &str) -> RemoteError {
        let url = self.url.clone();
        let described = self.client.get(format!("{url}/openapi.json"));
        let is_headway = match self.send(described).await {
            Ok(Answer { text, .. }) => {
                let body: Value = serde_json::from_str(&text).unwrap_or_default();
                body["info"]["title"] == TITLE
            }
            Err(why) => return self.unreachable(why),
        };
        let error: Value = serde_json::from_str(text).unwrap_or_default();
        match (status, is_headway, error["error"]["message"].as_str()) {
            (_, false, _) => {
                let why = format!("it answers {}, and has no openapi.json of one", status.as_u16());
                RemoteError::Foreign { url, why }
            }
            (StatusCode::UNAUTHORIZED, ..) => RemoteError::Unauthorised(url),
            (StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED, ..) => {
                RemoteError::NoAdmin(url)
            }
            (_, _, Some(message)) => RemoteError::Refused { url, message: message.to_owned() },
            (_, _, None) => {
                let message = format!("it answers {}, and says no more", status.as_u16());
                RemoteError::Refused { url, message }
            }
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Answer, String> {
        let request = request.bearer_auth(self.token.reveal());
        let response = request.send().await.map_err(|error| cause(&error))?;
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_toml = kind.is_some_and(|kind| kind.starts_with(TOML));
        let text = response.text().await.map_err(|error| cause(&error))?;
        Ok(Answer { status, is_toml, text })
    }
}

struct Answer {
    status: StatusCode,
    is_toml: bool,
    text: String,
}

/// The innermost cause: what the system says.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

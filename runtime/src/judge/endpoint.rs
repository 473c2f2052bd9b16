//! A judge behind an OpenAI-compatible endpoint.

mod form;
mod patience;

use std::sync::Arc;
use std::time::Duration;

use headway_shared::config::{Api, Judge as JudgeSettings};
use reqwest::{Certificate, Client};
use serde_json::json;

use form::Form;
use patience::Patience;

use super::{Case, Judge, Trouble, Verdict, Vote};
use crate::http::{self, Completion};
use crate::secret::Secret;

/// A longer answer is no vote.
const MOST_BYTES: usize = 1 << 20;

/// The variable that `api_key_env` names holds no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the environment variable {variable}, which `api_key_env` names, is not set: export the key \
     of the endpoint in it, or name another variable"
)]
pub struct MissingKey {
    /// The variable.
    pub variable: String,
}

/// Why no endpoint can be asked.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// There is no key.
    #[error(transparent)]
    Key(#[from] MissingKey),
    /// There is no HTTP client.
    #[error("no HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    /// The certificates to trust cannot be read.
    #[error("api.ca_file: {path}: {why}\nhelp: name a file of certificates in PEM format")]
    Certificates {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The template of the question is none.
    #[error("judge.prompt: {0}")]
    Prompt(String),
}

/// An endpoint that judges. One that limits its rate (429) is asked again when it says, for as long as
/// the core waits for the vote.
#[derive(Clone, Debug)]
pub struct Endpoint {
    client: Client,
    url: String,
    key: Secret,
    model: String,
    temperature: f64,
    max_tokens: u32,
    form: Arc<Form>,
    /// `None`: it is not asked again.
    patience: Option<Patience>,
}

impl Endpoint {
    /// The endpoint of `settings.json`. `variable` looks up environment variables.
    ///
    /// # Errors
    /// [`EndpointError`].
    pub fn new(
        api: &Api,
        judge: &JudgeSettings,
        variable: impl FnOnce(&str) -> Option<String>,
    ) -> Result<Self, EndpointError> {
        let name = &api.api_key_env;
        let key = variable(name).and_then(|key| Secret::new(&key));
        let key = key.ok_or_else(|| MissingKey { variable: name.clone() })?;
        let timeout = Duration::from_nanos(api.timeout.as_nanos());
        // A key and a conversation go nowhere but where the settings say.
        let client = http::client().redirect(reqwest::redirect::Policy::none());
        let client = if timeout.is_zero() { client } else { client.timeout(timeout) };
        let client = match &api.ca_file {
            Some(path) => client.tls_certs_merge(certificates(path)?),
            None => client,
        };
        let form = Arc::new(Form::new(judge).map_err(EndpointError::Prompt)?);
        Ok(Self {
            client: client.build()?,
            url: format!("{}/chat/completions", api.base_url),
            key,
            model: judge.model.clone(),
            temperature: judge.temperature,
            max_tokens: judge.max_tokens,
            form,
            patience: Some(Patience::default()),
        })
    }

    /// The same, which takes a limited rate for the answer: who looks at an endpoint wants to know.
    #[must_use]
    pub fn impatient(self) -> Self {
        Self { patience: None, ..self }
    }

    /// What is asked, without a password that may stand in it.
    #[must_use]
    pub fn url(&self) -> String {
        let Some((scheme, rest)) = self.url.split_once("://") else { return self.url.clone() };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        format!("{scheme}://{host}/{path}")
    }
}

impl Judge for Endpoint {
    fn vote(&self, case: Case) -> Vote {
        let mut body = match self.form.ask(&case) {
            Ok(body) => body,
            Err(why) => {
                let verdict = Verdict::none(Trouble::Prompt(why.into()));
                return Box::pin(async move { verdict });
            }
        };
        body["model"] = json!(self.model);
        body["temperature"] = json!(self.temperature);
        body["max_tokens"] = json!(self.max_tokens);
        let request = self.client.post(&self.url).bearer_auth(self.key.reveal()).json(&body);
        let (form, patience) = (self.form.clone(), self.patience.clone());
        Box::pin(async move {
            let answer = match answer(&request, patience.as_ref()).await {
                Ok(answer) => answer,
                Err(trouble) => return Verdict::none(trouble),
            };
            let score = answer.text().and_then(|text| form.score(text));
            let verdict = score.map_or(Verdict::none(Trouble::NoScore), Verdict::score);
            Verdict { tokens: answer.tokens(), ..verdict }
        })
    }
}

/// The certificates of a file.
fn certificates(path: &str) -> Result<Vec<Certificate>, EndpointError> {
    let wrong = |why: String| EndpointError::Certificates { path: path.to_owned(), why };
    let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let found = Certificate::from_pem_bundle(&bytes).map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() { Err(wrong("it holds no certificate".to_owned())) } else { Ok(found) }
}

/// What an error of the client means; its own text can hold the URL, and with it a password.
fn trouble(error: &reqwest::Error) -> Trouble {
    match error.is_timeout() {
        true => Trouble::Slow,
        false if error.is_connect() => Trouble::Unreachable,
        false => Trouble::BrokenOff,
    }
}

/// An error for everything that is no answer: no connection, a status, another format, too much.
async fn answer(
    request: &reqwest::RequestBuilder,
    patience: Option<&Patience>,
) -> Result<Completion, Trouble> {
    let mut tries = 0;
    let mut response = loop {
        if let Some(patience) = patience {
            patience.wait().await;
        }
        // Its body is in memory: it can be sent again.
        let again = request.try_clone().ok_or(Trouble::BrokenOff)?;
        let response = again.send().await.map_err(|error| trouble(&error))?;
        if patience.is_none_or(|patience| !patience.heed(&response, tries)) {
            break response;
        }
        tries += 1;
    };
    if !response.status().is_success() {
        return Err(Trouble::Status(response.status().as_u16()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| trouble(&error))? {
        if bytes.len() + chunk.len() > MOST_BYTES {
            return Err(Trouble::Unreadable);
        }
        bytes.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&bytes).map_err(|_| Trouble::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_the_url_is_not_shown() {
        let shown = |base_url: &str| {
            let api = Api {
                base_url: base_url.to_owned(),
                api_key_env: "K".to_owned(),
                timeout: headway_shared::time::Span::ZERO,
                ca_file: None,
            };
            let judge = JudgeSettings {
                model: "m".to_owned(),
                temperature: 0.0,
                max_tokens: 1,
                system: None,
                prompt: None,
                score: headway_shared::config::ScoreForm::Boxed,
            };
            Endpoint::new(&api, &judge, |_| Some("k".to_owned())).unwrap().url()
        };
        assert_eq!(shown("http://me:pw@host:80/v1"), "http://host:80/v1/chat/completions");
        assert_eq!(shown("http://host/v1"), "http://host/v1/chat/completions");
    }
}

//! A judge behind an OpenAI-compatible endpoint.

use std::time::Duration;

use headway_shared::config::{Api, Judge as JudgeSettings};
use headway_shared::input::Score;
use reqwest::Client;
use serde_json::{Value, json};

use super::{Case, Judge, Trouble, Verdict, Vote};
use crate::http::{self, Completion};
use crate::secret::Secret;

/// What the judge is told to do.
const TASK: &str = "You grade one turn of an assistant. You see the conversation, the assistant's \
    turn, and what followed it. Grade the turn alone, by what followed. Think briefly, then end \
    with \\boxed{1} if it helped, \\boxed{-1} if it did harm or was wrong, and \\boxed{0} if you \
    cannot tell.";

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
}

/// An endpoint that judges. The vote is the last `\boxed{1}`, `\boxed{0}` or `\boxed{-1}` of its
/// answer.
#[derive(Clone, Debug)]
pub struct Endpoint {
    client: Client,
    url: String,
    key: Secret,
    model: String,
    temperature: f64,
    max_tokens: u32,
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
        Ok(Self {
            client: client.build()?,
            url: format!("{}/chat/completions", api.base_url),
            key,
            model: judge.model.clone(),
            temperature: judge.temperature,
            max_tokens: judge.max_tokens,
        })
    }

    /// What is asked, without a password that may stand in it.
    #[must_use]
    pub fn url(&self) -> String {
        let Some((scheme, rest)) = self.url.split_once("://") else { return self.url.clone() };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        format!("{scheme}://{host}/{path}")
    }

    fn body(&self, case: &Case) -> Value {
        let mut shown = String::new();
        for message in &case.question.messages {
            shown.push_str(&format!("[{}]\n{}\n\n", message.role, message.content));
        }
        let followed = case.next_state.as_deref().unwrap_or("(nothing)");
        shown.push_str(&format!(
            "[the assistant's turn]\n{}\n\n[what followed]\n{followed}",
            case.response
        ));
        json!({
            "model": self.model,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "messages": [
                {"role": "system", "content": TASK},
                {"role": "user", "content": shown},
            ],
        })
    }
}

impl Judge for Endpoint {
    fn vote(&self, case: Case) -> Vote {
        let request = self.client.post(&self.url).bearer_auth(self.key.reveal());
        let request = request.json(&self.body(&case));
        Box::pin(async move {
            let answer = match answer(request).await {
                Ok(answer) => answer,
                Err(trouble) => return Verdict::none(trouble),
            };
            let score = answer.text().and_then(boxed);
            let verdict = score.map_or(Verdict::none(Trouble::NoScore), Verdict::score);
            Verdict { tokens: answer.tokens(), ..verdict }
        })
    }
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
async fn answer(request: reqwest::RequestBuilder) -> Result<Completion, Trouble> {
    let mut response = request.send().await.map_err(|error| trouble(&error))?;
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

/// The last `\boxed{1|0|-1}`, as a score.
fn boxed(text: &str) -> Option<Score> {
    text.rmatch_indices("\\boxed{").find_map(|(start, mark)| {
        let inside = text[start + mark.len()..].split_once('}')?.0;
        match inside.trim() {
            "1" => Some(1_000_000),
            "0" => Some(0),
            "-1" => Some(-1_000_000),
            _ => None,
        }
    })
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
            };
            let judge = JudgeSettings { model: "m".to_owned(), temperature: 0.0, max_tokens: 1 };
            Endpoint::new(&api, &judge, |_| Some("k".to_owned())).unwrap().url()
        };
        assert_eq!(shown("http://me:pw@host:80/v1"), "http://host:80/v1/chat/completions");
        assert_eq!(shown("http://host/v1"), "http://host/v1/chat/completions");
    }

    #[test]
    fn the_last_box_that_holds_a_vote_counts() {
        assert_eq!(boxed(r"maybe \boxed{0}, no: \boxed{-1}"), Some(-1_000_000));
        assert_eq!(boxed(r"\boxed{1} and \boxed{helpful}"), Some(1_000_000));
        assert_eq!(boxed(r"\boxed{ 0 }"), Some(0));
        for none in ["", "1", r"\boxed{2}", r"\boxed{1", r"\boxed{}"] {
            assert_eq!(boxed(none), None, "{none}");
        }
    }
}

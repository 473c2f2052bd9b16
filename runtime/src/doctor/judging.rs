//! The judge: its key, one vote, then as many at once as a run may ask for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use headway_shared::config::{Config, Settings};
use headway_shared::time::{Span, Time};

use super::Finding;
use crate::clock::Clock;
use crate::judge::{Case, Endpoint, EndpointError, Judge, Trouble};
use crate::store::Question;
use crate::tokenizer::Message;

const KEY: &str = "judge's key";
const ENDPOINT: &str = "judge's endpoint";
const AT_ONCE: &str = "judge's votes at once";

pub(super) async fn examine(
    config: &Config,
    settings: &Settings,
    variable: &impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    if !config.reward_judging.rule.is_empty() {
        let seen = "a rule judges: no endpoint is asked";
        return [KEY, ENDPOINT, AT_ONCE].map(|check| Finding::passed(check, seen)).into();
    }
    let name = &settings.api.api_key_env;
    let endpoint = match Endpoint::new(&settings.api, &settings.judge, variable) {
        Ok(endpoint) => endpoint.impatient(),
        Err(EndpointError::Key(_)) => {
            let failed = Finding::failed(
                KEY,
                format!("the variable {name} is not set"),
                format!("export {name}, or name another variable in `api.api_key_env`"),
            );
            return skip_from(1, failed);
        }
        Err(EndpointError::Client(error)) => {
            let cure = "look at the machine's certificates and proxies";
            return skip_from(1, Finding::failed(KEY, format!("no HTTP client: {error}"), cure));
        }
        Err(error @ (EndpointError::Certificates { .. } | EndpointError::Prompt(_))) => {
            let cure = "correct it in settings.json";
            return skip_from(1, Finding::failed(KEY, error.to_string(), cure));
        }
    };
    let key = Finding::passed(KEY, format!("{name} is set"));
    let limit = config.reward_judging.judge_timeout;
    let one = ask(&endpoint, limit).await;
    let url = endpoint.url();
    let one = match &one.trouble {
        None => Finding::passed(ENDPOINT, format!("a vote in {} from {url}", shown(one.took))),
        Some(trouble) => {
            let failed =
                Finding::failed(ENDPOINT, format!("{url}: {trouble}"), cure(trouble, settings));
            return [vec![key], skip_from(2, failed)].concat();
        }
    };
    vec![key, one, at_once(&endpoint, config, settings).await]
}

/// A finding that failed, and those that need what it looked at.
fn skip_from(first: usize, failed: Finding) -> Vec<Finding> {
    let skipped = [KEY, ENDPOINT, AT_ONCE].into_iter().skip(first);
    let why = format!("needs the {}", failed.check);
    let skipped = skipped.map(|check| Finding::skipped(check, why.clone(), ""));
    std::iter::once(failed).chain(skipped).collect()
}

/// A vote that was asked for.
struct Probe {
    took: Span,
    trouble: Option<Trouble>,
}

/// One vote, within the time that the core gives it; 0: as long as it takes.
async fn ask(endpoint: &Endpoint, limit: Span) -> Probe {
    let message =
        |role: &str, content: &str| Message { role: role.into(), content: content.into() };
    let question = Question {
        messages: vec![message("user", "What is 6 times 7?")],
        metadata: BTreeMap::new(),
        prompt: Arc::from([]),
    };
    let vote = endpoint.vote(Case {
        question: Arc::new(question),
        response: "42".into(),
        next_state: Some("Correct, thank you.".into()),
    });
    let clock = Clock::from(Time::ZERO);
    let trouble = if limit == Span::ZERO {
        vote.await.trouble
    } else {
        match tokio::time::timeout(Duration::from_nanos(limit.as_nanos()), vote).await {
            Ok(verdict) => verdict.trouble,
            Err(_) => Some(Trouble::TimedOut),
        }
    };
    Probe { took: clock.now().since(Time::ZERO), trouble }
}

async fn at_once(endpoint: &Endpoint, config: &Config, settings: &Settings) -> Finding {
    let judging = &config.reward_judging;
    let votes: Vec<_> = (0..judging.judge_concurrency)
        .map(|_| {
            let (endpoint, limit) = (endpoint.clone(), judging.judge_timeout);
            tokio::spawn(async move { ask(&endpoint, limit).await })
        })
        .collect();
    let mut times = Vec::new();
    let mut failed: BTreeMap<&str, u32> = BTreeMap::new();
    let mut worst = None;
    for vote in votes {
        let broken = Probe { took: Span::ZERO, trouble: Some(Trouble::BrokenOff) };
        let Probe { took, trouble } = vote.await.unwrap_or(broken);
        match trouble {
            None => times.push(took),
            Some(trouble) => {
                *failed.entry(Trouble::NAMES[trouble.index()]).or_default() += 1;
                worst = Some(trouble);
            }
        }
    }
    times.sort_unstable();
    let latency = match (times.get(times.len() / 2), times.last()) {
        (Some(median), Some(longest)) => {
            format!(", p50 {}, longest {}", shown(*median), shown(*longest))
        }
        _ => String::new(),
    };
    let failures: String = failed.iter().map(|(kind, count)| format!(", {count} {kind}")).collect();
    let seen = format!(
        "{} of {} votes in time{latency}{failures}",
        times.len(),
        judging.judge_concurrency
    );
    match worst {
        None => Finding::passed(AT_ONCE, seen),
        Some(trouble) => Finding::failed(AT_ONCE, seen, cure(&trouble, settings)),
    }
}

fn shown(span: Span) -> String {
    format!("{:.2} s", span.as_secs_f64())
}

fn cure(trouble: &Trouble, settings: &Settings) -> String {
    let variable = &settings.api.api_key_env;
    match trouble {
        Trouble::Unreachable => {
            "start the endpoint, or correct `api.base_url` in settings.json".to_owned()
        }
        Trouble::TimedOut => "lower `judge_concurrency` to 2 and raise it step by step, or raise \
                              `judge_timeout_sec`"
            .to_owned(),
        Trouble::Slow => {
            "raise `api.timeout_sec` in settings.json, or lower `judge_concurrency`".to_owned()
        }
        Trouble::Status(401 | 403) => {
            format!("export a key that the endpoint accepts in {variable}")
        }
        Trouble::Status(404) => {
            "correct `api.base_url` (with or without /v1) or `judge.model` in settings.json"
                .to_owned()
        }
        Trouble::Status(429) => {
            "lower `judge_concurrency` to 2 and raise it step by step, or have \
                                 the endpoint's quota raised"
                .to_owned()
        }
        Trouble::Status(400 | 422) => {
            "the endpoint does not take this request: correct `judge` in settings.json".to_owned()
        }
        Trouble::Status(_) | Trouble::BrokenOff => "look at the endpoint's own log".to_owned(),
        Trouble::Unreadable => {
            "let `api.base_url` in settings.json name an OpenAI-compatible endpoint".to_owned()
        }
        Trouble::NoScore => "raise `judge.max_tokens` in settings.json, or choose a `judge.model` \
                             that follows instructions"
            .to_owned(),
        Trouble::Prompt(_) => {
            "correct `judge.prompt` in settings.json: the names are in docs/judging.md".to_owned()
        }
        Trouble::Rule(_) => "correct `reward_judging.rule`".to_owned(),
    }
}

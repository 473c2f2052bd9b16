//! An OpenAI-compatible endpoint as the judge: good, slow, dead and talking nonsense.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use headway_runtime::gateway;
use headway_runtime::judge::{self, Endpoint};
use headway_runtime::shared::action::Discard;
use headway_runtime::shared::config::{Layers, Settings, load_live};
use serde_json::{Value, json};

use crate::all::live::{Live, Setup, query, turn};

/// What the fake endpoint says to its n-th question; `None`: nothing, ever.
pub(super) type Script = fn(usize) -> Option<(StatusCode, String)>;

/// What the endpoint was asked.
#[derive(Clone, Default)]
pub(super) struct Asked(Arc<Mutex<Vec<(String, Value)>>>);

pub(super) async fn endpoint(script: Script) -> (String, Asked) {
    let (asked, number) = (Asked::default(), Arc::new(AtomicUsize::new(0)));
    let log = asked.clone();
    let handler = async move |headers: HeaderMap, Json(body): Json<Value>| {
        let key = headers["authorization"].to_str().unwrap().to_owned();
        log.0.lock().unwrap().push((key, body));
        match script(number.fetch_add(1, Ordering::Relaxed)) {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    };
    let router = Router::new().route("/v1/chat/completions", post(handler));
    let (listener, address) = gateway::listen("127.0.0.1", 0).await.unwrap();
    tokio::spawn(gateway::serve(listener, router, std::future::pending()));
    (format!("http://{address}"), asked)
}

pub(super) fn says(text: &str) -> Option<(StatusCode, String)> {
    let answer = json!({
        "choices": [{"message": {"role": "assistant", "content": text}}],
        "usage": {"total_tokens": 7},
    });
    Some((StatusCode::OK, answer.to_string()))
}

fn settings(url: &str) -> Settings {
    let text = json!({
        "api": {"base_url": url, "api_key_env": "JUDGE_KEY"},
        "judge": {"model": "grader", "max_tokens": 99},
    });
    load_live(&Layers::new().json("settings.json", text.to_string())).unwrap().settings
}

/// A judge with more keys of `judge` and `api`.
fn judge_as(url: &str, judge: &Value, ca_file: Option<&str>) -> Result<Endpoint, String> {
    let mut text = json!({
        "api": {"base_url": url, "api_key_env": "JUDGE_KEY"},
        "judge": {"model": "grader"},
    });
    for (key, value) in judge.as_object().unwrap() {
        text["judge"][key] = value.clone();
    }
    if let Some(file) = ca_file {
        text["api"]["ca_file"] = json!(file);
    }
    let layers = Layers::new().json("settings.json", text.to_string());
    let settings = load_live(&layers).map_err(|error| format!("{error:?}"))?.settings;
    Endpoint::new(&settings.api, &settings.judge, |_| Some("secret".to_owned()))
        .map_err(|error| error.to_string())
}

fn judge(url: &str) -> Endpoint {
    judge_with(url, "secret")
}

pub(super) fn judge_with(url: &str, key: &str) -> Endpoint {
    let settings = settings(url);
    Endpoint::new(&settings.api, &settings.judge, |_| Some(key.to_owned())).unwrap()
}

async fn live(dir: &tempfile::TempDir, url: &str, judging: &str) -> Live {
    live_with(dir, judge(url), judging).await
}

async fn live_with(dir: &tempfile::TempDir, judge: Endpoint, judging: &str) -> Live {
    let text = format!("[reward_judging]\n{judging}\n[policy_training]\nbatch_size = 1");
    let mut setup = Setup::new(&text);
    setup.judge = Arc::new(judge);
    setup.start(dir.path()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_of_the_settings_asks_and_a_structured_answer_scores() {
    let (url, asked) = endpoint(|_| says(r#"{"reason": "nearly", "score": 0.5}"#)).await;
    let dir = tempfile::tempdir().unwrap();
    let prompt = "{{ messages | length }} {{ prompt }} > {{ answer }} = {{ metadata.answer }}?\
                  {% if next_state is defined %} {{ next_state }}{% endif %}";
    let wished = json!({"score": "json", "system": "Be strict.", "prompt": prompt});
    let judge = judge_as(&url, &wished, None).unwrap();
    let live = live_with(&dir, judge, "judge_needs = \"turn\"\naggregate = \"mean\"").await;
    let mut asking = turn("a", "hello");
    asking["metadata"] = json!({"answer": "bye"});
    live.answer(&asking).await;
    live.until(|status| status.ledger.trained == 1).await;
    assert_eq!(live.trainer.batches()[0][0].reward, 0.5);
    let (_, body) = asked.0.lock().unwrap()[0].clone();
    assert_eq!(body["messages"][0]["content"], "Be strict.");
    assert_eq!(body["messages"][1]["content"], "1 hello > hello = bye?");
    assert_eq!(body["response_format"]["type"], "json_schema");
    let schema = &body["response_format"]["json_schema"]["schema"];
    assert_eq!(schema["required"], json!(["reason", "score"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_names_what_a_turn_has_not_gives_no_score_and_asks_nobody() {
    let (url, asked) = endpoint(|_| says("\\boxed{1}")).await;
    let dir = tempfile::tempdir().unwrap();
    let wished = json!({"prompt": "{{ metadata.answer.text }}"});
    let judge = judge_as(&url, &wished, None).unwrap();
    let live = live_with(&dir, judge, "judge_needs = \"turn\"").await;
    let mut asking = turn("a", "hello");
    asking["metadata"] = json!({"other": "x"});
    live.answer(&asking).await;
    let status = live.until_nothing_is_kept().await;
    assert_eq!(status.ledger.discarded[Discard::JudgeFailed.index()], 1);
    assert_eq!(status.ledger.votes, 1, "it is not asked again");
    assert!(asked.0.lock().unwrap().is_empty());
    let page = live.get("/metrics").await.text().await.unwrap();
    assert!(page.contains("headway_failed_votes_total{reason=\"prompt\"} 1"), "{page}");
}

#[test]
fn a_prompt_or_a_form_that_is_none_is_said_before_a_run_starts() {
    let said = |judge: Value| judge_as("http://127.0.0.1:9", &judge, None).unwrap_err();
    let error = said(json!({"prompt": "fine\n{% if %}"}));
    assert!(error.contains("judge.prompt") && error.contains("line 2"), "{error}");
    let error = said(json!({"score": "stars"}));
    assert!(error.contains("stars") && error.contains("boxed"), "{error}");
    let missing = judge_as("https://127.0.0.1:9", &json!({}), Some("/no/such/ca.pem"));
    let error = missing.unwrap_err();
    assert!(error.contains("api.ca_file") && error.contains("PEM"), "{error}");
}

/// The endpoint says no until its time is over; votes that are told so wait, and are not spent.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_limits_its_rate_is_asked_again_when_it_says() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let times = asked.clone();
    let handler = async move || {
        let mut times = times.lock().unwrap();
        times.push(tokio::time::Instant::now());
        let limited = times.len() <= 2;
        let status = if limited { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
        let said = says("\\boxed{1}").unwrap().1;
        (status, [("retry-after", "1")], if limited { "slow down".to_owned() } else { said })
    };
    let router = Router::new().route("/v1/chat/completions", post(handler));
    let (listener, address) = gateway::listen("127.0.0.1", 0).await.unwrap();
    tokio::spawn(gateway::serve(listener, router, std::future::pending()));
    let dir = tempfile::tempdir().unwrap();
    let judging = "judge_needs = \"turn\"\njudge_retries = 0";
    let live = live(&dir, &format!("http://{address}"), judging).await;
    live.answer(&turn("a", "hello")).await;
    let status = live.until(|status| status.ledger.trained == 1).await;
    assert_eq!(status.ledger.votes, 1);
    let times = asked.lock().unwrap().clone();
    assert_eq!(times.len(), 3);
    assert!(times[2].duration_since(times[0]).as_secs_f64() >= 2.0, "it waited as it was told");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_judged_with_what_followed_it() {
    let (url, asked) = endpoint(|_| says("It helped. \\boxed{1}")).await;
    let dir = tempfile::tempdir().unwrap();
    // With /v1 or without.
    let live = live(&dir, &format!("{url}/v1/"), "votes = 3\njudge_concurrency = 3").await;
    live.answer(&turn("a", "hello")).await;
    live.answer(&turn("a", "thank you")).await;
    let status = live.until(|status| status.ledger.trained == 1).await;
    assert_eq!(status.ledger.votes, 3);
    let (key, body) = asked.0.lock().unwrap()[0].clone();
    assert_eq!(key, "Bearer secret");
    assert_eq!((&body["model"], &body["max_tokens"]), (&json!("grader"), &json!(99)));
    let shown = body["messages"][1]["content"].as_str().unwrap();
    assert_eq!(
        shown,
        "[user]\nhello\n\n[the assistant's turn]\nhello\n\n[what followed]\nthank you"
    );
    live.until(|status| status.committed == status.inputs).await;
    let tokens: i64 = query(&live.record, "SELECT sum(tokens) FROM votes");
    assert!(tokens == 14 || tokens == 21, "{tokens}: the third can have been cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vote_that_fails_is_tried_again_as_often_as_the_core_says() {
    let script: Script = |number| match number {
        0 => Some((StatusCode::INTERNAL_SERVER_ERROR, "down".to_owned())),
        1 => Some((StatusCode::OK, "no JSON".to_owned())),
        _ => says("\\boxed{-1}"),
    };
    let (url, asked) = endpoint(script).await;
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir, &url, "judge_needs = \"turn\"\njudge_retries = 2").await;
    live.answer(&turn("a", "hello")).await;
    live.until(|status| status.ledger.trained == 1).await;
    assert_eq!(asked.0.lock().unwrap().len(), 3);
    assert_eq!(live.trainer.batches()[0][0].reward, -1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_no_vote_and_its_sample_is_discarded_with_the_reason() {
    let (url, _) = endpoint(|_| says("I would say it is fine.")).await;
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir, &url, "judge_needs = \"turn\"").await;
    live.answer(&turn("a", "hello")).await;
    let status = live.until(|status| status.ledger.outstanding() == 0).await;
    assert_eq!(status.ledger.discarded[Discard::JudgeFailed.index()], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_judge_that_never_answers_is_given_up_after_its_time() {
    let (url, _) = endpoint(|_| None).await;
    let dir = tempfile::tempdir().unwrap();
    let judging = "judge_needs = \"turn\"\njudge_timeout_sec = 0.02\njudge_retries = 1";
    let live = live(&dir, &url, judging).await;
    live.answer(&turn("a", "hello")).await;
    let status = live.until(|status| status.ledger.outstanding() == 0).await;
    assert_eq!(status.ledger.discarded[Discard::JudgeFailed.index()], 1);
    assert_eq!((status.ledger.votes, status.gauges.votes), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_sends_somewhere_else_is_not_followed() {
    let (elsewhere, asked) = endpoint(|_| says("\\boxed{1}")).await;
    let target = format!("{elsewhere}/v1/chat/completions");
    let redirect = async move || (StatusCode::TEMPORARY_REDIRECT, [("location", target.clone())]);
    let router = Router::new().route("/v1/chat/completions", post(redirect));
    let (listener, address) = gateway::listen("127.0.0.1", 0).await.unwrap();
    tokio::spawn(gateway::serve(listener, router, std::future::pending()));
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir, &format!("http://{address}"), "judge_needs = \"turn\"").await;
    live.answer(&turn("a", "hello")).await;
    let status = live.until_nothing_is_kept().await;
    assert_eq!(status.ledger.discarded[Discard::JudgeFailed.index()], 1);
    assert!(asked.0.lock().unwrap().is_empty(), "neither the key nor the conversation");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_talks_without_end_is_no_vote() {
    /// The same byte for ever, as fast as it is read.
    struct Endless;
    impl futures_core::Stream for Endless {
        type Item = Result<&'static [u8], std::convert::Infallible>;
        fn poll_next(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Self::Item>> {
            std::task::Poll::Ready(Some(Ok(&[b' '; 4096])))
        }
    }
    let answer = async || axum::body::Body::from_stream(Endless);
    let router = Router::new().route("/v1/chat/completions", post(answer));
    let (listener, address) = gateway::listen("127.0.0.1", 0).await.unwrap();
    tokio::spawn(gateway::serve(listener, router, std::future::pending()));
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir, &format!("http://{address}"), "judge_needs = \"turn\"").await;
    live.answer(&turn("a", "hello")).await;
    let status = live.until_nothing_is_kept().await;
    assert_eq!(status.ledger.discarded[Discard::JudgeFailed.index()], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_votes_are_in_flight_than_the_core_allows() {
    let (url, asked) = endpoint(|_| None).await;
    let dir = tempfile::tempdir().unwrap();
    let judging = "judge_needs = \"turn\"\njudge_concurrency = 2\nvotes = 5";
    let live = live(&dir, &url, judging).await;
    live.answer(&turn("a", "hello")).await;
    live.until(|status| status.gauges.votes == 2 && status.committed == status.inputs).await;
    assert!(asked.0.lock().unwrap().len() <= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_of_the_configuration_judges_with_no_endpoint_and_no_key() {
    let rule = "if exact then 1 else -number(metadata.penalty)";
    let text = format!(
        "[reward_judging]\njudge_needs = 'turn'\nrule = '{rule}'\n[policy_training]\nbatch_size = 2"
    );
    let layers = Layers::new().toml("config.toml", text.clone()).json("settings.json", "{}");
    let loaded = load_live(&layers).unwrap();
    let (config, settings) = (loaded.config, loaded.settings);
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(&text);
    setup.judge = judge::of(&config, &settings, |_| None).unwrap();
    let live = setup.start(dir.path()).await;
    live.answer(&turn("right", "hello")).await;
    // Without a penalty the rule gives no score, which is no score of 0.
    let mut wrong = turn("wrong", "hello");
    wrong["metadata"] = json!({"answer": "other"});
    live.answer(&wrong).await;
    live.until(|status| status.ledger.discarded[Discard::JudgeFailed.index()] == 1).await;
    wrong["metadata"]["penalty"] = json!("0.5");
    live.answer(&wrong).await;
    let status = live.until(|status| status.ledger.trained == 2).await;
    let rewards: Vec<f64> = live.trainer.batches()[0].iter().map(|sample| sample.reward).collect();
    assert_eq!(rewards, [1.0, -0.5]);
    assert_eq!(status.ledger.votes, 3, "what gives no score is not asked again");
    let page = live.get("/metrics").await.text().await.unwrap();
    assert!(page.contains("headway_failed_votes_total{reason=\"rule\"} 1"), "{page}");
}

#[test]
fn a_key_that_is_not_exported_is_named_and_never_shown() {
    let settings = settings("http://127.0.0.1:9");
    let error = Endpoint::new(&settings.api, &settings.judge, |_| None).unwrap_err().to_string();
    assert!(error.contains("JUDGE_KEY") && error.contains("export"), "{error}");
    let shown = format!("{:?}", judge("http://127.0.0.1:9"));
    assert!(!shown.contains("secret"), "{shown}");
}

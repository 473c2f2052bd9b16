//! What is logged, and what never is.
//!
//! The run is a process of its own, this test binary told to run [`talkative`] alone: its stderr is
//! what a user would see.

use std::process::{Command, Stdio};
use std::sync::Arc;

use axum::http::StatusCode;
use headway_runtime::log::{self, Format, Level};
use headway_runtime::secret::Secret;
use headway_runtime::shared::rule::Rule;
use serde_json::{Value, json};

use crate::all::engine::LoadScript;
use crate::all::judges;
use crate::all::live::{Live, Setup, turn};

const FORMAT: &str = "HEADWAY_TEST_LOG";
/// In every secret, prompt and answer, and in nothing else.
const LEAK: &str = "leak-";

const TEXT: &str = "
    [policy_serving]
    publish_retry_delay_sec = 0.001
    load_timeout_sec = 0.02
    [reward_judging]
    judge_needs = \"turn\"
    judge_retries = 0
    [policy_training]
    batch_size = 2
    max_head_off_policyness = 9
";

/// Everything that can go well or wrong, at the most verbose level.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the tests below as a process of its own"]
async fn talkative() {
    let json = std::env::var(FORMAT).unwrap() == "json";
    log::start(Level::Trace, if json { Format::Json } else { Format::Text });
    // What a library might log.
    tracing::error!(target: "hyper::proto", "authorization: Bearer {LEAK}key");
    ruled().await;
    judged().await;
    broken().await;
}

fn options(setup: &mut Setup) {
    setup.gateway.api_key = Secret::new("leak-gateway-key");
    setup.gateway.admin_token = Secret::new("leak-admin-token");
}

/// A turn whose prompt and answer are secret.
async fn ask(live: &Live, session: &str, metadata: &str, text: &str) -> u16 {
    let mut body = turn(session, text);
    body["metadata"] = json!({ metadata: "leak-answer" });
    let request = live.post(&body).bearer_auth("leak-gateway-key");
    request.send().await.unwrap().status().as_u16()
}

async fn operate(live: &Live, command: &str, token: &str) -> u16 {
    let url = format!("{}/admin/{command}", live.url);
    live.client.post(url).bearer_auth(token).send().await.unwrap().status().as_u16()
}

async fn ruled() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(TEXT);
    options(&mut setup);
    setup.judge = Arc::new(Rule::read("exact").unwrap());
    setup.checkpoints = true;
    let live = setup.start(dir.path()).await;
    for number in 0..2 {
        assert_eq!(ask(&live, &format!("leak-{number}"), "answer", "say:leak-answer").await, 200);
    }
    live.until(|status| status.ledger.publications == 1).await;
    // The rule finds no answer to compare with.
    assert_eq!(ask(&live, "c", "other", "say:leak-answer").await, 200);
    live.until(|status| status.ledger.outstanding() == 0).await;
    for body in ["leak-no-json", "{\"messages\": \"leak-text\"}", "{\"seed\": \"leak-seed\"}"] {
        let request = live.client.post(format!("{}/v1/chat/completions", live.url));
        let response = request.bearer_auth("leak-gateway-key").body(body).send().await.unwrap();
        assert_eq!(response.status(), 400);
    }
    let request = live.post(&turn("d", "leak-prompt")).bearer_auth("leak-wrong-key");
    assert_eq!(request.send().await.unwrap().status(), 401);
    assert_eq!(operate(&live, "pause", "leak-wrong-token").await, 401);
    assert_eq!(operate(&live, "pause", "leak-admin-token").await, 200);
    assert_eq!(ask(&live, "e", "answer", "leak-prompt").await, 503);
    assert_eq!(operate(&live, "resume", "leak-admin-token").await, 200);
    assert_eq!(operate(&live, "publish", "leak-admin-token").await, 200);
    live.until(|status| status.ledger.publications == 2).await;
    for text in ["fail", "nan", "nothing"] {
        ask(&live, text, "answer", text).await;
    }
    live.end().await.0.unwrap();
    // It goes on where it ended.
    let mut setup = Setup::new(TEXT);
    options(&mut setup);
    setup.checkpoints = true;
    setup.start(dir.path()).await.end().await.0.unwrap();
}

async fn judged() {
    let script: judges::Script = |number| match number {
        0 => Some((StatusCode::INTERNAL_SERVER_ERROR, "leak-body".to_owned())),
        1 => Some((StatusCode::OK, "leak-garbage".to_owned())),
        2 => judges::says("leak-nothing in a box"),
        _ => judges::says("leak-thought \\boxed{1}"),
    };
    let (url, _) = judges::endpoint(script).await;
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(TEXT);
    options(&mut setup);
    setup.judge = Arc::new(judges::judge_with(&url, "leak-judge-key"));
    let live = setup.start(dir.path()).await;
    for number in 0..5 {
        ask(&live, &format!("j{number}"), "answer", "say:leak-answer").await;
    }
    live.until(|status| status.ledger.trained == 2).await;
    let page = live.get("/metrics").await.text().await.unwrap();
    for kind in ["status", "unreadable", "no_score"] {
        let line = format!("headway_failed_votes_total{{reason=\"{kind}\"}} 1");
        assert!(page.contains(&line), "{line} is not in\n{page}");
    }
    live.end().await.0.unwrap();
}

async fn broken() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(TEXT);
    options(&mut setup);
    setup.judge = Arc::new(Rule::exact());
    let live = setup.start(dir.path()).await;
    live.engine.loads(LoadScript::Hangs);
    live.trainer.fail_saves(1);
    for number in 0..2 {
        ask(&live, &format!("b{number}"), "answer", "say:leak-answer").await;
    }
    live.until(|status| status.ledger.failed_publications >= 2).await;
    live.engine.die();
    live.until(|status| status.gauges.replicas_up == 0).await;
    assert_eq!(ask(&live, "z", "answer", "leak-prompt").await, 503);
    let _ = live.end().await;
}

fn output(format: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "all::logs::talkative", "--ignored", "--nocapture"])
        .env(FORMAT, format)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}\n{text}");
    assert!(!said.contains(LEAK), "{said}");
    text
}

#[test]
fn a_run_says_what_it_does_and_shows_no_key_no_prompt_and_no_answer() {
    let text = output("text");
    let shown: Vec<&str> = text.lines().filter(|line| line.contains(LEAK)).collect();
    assert!(shown.is_empty(), "{shown:#?}");
    for expected in [
        "the run begins config=",
        "the run goes on where its record ends",
        "a replica is up",
        "a train step step=0 version=1 samples=2 staleness_mean=0.0 staleness_max=0 reward_mean=1.0",
        "weights have reached every replica publication=0 version=1 window_sec=",
        "last=\"the rule gives no score: the request has no metadata.answer\"",
        "votes without a score: 1 status",
        "requests refused: 1 paused",
        "an operator's command command=\"publish\" done=true",
        "a request is answered with an error status=401 code=\"unauthorized\"",
        "a request is answered with an error status=400 code=\"bad_request\"",
        "its weights could not be saved",
        "the load took too long and is abandoned",
        "a publication failed",
        "a replica is down",
        "the run ends: waiting for what runs",
        "the run ends: writing the last of the record",
        "the run has ended steps=1",
        "TRACE",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    assert!(!text.contains("hyper"), "{text}");
}

#[test]
fn each_line_can_be_a_json_object() {
    let text = output("json");
    assert!(!text.contains(LEAK));
    let lines: Vec<Value> = text
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let step = lines.iter().find(|line| line["message"] == "a train step").unwrap();
    assert_eq!((&step["level"], &step["samples"]), (&json!("INFO"), &json!(2)));
    assert!(step["timestamp"].is_string(), "{step}");
}

#[test]
fn a_level_is_one_of_six_words() {
    assert_eq!("WARN".parse(), Ok(Level::Warn));
    assert_eq!(Level::default().to_string(), "info");
    assert!("hyper=trace".parse::<Level>().is_err());
}

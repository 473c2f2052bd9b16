//! Sessions of a task, played against a gateway as an agent of a user does.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State as Shared;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use headway_runtime::environment::{Episode, Failed, Host, Operation, Options, State, Task};
use headway_runtime::shared::backoff::Backoff;
use headway_runtime::shared::config::EnvironmentHosting;
use headway_runtime::shared::time::Span;
use headway_runtime::store::replay;
use serde_json::{Value, json};

use crate::all::live::{SMALL, Setup, config, query};

/// Two turns: the scripted engine says what it is told, the tool reverses it.
struct Reverse {
    /// Steps that fail before one goes well.
    failing: Arc<AtomicU32>,
}

struct Session {
    word: String,
    over: bool,
    failing: Arc<AtomicU32>,
}

impl Task for Reverse {
    fn name(&self) -> &'static str {
        "reverse"
    }

    fn begin(&self, prompt: u64) -> Box<dyn Episode> {
        let word = format!("word{prompt}");
        Box::new(Session { word, over: false, failing: self.failing.clone() })
    }
}

fn state(role: &'static str, content: String, last: bool) -> State {
    State { role, answer: content.clone(), content, max_tokens: 64, last }
}

impl Episode for Session {
    fn reset(&mut self) -> Operation<'_, State> {
        let state = state("user", self.word.clone(), false);
        Box::pin(async move { Ok(state) })
    }

    fn step<'a>(&'a mut self, said: &'a str) -> Operation<'a, Option<State>> {
        Box::pin(async move {
            let less = |left: u32| left.checked_sub(1);
            if self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
                return Err(Failed("the tool is out of order".to_owned()));
            }
            let reversed = said.chars().rev().collect();
            let over = std::mem::replace(&mut self.over, true);
            Ok((!over).then(|| state("tool", reversed, true)))
        })
    }
}

fn task(failing: u32) -> Reverse {
    Reverse { failing: Arc::new(AtomicU32::new(failing)) }
}

/// Waits that a test has the time for.
fn options(url: &str) -> Options {
    let millis = Span::from_millis;
    Options {
        base_url: url.to_owned(),
        sessions: 6,
        limit: Some(12),
        backoff: Backoff { first: millis(1), longest: millis(4), retry_after_max: millis(0) },
        ..Options::default()
    }
}

fn hosting(text: &str) -> EnvironmentHosting {
    config(&format!("{SMALL}\n[environment_hosting]\n{text}")).environment_hosting
}

async fn play(host: &Host) {
    let played = host.run(std::future::pending());
    tokio::time::timeout(Duration::from_secs(20), played).await.expect("sessions come to an end");
}

const GROUPS: &str = "
    [policy_serving]
    sync_mode = \"pause_drain\"
    [reward_judging]
    judge_needs = \"turn\"
    [policy_training]
    batch_size = 2
    group_size = 3
    max_head_off_policyness = 0
";

async fn groups(url: &str) -> Host {
    let options = Options { group_size: 3, ..options(url) };
    Host::new(task(0), options, hosting("")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_session_is_played_to_its_end_and_every_group_is_trained_whole() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(GROUPS).start(dir.path()).await;
    let host = groups(&live.url).await;
    play(&host).await;
    let counts = host.counts();
    assert_eq!((counts.begun, counts.complete, counts.turns), (12, 12, 24));
    assert_eq!((counts.given_up, counts.broken, counts.unrecorded), (0, 0, 0));
    // 4 prompts of 2 turns are 8 groups, 2 in a step, none of which may be older than its weights.
    let status = live.until(|status| status.ledger.steps == 4).await;
    assert_eq!((status.ledger.trained, status.ledger.outstanding()), (24, 0));
    let refused: u64 = status.ledger.refused.iter().sum();
    assert!(refused > 0, "the bound was never reached");
    assert_eq!(counts.too_many + counts.unavailable, refused);
    assert_eq!(counts.retries, refused);
    let (ended, record) = live.end().await;
    ended.unwrap();
    let whole: i64 = query(
        &record,
        "SELECT count(*) FROM (SELECT 1 FROM samples GROUP BY \"group\", step HAVING count(*) = 3)",
    );
    assert_eq!(whole, 8);
    let stale: i64 = query(&record, "SELECT max(staleness) FROM samples");
    assert_eq!(stale, 0);
    // A last request that is refused ends its session too: its retry is another one of that name.
    let names: i64 = query(&record, "SELECT count(DISTINCT name) FROM sessions");
    let live: i64 = query(&record, "SELECT count(*) FROM sessions WHERE ended = 0");
    assert_eq!((names, live), (12, 0), "each says that it is over");
    replay(&record).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_turn_sees_the_first_and_what_the_tool_said() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    let options = Options { limit: Some(1), ..options(&live.url) };
    play(&Host::new(task(0), options, hosting("")).unwrap()).await;
    live.until(|status| status.ledger.steps == 1).await;
    let (_, record) = live.end().await;
    let messages: String = query(&record, "SELECT messages FROM samples WHERE id = 1");
    let messages: Value = serde_json::from_str(&messages).unwrap();
    let expected = json!([
        {"role": "user", "content": "word0"},
        {"role": "assistant", "content": "word0"},
        {"role": "tool", "content": "0drow"},
    ]);
    assert_eq!(messages, expected);
    let next: String = query(&record, "SELECT next_state FROM samples WHERE id = 0");
    assert_eq!(next, "0drow");
    let scores: f64 = query(&record, "SELECT sum(score) FROM samples");
    assert_eq!(scores, 2.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_environments_than_there_are_are_played_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    let host = Host::new(task(0), options(&live.url), hosting("max_envs = 2")).unwrap();
    assert_eq!(host.places(), 2);
    live.engine.hold(true);
    let playing = tokio::spawn({
        let host = host.clone();
        async move { play(&host).await }
    });
    live.until(|status| status.gauges.running == 2).await;
    assert_eq!(host.counts().begun, 2);
    live.engine.hold(false);
    playing.await.unwrap();
    assert_eq!(host.counts().complete, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_fails_is_tried_again_as_often_as_it_is_configured() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    let options = || Options { sessions: 1, limit: Some(1), ..options(&live.url) };
    let host = Host::new(task(2), options(), hosting("retries = 2")).unwrap();
    play(&host).await;
    assert_eq!((host.counts().failed_operations, host.counts().complete), (2, 1));
    let options = Options { first_prompt: 1, ..options() };
    let host = Host::new(task(2), options, hosting("retries = 1")).unwrap();
    play(&host).await;
    assert_eq!((host.counts().failed_operations, host.counts().broken), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_hangs_ends_after_its_time() {
    struct Hangs;
    impl Task for Hangs {
        fn name(&self) -> &'static str {
            "hangs"
        }
        fn begin(&self, _: u64) -> Box<dyn Episode> {
            Box::new(Self)
        }
    }
    impl Episode for Hangs {
        fn reset(&mut self) -> Operation<'_, State> {
            Box::pin(std::future::pending())
        }
        fn step<'a>(&'a mut self, _: &'a str) -> Operation<'a, Option<State>> {
            Box::pin(std::future::pending())
        }
    }
    let hosting = hosting("reset_timeout_sec = 0.01\nretries = 1");
    let options = Options { limit: Some(1), ..options("http://127.0.0.1:1") };
    let host = Host::new(Hangs, options, hosting).unwrap();
    play(&host).await;
    assert_eq!((host.counts().failed_operations, host.counts().broken), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_are_stopped_leave_nothing_running() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    live.engine.hold(true);
    let host = Host::new(task(0), options(&live.url), hosting("")).unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let playing = tokio::spawn(async move { host.run(async { drop(stopped.await) }).await });
    live.until(|status| status.gauges.running > 0).await;
    drop(stop);
    playing.await.unwrap();
    live.until(|status| status.gauges.running == 0).await;
    let (ended, _) = live.end().await;
    ended.unwrap();
}

/// A status, and what `Retry-After` says.
type Refused = (u16, Option<&'static str>);

/// A gateway that answers by a script: refusals, then the answer.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<Vec<Refused>>>,
    seen: Arc<Mutex<Vec<HeaderMap>>>,
}

async fn answer(Shared(script): Shared<Script>, headers: HeaderMap) -> Response {
    script.seen.lock().unwrap().push(headers);
    let next = script.answers.lock().unwrap().pop();
    let body = json!({"choices": [{"message": {"role": "assistant", "content": "hi"}}]});
    let Some((status, retry_after)) = next else { return Json(body).into_response() };
    let code = if status == 400 { "bad_group" } else { "other" };
    let error = json!({"error": {"message": "no", "type": "x", "param": null, "code": code}});
    let mut response = (StatusCode::from_u16(status).unwrap(), Json(error)).into_response();
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.parse().unwrap());
    }
    response
}

/// Plays one session against the script, whose first answer is its last.
async fn scripted(
    answers: &[Refused],
    change: impl FnOnce(&mut Options),
) -> (Host, Vec<HeaderMap>) {
    let script = Script::default();
    script.answers.lock().unwrap().extend(answers.iter().rev());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    // A trailing /v1 makes no difference.
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let router = Router::new().route("/v1/chat/completions", post(answer));
    let router = router.with_state(script.clone());
    tokio::spawn(async { axum::serve(listener, router).await });
    let mut options = Options { sessions: 1, limit: Some(1), ..options(&url) };
    change(&mut options);
    let host = Host::new(task(0), options, hosting("")).unwrap();
    play(&host).await;
    let seen = script.seen.lock().unwrap().clone();
    (host, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_official_client_tries_again_is_tried_again_and_counted() {
    let answers = [(503, None), (429, None), (500, None), (408, None), (409, None)];
    let (host, seen) = scripted(&answers, |_| {}).await;
    let counts = host.counts();
    assert_eq!((counts.complete, counts.turns, counts.retries), (1, 2, 5));
    assert_eq!((counts.unavailable, counts.too_many, counts.errors), (1, 1, 3));
    assert_eq!(seen.len(), 7);
    assert!(seen[0].get("x-session-done").is_none());
    assert_eq!(seen[6].get("x-session-done").unwrap(), "1");
    assert!(seen.iter().all(|headers| headers["x-session-id"] == "reverse-0-0"));
    assert!(seen.iter().all(|headers| headers["x-turn-type"] == "main"));
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_honoured() {
    // The backoff would take an hour.
    let hour = Span::from_secs(3600);
    let backoff = Backoff { first: hour, longest: hour, retry_after_max: Span::from_secs(60) };
    let (host, _) = scripted(&[(503, Some("0.01"))], |options| options.backoff = backoff).await;
    assert_eq!((host.counts().complete, host.counts().retries), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_given_up_after_its_retries_and_at_once_where_they_are_no_use() {
    let (host, seen) = scripted(&[(503, None); 9], |options| options.max_retries = 2).await;
    assert_eq!((host.counts().given_up, host.counts().retries, seen.len()), (1, 2, 3));
    let (host, seen) = scripted(&[(401, None)], |_| {}).await;
    assert_eq!((host.counts().given_up, host.counts().retries, seen.len()), (1, 0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_group_is_closed_is_played_unrecorded() {
    let (host, seen) = scripted(&[(400, None)], |options| options.group_size = 2).await;
    assert_eq!((host.counts().complete, host.counts().unrecorded), (1, 1));
    let kind = |place: usize, name: &str| seen[place].get(name).map(|it| it.to_str().unwrap());
    assert_eq!(kind(0, "x-turn-type"), Some("main"));
    assert_eq!(kind(0, "x-group-id"), Some("reverse-0/1"));
    assert_eq!(kind(1, "x-turn-type"), Some("side"));
    assert_eq!(kind(1, "x-group-id"), None);
    assert_eq!(kind(2, "x-turn-type"), Some("main"));
    assert_eq!(kind(2, "x-group-id"), Some("reverse-0/2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_not_there_yet_is_tried_again() {
    let options =
        Options { sessions: 1, limit: Some(1), max_retries: 3, ..options("http://127.0.0.1:1") };
    let host = Host::new(task(0), options, hosting("")).unwrap();
    play(&host).await;
    assert_eq!((host.counts().unreachable, host.counts().given_up), (4, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_wait_out_failed_steps_and_failed_publications() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(GROUPS).start(dir.path()).await;
    live.trainer.fail_saves(1);
    live.trainer.fail_steps(1);
    let host = groups(&live.url).await;
    play(&host).await;
    assert_eq!(host.counts().complete, 12);
    let status = live.until(|status| status.ledger.steps == 4).await;
    assert_eq!((status.ledger.trained, status.ledger.failed_steps), (24, 1));
}

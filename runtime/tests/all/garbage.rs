//! Engines that say what cannot be, panic, or fall silent: their turns fail alone, nothing of it is
//! trained on, and nothing is kept.

use headway_runtime::engine::{EngineEvent, Token};
use headway_runtime::shared::action::Discard;
use headway_runtime::shared::id::{PublicationId, RequestId};
use headway_runtime::shared::input::Finish;
use headway_runtime::shared::time::Time;
use headway_runtime::shared::version::{DeployVersion, RolloutVersion};
use headway_runtime::store::replay;
use serde_json::{Value, json};

use crate::all::live::{Live, SMALL, Setup, query, turn};

async fn start(dir: &tempfile::TempDir, serving: &str) -> Live {
    let serving = format!("[policy_serving]\n {serving}");
    let mut setup = Setup::new(&SMALL.replace("[policy_serving]", &serving));
    setup.replicas = 2;
    setup.start(dir.path()).await
}

fn token(version: u32, logprob: f32) -> Token {
    Token { id: 65, logprob, version: RolloutVersion::new(version) }
}

/// One token of a request's first attempt.
fn says(request: u64, token: Token) -> EngineEvent {
    let at = Time::from_nanos(u64::MAX);
    EngineEvent::Tokens { at, tokens: vec![(RequestId(request), 1, token)] }
}

const fn ended(request: u64) -> EngineEvent {
    EngineEvent::Ended { request: RequestId(request), attempt: 1, finish: Finish::Stop }
}

/// What must hold after whatever was said: it goes on, and nothing is kept.
async fn goes_on(live: Live) {
    let steps = live.driver.status().ledger.steps;
    for session in ["x", "y"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.steps > steps).await;
    let full = |status: &headway_runtime::driver::Status| status.ledger.outstanding() == 1;
    if full(&live.driver.status()) {
        live.answer(&turn("z", "hello")).await;
    }
    live.until_nothing_is_kept().await;
    let (ended, record) = live.end().await;
    ended.unwrap();
    replay(&record).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn events_about_nothing_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(&dir, "").await;
    live.answer(&turn("a", "hello")).await;
    live.until(|status| status.committed == status.inputs && status.gauges.votes == 0).await;
    let publication = PublicationId(99);
    for event in [
        says(77, token(0, -1.0)),
        ended(77),
        says(0, token(0, -1.0)),
        ended(0),
        EngineEvent::Transferred { publication },
        EngineEvent::Loaded { publication },
        EngineEvent::LoadFailed { publication, intact: false },
        EngineEvent::Up { deploy: DeployVersion::new(9) },
    ] {
        live.engine.say(event);
    }
    let status = live.until(|status| status.strays == 4 && status.ledger.ignored == 4).await;
    assert_eq!((status.gauges.replicas_up, status.ledger.outstanding()), (2, 1));
    let tokens: String = query(&live.record, "SELECT tokens FROM samples WHERE id = 0");
    assert_eq!(tokens, "[104,101,108,108,111,256]");
    goes_on(live).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_cannot_end_the_turns_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(&dir, "").await;
    live.engine.hold(true);
    let running = live.begin(&turn("a", "hello"));
    live.engine.wait_for_turns(1);
    live.engines[1].say(says(0, token(0, -1.0)));
    live.engines[1].say(ended(0));
    live.until(|status| status.strays == 2).await;
    live.engine.hold(false);
    let answer: Value = running.await.unwrap().json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "hello");
    goes_on(live).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_cannot_be_fails_its_turn_alone() {
    for logprob in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.5] {
        let dir = tempfile::tempdir().unwrap();
        let live = start(&dir, "").await;
        live.engine.hold(true);
        let running = live.begin(&turn("a", "hello"));
        live.engine.wait_for_turns(1);
        live.engine.say(says(0, token(0, logprob)));
        assert_eq!(running.await.unwrap().status(), 500);
        // It is told to stop, and is not listened to any more.
        live.engine.hold(false);
        live.engine.wait_for_turns(0);
        assert_eq!(live.engine.aborted(), [RequestId(0)]);
        let status = live.driver.status();
        assert_eq!(status.ledger.discarded[Discard::GenerationFailed.index()], 1, "{logprob}");
        goes_on(live).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_tokens_than_were_asked_for_fail_their_turn() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(&dir, "").await;
    live.engine.hold(true);
    let mut body = turn("a", "hello");
    body["max_tokens"] = json!(3);
    let running = live.begin(&body);
    live.engine.wait_for_turns(1);
    for _ in 0..4 {
        live.engine.say(says(0, token(0, -1.0)));
    }
    assert_eq!(running.await.unwrap().status(), 500);
    live.engine.hold(false);
    goes_on(live).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_that_it_was_never_told_are_not_trained_on() {
    for versions in [vec![3], vec![0, 1], vec![1, 0]] {
        let dir = tempfile::tempdir().unwrap();
        let live = start(&dir, "").await;
        live.engine.hold(true);
        let running = live.begin(&turn("a", "hello"));
        live.engine.wait_for_turns(1);
        for version in versions {
            live.engine.say(says(0, token(version, -1.0)));
        }
        live.engine.say(ended(0));
        // The client has its answer; it is no sample.
        let answer: Value = running.await.unwrap().json().await.unwrap();
        assert_eq!(answer["sample_id"], Value::Null);
        let status = live.driver.status();
        assert_eq!(status.ledger.discarded[Discard::BadStamp.index()], 1);
        live.engine.hold(false);
        goes_on(live).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_panics_is_a_replica_less() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(&dir, "aborted = \"restart\"").await;
    live.engine.hold(true);
    let running = live.begin(&turn("a", "hello"));
    live.engine.wait_for_turns(1);
    live.engine.panic();
    // Its turn begins again on the other one.
    assert_eq!(running.await.unwrap().status(), 200);
    assert_eq!(live.driver.status().gauges.replicas_up, 1);
    goes_on(live).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_falls_silent_keeps_nothing_alive() {
    let dir = tempfile::tempdir().unwrap();
    let serving = "generation_timeout_sec = 0.05\n abort_timeout_sec = 0.02";
    let live = start(&dir, serving).await;
    // Both: turns go where there are fewest.
    let silent: Vec<_> = live.engines.iter().map(|engine| engine.silence()).collect();
    let asked: Vec<_> =
        ["a", "b", "c"].map(|session| live.begin(&turn(session, "hello"))).into_iter().collect();
    for answer in asked {
        assert_eq!(answer.await.unwrap().status(), 500);
    }
    let status = live.until_nothing_is_kept().await;
    assert_eq!(status.ledger.discarded[Discard::GenerationFailed.index()], 3);
    drop(silent);
    // What it says after all comes too late.
    live.until(|status| status.strays >= 3).await;
    goes_on(live).await;
}

//! What OpenClaw-RL's proxy gets wrong, and this one does not.

use std::sync::Arc;

use headway_runtime::shared::action::Discard;
use headway_runtime::shared::rule::Rule;
use headway_runtime::tokenizer::Bytes;
use serde_json::{Value, json};

use crate::all::live::{SMALL, Setup, query, turn};

#[tokio::test(flavor = "multi_thread")]
async fn the_surplus_of_a_batch_is_kept_for_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    live.trainer.hold(true);
    for session in ["a", "b", "c", "d"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.gauges.output_queue == 2).await;
    live.trainer.hold(false);
    let status = live.until(|status| status.ledger.trained == 4).await;
    assert_eq!(status.ledger.discarded.iter().sum::<u64>(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_run_answers_before_the_trainer_asks_for_anything() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    assert_eq!(live.ask(&turn("a", "hello")).await.status(), 200);
    assert_eq!(live.driver.status().ledger.steps, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_says_when_to_try_again() {
    let dir = tempfile::tempdir().unwrap();
    let text = SMALL.replace("max_head_off_policyness = 4", "max_head_off_policyness = 0");
    let live = Setup::new(&text).start(dir.path()).await;
    live.trainer.hold(true);
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    let refused = live.ask(&turn("c", "hello")).await;
    assert_eq!(refused.status(), 429);
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait));
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["code"], "stale");
    assert_eq!(error["error"]["type"], "rate_limit_error");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_turn_is_not_trained_on_as_if_it_were_complete() {
    let dir = tempfile::tempdir().unwrap();
    let serving = "sync_mode = \"pause_abort\"\n aborted = \"discard\"";
    let text = SMALL.replace("sync_mode = \"in_flight\"", serving);
    let live = Setup::new(&text).start(dir.path()).await;
    live.trainer.hold(true);
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.engine.hold_after(3);
    let mut body = turn("c", "long:30");
    let running = live.begin(&body);
    live.engine.wait_for_turns(1);
    live.engine.wait_until_held();
    live.trainer.hold(false);
    assert_eq!(running.await.unwrap().status(), 500);
    let status = live.until(|status| status.ledger.publications == 1).await;
    assert_eq!(status.ledger.discarded[Discard::Aborted.index()], 1);
    // Who reads along gets what there is, marked as such.
    live.engine.hold(false);
    live.trainer.hold(true);
    for session in ["d", "e"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.engine.hold_after(3);
    body["stream"] = json!(true);
    let stream = live.ask(&body).await;
    live.engine.wait_until_held();
    live.trainer.hold(false);
    let text = stream.text().await.unwrap();
    assert!(text.contains("\"finish_reason\":\"abort\""), "{text}");
    assert!(text.contains("\"sample_id\":null"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_turn_goes_on_where_it_was_and_nobody_notices() {
    let dir = tempfile::tempdir().unwrap();
    let serving = "sync_mode = \"pause_abort\"\n aborted = \"resume\"";
    let text = SMALL.replace("sync_mode = \"in_flight\"", serving);
    let live = Setup::new(&text).start(dir.path()).await;
    live.trainer.hold(true);
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.engine.hold_after(3);
    let mut body = turn("c", "abcdefgh");
    body["stream"] = json!(true);
    body["return_token_ids"] = json!(true);
    let stream = live.ask(&body).await;
    live.engine.wait_until_held();
    live.trainer.hold(false);
    live.until(|status| status.ledger.publications == 1).await;
    live.engine.hold(false);
    let text = stream.text().await.unwrap();
    assert_eq!(text.matches("\"token_ids\"").count(), 9, "each token once: {text}");
    assert!(text.contains("\"policy_versions\":[[0,3],[1,6]]"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_trained_on_is_what_was_sampled_and_not_its_text_tokenised_again() {
    let dir = tempfile::tempdir().unwrap();
    let text = SMALL.replace("batch_size = 2", "batch_size = 1");
    let live = Setup::new(&text).start(dir.path()).await;
    // Ids that no text gives, and bytes that are no character.
    live.answer(&turn("a", "ids:260,195,65,256")).await;
    live.until(|status| status.ledger.trained == 1).await;
    let sample = live.trainer.batches()[0][0].clone();
    let generated = sample.loss_mask.iter().filter(|generated| **generated).count();
    assert_eq!(sample.tokens[sample.tokens.len() - generated..], [260, 195, 65, Bytes::END]);
    assert_eq!(sample.rollout_logprobs.len(), sample.tokens.len());
    let logprobs = &sample.rollout_logprobs[sample.tokens.len() - generated..];
    assert!(logprobs.iter().all(|logprob| *logprob < 0.0), "{logprobs:?}: none is padded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_judged_when_its_next_state_arrives_not_when_that_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup::new("[policy_training]\n batch_size = 1");
    setup.judge = Arc::new(Rule::read("contains(next_state, 'thanks')").unwrap());
    let live = setup.start(dir.path()).await;
    live.answer(&turn("a", "hello")).await;
    live.engine.hold(true);
    let second = live.begin(&turn("a", "thanks"));
    let status = live.until(|status| status.ledger.trained == 1).await;
    assert_eq!(status.gauges.running, 1, "the second turn has not been answered");
    live.engine.hold(false);
    assert_eq!(second.await.unwrap().status(), 200);
    live.until(|status| status.committed == status.inputs).await;
    let state: String = query(&live.record, "SELECT next_state FROM samples WHERE id = 0");
    assert_eq!(state, "thanks");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_leaves_its_session_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup::new("[policy_training]\n batch_size = 1");
    setup.judge = Arc::new(Rule::read("contains(next_state, 'thanks')").unwrap());
    let live = setup.start(dir.path()).await;
    let empty = live.answer(&turn("a", "nothing")).await;
    assert_eq!(empty["choices"][0]["message"]["content"], "");
    assert_eq!(empty["sample_id"], Value::Null);
    live.answer(&turn("a", "hello")).await;
    live.answer(&turn("a", "thanks")).await;
    let status = live.until(|status| status.ledger.trained == 1).await;
    assert_eq!(status.ledger.discarded[Discard::Empty.index()], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_never_says_it_is_done_ends_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let text =
        "[environment_hosting]\n session_idle_sec = 0.05\n[policy_training]\n batch_size = 1";
    let live = Setup::new(text).start(dir.path()).await;
    live.answer(&turn("a", "hello")).await;
    let status = live.until(|status| status.ledger.outstanding() == 0).await;
    assert_eq!(status.ledger.discarded[Discard::NoNextState.index()], 1);
    // The name is free for another session.
    live.answer(&turn("a", "hello")).await;
    live.until(|status| status.committed == status.inputs).await;
    let sessions: i64 = query(&live.record, "SELECT count(DISTINCT session) FROM samples");
    assert_eq!(sessions, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_when_its_last_turn_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let text = SMALL
        .replace("judge_needs = \"turn\"", "judge_needs = \"turn\"\n fire_on_turn_end = false");
    let live = Setup::new(&text).start(dir.path()).await;
    live.answer(&turn("a", "one")).await;
    assert_eq!(live.driver.status().ledger.votes, 0);
    let last = live.post(&turn("a", "two")).header("X-Session-Done", "Yes").send().await.unwrap();
    assert_eq!(last.status(), 200);
    live.until(|status| status.ledger.trained == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_trains_nothing_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    let body = json!({"messages": [{"role": "user", "content": "hello"}]});
    let answer = live.answer(&body).await;
    assert!(answer["session_id"].is_string());
    let ready: Value = live.get("/readyz").await.json().await.unwrap();
    assert_eq!(ready["ready"], true);
    assert_eq!(ready["waits_for"], "clients blocks: no main turn has been asked for");
}

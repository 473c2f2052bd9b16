//! SGLang as the serving engine, over real HTTP.

use headway_runtime::shared::action::Discard;
use headway_runtime::shared::time::Span;
use headway_runtime::tokenizer::{Bytes, Tokenizer};
use serde_json::{Value, json};

use crate::all::engine::script;
use crate::all::live::{query, turn};
use crate::all::outside::{Run, text};
use crate::all::sglang_server::{SglangServer, Trouble};

fn server(dir: &tempfile::TempDir) -> SglangServer {
    SglangServer::start(dir.path(), |prompt| script(prompt).0)
}

/// What the server must have been told for a turn to be exact.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_trained_with_the_ids_and_log_probabilities_that_the_server_sent() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = Run::with(dir.path(), "", &server.url()).await;
    assert_eq!(server.label(), "headway-0", "a fresh server holds the first checkpoint");
    assert_eq!(server.calls("/update_weight_version")[0]["abort_all_requests"], false);
    let mut body = turn("a", "hello");
    body["seed"] = json!(7);
    body["stop"] = json!("zz");
    let answer: Value = run.ask(&body).await.json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "hello");
    assert_eq!(answer["policy_versions"], json!([[[0, 6]]]));
    run.turns("b", 1).await;
    let call = &server.calls("/generate")[0];
    let sampling = &call["sampling_params"];
    assert_eq!(sampling["stop_token_ids"], json!([Bytes::END]));
    assert_eq!(sampling["stop"], json!(["zz"]));
    assert_eq!(sampling["sampling_seed"], 7);
    let sample = run.pull("one").await["samples"][0].clone();
    let prompt = call["input_ids"].as_array().unwrap().len();
    let mut ids = Bytes.encode("hello");
    ids.push(Bytes::END);
    assert_eq!(sample["tokens"].as_array().unwrap()[prompt..], json!(ids).as_array().unwrap()[..]);
    let logprobs: Vec<f64> = ids.iter().map(|id| -f64::from(id % 7 + 1) / 8.0).collect();
    let sent = sample["rollout_log_probs"].as_array().unwrap();
    assert_eq!(sent[prompt..], json!(logprobs).as_array().unwrap()[..]);
    assert_eq!(sample["reward"], 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_that_hold_the_new_tokens_alone_mean_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    server.incremental();
    let run = Run::with(dir.path(), "", &server.url()).await;
    let answer: Value = run.ask(&turn("a", "say:good day")).await.json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "good day");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_text_of_several_tokens_ends_the_turn_where_its_ids_end() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = Run::with(dir.path(), "", &server.url()).await;
    let mut body = turn("a", "say:one STOP two");
    body["stop"] = json!("STOP");
    body["return_token_ids"] = json!(true);
    let answer: Value = run.ask(&body).await.json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "one ");
    assert_eq!(answer["choices"][0]["token_ids"], json!(Bytes.encode("one STOP")));
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_aborts_its_turn_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = Run::with(dir.path(), "", &server.url()).await;
    server.limit(Some(2));
    let (stays, leaves) = (run.begin(&turn("a", "hello")), run.begin(&turn("b", "hello")));
    server.until_generated(2, 2).await;
    leaves.abort();
    server.until_called("/abort_request", 1).await;
    server.until_generated(1, 2).await;
    server.limit(None);
    assert_eq!(stays.await.unwrap().status(), 200);
    let status = run.until(|status| status.gauges.running == 0).await;
    assert_eq!(status.ledger.discarded[Discard::ClientLeft.index()], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_turn_keeps_its_partial_text_where_that_is_wished() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let serving = "sync_mode = \"pause_abort\"\naborted = \"keep_as_final\"";
    let run = Run::with(dir.path(), serving, &server.url()).await;
    run.turns("a", 2).await;
    let task = run.pull("one").await;
    server.limit(Some(3));
    let cut = run.begin(&turn("c", "hello"));
    server.until_generated(1, 3).await;
    run.report(&task, Some(dir.path())).await;
    run.until_published(1).await;
    let answer: Value = cut.await.unwrap().json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "hel");
    assert_eq!(answer["choices"][0]["finish_reason"], "abort");
    server.limit(None);
    let after = run.ask(&turn("d", "hello")).await;
    assert_eq!(after.headers()["x-policy-versions"], "1:6");
}

/// The segments of a turn under which weights are loaded after 3 of its 6 tokens.
async fn mixed(serving: &str) -> (Run, SglangServer, tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = Run::with(dir.path(), serving, &server.url()).await;
    run.turns("a", 2).await;
    let task = run.pull("one").await;
    server.limit(Some(3));
    let long = run.begin(&turn("c", "hello"));
    server.until_generated(1, 3).await;
    run.report(&task, Some(dir.path())).await;
    run.until_published(1).await;
    server.limit(None);
    let response = long.await.unwrap();
    let versions = response.headers()["x-policy-versions"].to_str().unwrap().to_owned();
    (run, server, dir, versions)
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_change_under_a_turn_that_computes_its_cache_again() {
    let (_run, server, dir, versions) = mixed("sync_mode = \"in_flight\"").await;
    assert_eq!(versions, "0:3,1:3");
    assert_eq!(server.calls("/pause_generation"), [json!({"mode": "retract"})]);
    let load = &server.calls("/update_weights_from_disk")[0];
    assert_eq!(load["model_path"], dir.path().to_str().unwrap());
    assert_eq!(
        (&load["weight_version"], &load["flush_cache"]),
        (&json!("headway-1"), &json!(true))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_change_under_a_turn_that_keeps_its_cache() {
    let serving = "sync_mode = \"pause_keep\"\nkv_on_sync = \"keep\"";
    let (_run, server, _dir, versions) = mixed(serving).await;
    assert_eq!(versions, "0:3,1:3");
    assert_eq!(server.calls("/pause_generation"), [json!({"mode": "in_place"})]);
    assert_eq!(server.calls("/update_weights_from_disk")[0]["flush_cache"], false);
    assert_eq!(server.calls("/flush_cache").len(), 0, "it would be refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flush_that_is_refused_while_something_runs_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = Run::with(dir.path(), "sync_mode = \"pause_drain\"", &server.url()).await;
    // Something of somebody else, that no abort of ours ends.
    let stranger = server.occupy();
    run.train_once("a", dir.path()).await;
    server.until_called("/flush_cache", 3).await;
    assert_eq!(server.calls("/update_weights_from_disk").len(), 0);
    drop(stranger);
    run.until_published(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_cannot_be_read_keeps_the_old_weights_serving() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = Run::with(dir.path(), "publish_retries = 1000", &server.url()).await;
    server.trouble(Trouble::BadCheckpoint);
    run.train_once("a", dir.path()).await;
    run.until(|status| status.ledger.failed_publications >= 2).await;
    assert_eq!(server.label(), "headway-0");
    server.trouble(Trouble::None);
    run.until_published(1).await;
    let after = run.ask(&turn("c", "hello")).await;
    assert_eq!(after.headers()["x-policy-versions"], "1:6");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_changed_nothing_is_noticed_by_its_label() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = Run::with(dir.path(), "publish_retries = 1000", &server.url()).await;
    server.trouble(Trouble::SilentLoad);
    run.train_once("a", dir.path()).await;
    run.until(|status| status.ledger.failed_publications >= 1).await;
    server.trouble(Trouble::None);
    run.until_published(1).await;
    assert_eq!(server.label(), "headway-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hung_load_is_abandoned_and_the_server_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let serving = "load_timeout_sec = 0.05\npublish_retries = 1000";
    let run = Run::with(dir.path(), serving, &server.url()).await;
    server.trouble(Trouble::HungLoad);
    run.train_once("a", dir.path()).await;
    run.until(|status| status.ledger.failed_publications >= 1).await;
    server.trouble(Trouble::None);
    run.until_published(1).await;
    assert_eq!(run.ask(&turn("c", "hello")).await.headers()["x-policy-versions"], "1:6");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_takes_its_turns_and_is_up_again_with_the_newest_weights() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = server(&dir);
    let run = Run::with(dir.path(), "aborted = \"discard\"", &server.url()).await;
    run.train_once("a", dir.path()).await;
    run.until_published(1).await;
    server.limit(Some(2));
    let lost = run.begin(&turn("c", "hello"));
    server.until_generated(1, 2).await;
    let mut server = tokio::task::spawn_blocking(move || {
        server.die();
        server
    })
    .await
    .unwrap();
    assert_eq!(lost.await.unwrap().status(), 500);
    run.until(|status| status.gauges.replicas_up == 0).await;
    let refused: Value = run.ask(&turn("d", "hello")).await.json().await.unwrap();
    assert_eq!(refused["error"]["code"], "no_replica");
    server.limit(None);
    let server = tokio::task::spawn_blocking(move || {
        server.revive();
        server
    })
    .await
    .unwrap();
    // It came back with its first checkpoint, which is behind: the weights are loaded again.
    run.until_published(2).await;
    assert_eq!(server.label(), "headway-1");
    let after = run.ask(&turn("e", "hello")).await;
    assert_eq!(after.headers()["x-policy-versions"], "1:6");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_cannot_be_believed_fail_and_are_not_trained_on() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = Run::with(dir.path(), "", &server.url()).await;
    let troubles = [Trouble::NoLabel, Trouble::ShortLogprobs, Trouble::Garbage];
    for trouble in troubles {
        server.trouble(trouble);
        assert_eq!(run.ask(&turn(&format!("{trouble:?}"), "hello")).await.status(), 500);
    }
    server.trouble(Trouble::None);
    run.turns("good", 1).await;
    let status = run.until(|status| status.committed == status.inputs).await;
    assert_eq!(status.ledger.discarded[Discard::GenerationFailed.index()], troubles.len() as u64);
    let kept: i64 = query(&run.record, "SELECT count(*) FROM samples WHERE tokens IS NOT NULL");
    assert_eq!(kept, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_of_another_run_are_not_served() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    server.set_label("headway-57");
    let urls = [server.url()];
    let run = Run::start(dir.path(), &text(""), &urls, Span::from_secs(60)).await;
    server.until_called("/get_weight_version", 3).await;
    assert_eq!(run.ask(&turn("a", "hello")).await.status(), 503);
    server.set_label("default");
    run.until(|status| status.gauges.replicas_up == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_servers_are_several_replicas() {
    let dir = tempfile::tempdir().unwrap();
    let servers = [server(&dir), server(&dir)];
    let urls: Vec<String> = servers.iter().map(SglangServer::url).collect();
    let run = Run::start(dir.path(), &text(""), &urls, Span::from_secs(60)).await;
    run.until(|status| status.gauges.replicas_up == 2).await;
    servers.iter().for_each(|server| server.limit(Some(1)));
    let turns = ["a", "b"].map(|session| run.begin(&turn(session, "hello")));
    for server in &servers {
        server.until_generated(1, 1).await;
    }
    servers.iter().for_each(|server| server.limit(None));
    for turn in turns {
        assert_eq!(turn.await.unwrap().status(), 200);
    }
    let task = run.pull("one").await;
    run.report(&task, Some(dir.path())).await;
    run.until_published(1).await;
    assert!(servers.iter().all(|server| server.label() == "headway-1"));
}

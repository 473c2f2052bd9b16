//! vLLM as the serving engine, over real HTTP.

use headway_runtime::engine::ServerKind;
use headway_runtime::gateway;
use headway_runtime::shared::action::Discard;
use headway_runtime::shared::time::Span;
use headway_runtime::tokenizer::{Bytes, Tokenizer};
use serde_json::{Value, json};

use crate::all::engine::script;
use crate::all::live::{query, turn};
use crate::all::outside::{Run, text};
use crate::all::vllm_server::{Trouble, VllmServer};

fn server(dir: &tempfile::TempDir) -> VllmServer {
    VllmServer::start(dir.path(), |prompt| script(prompt).0)
}

async fn start(dir: &tempfile::TempDir, serving: &str, urls: &[String]) -> Run {
    let options = gateway::Options::default();
    Run::start_with(
        dir.path(),
        &text(serving),
        urls,
        Span::from_secs(60),
        options,
        ServerKind::Vllm,
    )
    .await
}

/// Starts with one server, and waits until it is up.
async fn with(dir: &tempfile::TempDir, serving: &str, server: &VllmServer) -> Run {
    let run = start(dir, serving, &[server.url()]).await;
    run.until(|status| status.gauges.replicas_up == 1).await;
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_trained_with_the_ids_and_log_probabilities_that_the_server_sent() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = with(&dir, "", &server).await;
    assert_eq!(server.label(), "headway-0", "a fresh server holds the first checkpoint");
    let mut body = turn("a", "hello");
    body["seed"] = json!(7);
    body["stop"] = json!("zz");
    let answer: Value = run.ask(&body).await.json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "hello");
    assert_eq!(answer["policy_versions"], json!([[[0, 6]]]));
    run.turns("b", 1).await;
    let call = &server.calls("/inference/v1/generate")[0];
    let sampling = &call["sampling_params"];
    assert_eq!(sampling["stop_token_ids"], json!([Bytes::END]));
    assert_eq!(sampling["stop"], json!(["zz"]));
    assert_eq!(sampling["seed"], 7);
    // What a checkpoint's generation_config.json would change otherwise.
    assert_eq!((&sampling["top_k"], &sampling["repetition_penalty"]), (&json!(0), &json!(1.0)));
    let sample = run.pull("one").await["samples"][0].clone();
    let prompt = call["token_ids"].as_array().unwrap().len();
    let mut ids = Bytes.encode("hello");
    ids.push(Bytes::END);
    assert_eq!(sample["tokens"].as_array().unwrap()[prompt..], json!(ids).as_array().unwrap()[..]);
    let logprobs: Vec<f64> = ids.iter().map(|id| -f64::from(id % 7 + 1) / 8.0).collect();
    let sent = sample["rollout_log_probs"].as_array().unwrap();
    assert_eq!(sent[prompt..], json!(logprobs).as_array().unwrap()[..]);
    assert_eq!(sample["reward"], 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_text_of_several_tokens_ends_the_turn_where_its_ids_end() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = with(&dir, "", &server).await;
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
    let run = with(&dir, "", &server).await;
    server.limit(Some(2));
    let (stays, leaves) = (run.begin(&turn("a", "hello")), run.begin(&turn("b", "hello")));
    server.until_generated(2, 2).await;
    leaves.abort();
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
    let run = with(&dir, "sync_mode = \"pause_abort\"\naborted = \"keep_as_final\"", &server).await;
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
    assert_eq!(server.calls("/pause?mode=wait").len(), 1);
    let load = &server.calls("/collective_rpc")[0];
    assert_eq!(load["kwargs"]["weights_path"], dir.path().to_str().unwrap());
}

/// The segments of a turn under which weights are loaded after 3 of its 6 tokens, of which `shown` had
/// been sent.
async fn mixed(serving: &str, shown: usize) -> (VllmServer, String) {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = with(&dir, serving, &server).await;
    run.turns("a", 2).await;
    let task = run.pull("one").await;
    server.limit(Some(3));
    server.show(Some(shown));
    let long = run.begin(&turn("c", "hello"));
    server.until_generated(1, 3).await;
    run.report(&task, Some(dir.path())).await;
    run.until_published(1).await;
    server.show(None);
    server.limit(None);
    let response = long.await.unwrap();
    let versions = response.headers()["x-policy-versions"].to_str().unwrap().to_owned();
    (server, versions)
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_change_under_a_turn_that_computes_its_cache_again() {
    let (server, versions) = mixed("sync_mode = \"in_flight\"", 3).await;
    assert_eq!(versions, "0:3,1:3");
    assert_eq!(server.calls("/pause?mode=keep").len(), 1);
    assert_eq!(server.calls("/reset_prefix_cache?reset_running_requests=true").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_change_under_a_turn_that_keeps_its_cache() {
    let (server, versions) = mixed("sync_mode = \"pause_keep\"\nkv_on_sync = \"keep\"", 3).await;
    assert_eq!(versions, "0:3,1:3");
    assert_eq!(server.calls("/reset_prefix_cache?reset_running_requests=true").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_the_old_weights_that_come_after_the_load_are_stamped_with_the_old_weights() {
    assert_eq!(mixed("sync_mode = \"pause_keep\"", 1).await.1, "0:3,1:3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_waits_for_turns_of_others_where_all_of_ours_have_ended() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = with(&dir, "sync_mode = \"pause_drain\"", &server).await;
    server.strangers(1);
    run.train_once("a", dir.path()).await;
    server.until_called("/pause?mode=wait", 1).await;
    assert_eq!(server.calls("/collective_rpc").len(), 0);
    server.strangers(0);
    run.until_published(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_that_a_load_left_half_way_are_not_served_until_one_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = with(&dir, "publish_retries = 1000", &server).await;
    server.trouble(Trouble::BadCheckpoint);
    run.train_once("a", dir.path()).await;
    let status = run.until(|status| status.ledger.failed_publications >= 2).await;
    assert_eq!(status.gauges.replicas_up, 0);
    assert_eq!(server.label(), "headway-loading");
    assert_eq!(run.ask(&turn("b", "hello")).await.status(), 503);
    server.trouble(Trouble::None);
    run.until_published(1).await;
    let after = run.ask(&turn("c", "hello")).await;
    assert_eq!(after.headers()["x-policy-versions"], "1:6");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hung_load_is_abandoned_and_the_label_tells_what_became_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let run = with(&dir, "load_timeout_sec = 0.05\npublish_retries = 1000", &server).await;
    server.trouble(Trouble::HungLoad);
    run.train_once("a", dir.path()).await;
    run.until(|status| status.ledger.failed_publications >= 1).await;
    server.trouble(Trouble::None);
    run.until(|status| status.gauges.replicas_up == 1 && !status.gauges.closed).await;
    assert_eq!(run.ask(&turn("c", "hello")).await.headers()["x-policy-versions"], "1:6");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_takes_its_turns_and_is_up_again_with_the_newest_weights() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = server(&dir);
    let run = with(&dir, "aborted = \"discard\"", &server).await;
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
    let run = with(&dir, "", &server).await;
    let troubles =
        [Trouble::NoLabel, Trouble::ShortLabels, Trouble::ShortLogprobs, Trouble::Garbage];
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
async fn what_would_be_stamped_or_scored_wrongly_is_not_served() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    server.set_label("headway-57");
    let run = start(&dir, "", &[server.url()]).await;
    for (label, mode, scale_out) in [
        ("headway-57", "processed_logprobs", true),
        ("headway-loading", "processed_logprobs", true),
        ("default", "raw_logprobs", true),
        ("default", "processed_logprobs", false),
    ] {
        server.set_label(label);
        server.started_with(mode, scale_out);
        let seen = server.calls("/weight_info").len();
        server.until_called("/weight_info", seen + 3).await;
        assert_eq!(run.ask(&turn("a", "hello")).await.status(), 503, "{label} {mode} {scale_out}");
    }
    server.started_with("processed_logprobs", true);
    run.until(|status| status.gauges.replicas_up == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_servers_are_several_replicas() {
    let dir = tempfile::tempdir().unwrap();
    let servers = [server(&dir), server(&dir)];
    let urls: Vec<String> = servers.iter().map(VllmServer::url).collect();
    let run = start(&dir, "", &urls).await;
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

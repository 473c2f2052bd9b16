//! What a client gets.

use serde_json::{Value, json};

use crate::all::engine::logprob;
use crate::all::live::{SMALL, Setup, turn};

/// The events of a streamed answer, the last of which is `[DONE]`.
async fn stream(response: reqwest::Response) -> Vec<Value> {
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    let mut events: Vec<&str> =
        text.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect();
    assert_eq!(events.pop(), Some("[DONE]"), "{text}");
    events.iter().map(|event| serde_json::from_str(event).unwrap()).collect()
}

fn text_of(events: &[Value]) -> String {
    let content =
        |event: &Value| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned);
    events.iter().filter_map(content).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_what_the_engine_sampled_with_its_logprobs_and_versions() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    let mut body = turn("s", "hé");
    body["logprobs"] = json!(true);
    body["top_logprobs"] = json!(1);
    body["return_token_ids"] = json!(true);
    let response = live.ask(&body).await;
    assert_eq!(response.headers()["x-policy-versions"], "0:4");
    assert_eq!(response.headers()["x-sample-id"], "0");
    let answer: Value = response.json().await.unwrap();
    let choice = &answer["choices"][0];
    assert_eq!(choice["message"], json!({"role": "assistant", "content": "hé"}));
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(choice["token_ids"], json!([104, 195, 169, 256]));
    let logprobs = choice["logprobs"]["content"].as_array().unwrap();
    let of = |value: &Value| value["logprob"].as_f64().unwrap();
    let expected = [104, 195, 169, 256].map(|id| f64::from(logprob(id)));
    assert_eq!(logprobs.iter().map(of).collect::<Vec<_>>(), expected);
    assert_eq!(answer["session_id"], "s");
    assert_eq!(answer["policy_versions"], json!([[[0, 4]]]));
    assert_eq!(answer["usage"]["completion_tokens"], 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_says_the_same_as_the_whole_answer() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    let mut body = turn("s", "hé, you ✓");
    let whole = live.answer(&body).await;
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let response = live.ask(&body).await;
    assert_eq!(response.headers()["x-policy-version"], "0");
    let events = stream(response).await;
    assert_eq!(text_of(&events), whole["choices"][0]["message"]["content"]);
    let (usage, events) = events.split_last().unwrap();
    assert_eq!(usage["usage"], whole["usage"]);
    let last = &events.last().unwrap()["choices"][0];
    assert_eq!(last["finish_reason"], "stop");
    assert_eq!(last["policy_versions"], whole["policy_versions"][0]);
    assert_eq!(last["sample_id"], 1);
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_text_ends_the_turn_and_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    let mut body = turn("s", "one STOP two");
    body["stop"] = json!(["STOP", "never"]);
    let whole = live.answer(&body).await;
    assert_eq!(whole["choices"][0]["message"]["content"], "one ");
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    // What was sampled is kept as it was.
    assert_eq!(whole["usage"]["completion_tokens"], 8);
    body["stream"] = json!(true);
    assert_eq!(text_of(&stream(live.ask(&body).await).await), "one ");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_cut_at_max_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    let mut body = turn("s", "long:100");
    body["max_tokens"] = json!(5);
    let answer = live.answer(&body).await;
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["choices"][0]["message"]["content"], "xxxxx");
}

#[tokio::test(flavor = "multi_thread")]
async fn n_choices_are_n_samples_of_one_group() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{SMALL} group_size = 3\n min_group_size = 3");
    let live = Setup::new(&text).start(dir.path()).await;
    let mut body = turn("s", "hello");
    body["n"] = json!(3);
    let answer = live.answer(&body).await;
    assert_eq!(answer["choices"].as_array().unwrap().len(), 3);
    assert_eq!(answer["policy_versions"], json!([[[0, 6]], [[0, 6]], [[0, 6]]]));
    live.answer(&body).await;
    live.until(|status| status.ledger.steps == 1).await;
    let batches = live.trainer.batches();
    let groups: Vec<_> = batches[0].iter().map(|sample| sample.group.unwrap().0).collect();
    assert_eq!(groups, [0, 0, 0, 1, 1, 1]);
    body["n"] = json!(1);
    let refused = live.ask(&body).await;
    assert_eq!(refused.status(), 400, "a turn without its group");
    body["group_id"] = json!("mine");
    live.answer(&body).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_frees_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    live.engine.hold(true);
    for streams in [false, true] {
        let mut body = turn("s", "long:1000");
        body["stream"] = json!(streams);
        let asked = live.begin(&body);
        live.engine.wait_for_turns(1);
        asked.abort();
        live.until(|status| status.gauges.outstanding == 0 && status.ledger.admitted > 0).await;
        live.engine.wait_for_turns(0);
    }
    assert_eq!(live.engine.aborted().len(), 2);
    let ledger = live.until_nothing_is_kept().await.ledger;
    assert_eq!((ledger.admitted, ledger.discarded.iter().sum::<u64>()), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_clients_are_all_answered() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    let asked: Vec<_> = (0..500)
        .map(|number| {
            let mut body = turn(&format!("s{number}"), "hello");
            body["turn_type"] = json!("side");
            live.begin(&body)
        })
        .collect();
    for response in asked {
        assert_eq!(response.await.unwrap().status(), 200);
    }
    let status = live.until_nothing_is_kept().await;
    assert_eq!((status.ledger.side_offered, status.gauges.running), (500, 0));
    assert_eq!(status.kept.sessions, 500, "they have names, and can go on");
}

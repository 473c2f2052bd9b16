//! Requests that are wrong get a clear error, and change nothing.

use headway_runtime::gateway;
use headway_runtime::secret::Secret;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::all::live::{Live, SMALL, Setup, turn};

async fn live(dir: &tempfile::TempDir) -> Live {
    let mut setup = Setup::new(SMALL);
    setup.gateway.max_body = 10_000;
    setup.start(dir.path()).await
}

async fn message(response: reqwest::Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    let error = &body["error"];
    assert!(error["type"].is_string() && error["code"].is_string(), "{body}");
    (status, error["message"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_says_what_is_wrong_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir).await;
    let with = |key: &str, value: Value| {
        let mut body = turn("s", "hello");
        body[key] = value;
        body
    };
    let look = json!({"type": "function", "function": {"name": "look"}});
    let cases = [
        (with("messages", json!([])), "messages must be a non-empty list"),
        (with("messages", json!("hi")), "messages must be a non-empty list"),
        (with("messages", json!([{"content": "hi"}])), "each message must have a role"),
        (with("messages", json!([{"role": "user", "content": 3}])), "content must be a text"),
        (with("temperature", json!(3)), "temperature must be between 0 and 2"),
        (with("temperature", json!(0.5)), "a turn that trains is sampled at temperature 1, which"),
        (with("max_tokens", json!(0)), "max_tokens must be at least 1"),
        (with("max_tokens", json!("many")), "the body is wrong: invalid type"),
        (with("n", json!(0)), "n must be between 1 and 128"),
        (with("turn_type", json!("maim")), "the turn type must be \"main\" or \"side\""),
        (with("top_p", json!(0.9)), "top_p other than 1 is not supported"),
        (with("tools", json!([{}])), "each tool must have type"),
        (with("tools", json!([look])), "tools are not supported: the model's chat template"),
        (with("tool_choice", json!("required")), "tool_choice other than"),
        (with("logit_bias", json!({"5": 100})), "logit_bias is not supported"),
        (with("session_done", json!([1])), "session_done must be true or false"),
        (with("stop", json!([""])), "stop must be up to 4 texts"),
    ];
    for (body, expected) in cases {
        let (status, said) = message(live.ask(&body).await).await;
        assert_eq!(status, 400, "{said}");
        assert!(said.starts_with(expected), "{said}");
    }
    assert_eq!(live.driver.status().ledger.offered, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_side_turn_may_have_another_temperature_and_a_main_turn_that_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir).await;
    for (kind, temperature) in [("side", 0.5), ("main", 1.0)] {
        let mut body = turn("s", "hello");
        (body["turn_type"], body["temperature"]) = (json!(kind), json!(temperature));
        live.answer(&body).await;
    }
}

/// A session's name that cannot be read was taken for none: its turns were sessions of their own.
#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_is_no_text_is_refused_and_not_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir).await;
    for name in ["x-session-id", "x-group-id", "x-turn-type", "x-session-done"] {
        let request = live.post(&turn("s", "hello")).header(name, &b"s\xe9ance"[..]);
        let (status, said) = message(request.send().await.unwrap()).await;
        assert_eq!((status, said), (400, format!("the header {name} must be ASCII text")));
    }
    // A field is read also where its header wins over it.
    let mut body = turn("s", "hello");
    body["turn_type"] = json!("maim");
    let request = live.post(&body).header("x-turn-type", "main");
    assert_eq!(message(request.send().await.unwrap()).await.0, 400);
    assert_eq!(live.driver.status().ledger.offered, 0);
}

/// As OpenAI's own description has it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_null_counts_as_absent() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir).await;
    let mut body = turn("s", "hello");
    let optional = ["stream", "logprobs", "return_token_ids", "n", "seed", "stop", "max_tokens"];
    for name in optional.into_iter().chain(["session_done", "tools", "logit_bias", "group_id"]) {
        body[name] = Value::Null;
    }
    body["stream_options"] = json!({"include_usage": null});
    live.answer(&body).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_json_or_too_long_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir).await;
    let url = format!("{}/v1/chat/completions", live.url);
    let (status, said) =
        message(live.client.post(&url).body("{\"messages\": [").send().await.unwrap()).await;
    assert_eq!(status, 400);
    assert!(said.starts_with("the body is wrong: EOF"), "{said}");
    let long = live.ask(&turn("s", &"x".repeat(20_000))).await;
    assert_eq!(message(long).await.0, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir).await;
    let mut socket = TcpStream::connect(live.url.trim_start_matches("http://")).await.unwrap();
    let head =
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{\"mess";
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.shutdown().await.unwrap();
    let mut said = String::new();
    socket.read_to_string(&mut said).await.unwrap();
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 400"), "{said}");
    live.answer(&turn("s", "hello")).await;
    assert_eq!(live.driver.status().ledger.offered, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_key_nothing_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(SMALL);
    setup.gateway = gateway::Options { api_key: Secret::new("right"), ..setup.gateway };
    let live = setup.start(dir.path()).await;
    let body = turn("s", "hello");
    let (status, said) = message(live.ask(&body).await).await;
    assert_eq!((status, said.as_str()), (401, "missing bearer token"));
    let wrong = live.post(&body).bearer_auth("wrong").send().await.unwrap();
    assert_eq!(message(wrong).await, (401, "invalid api key".to_owned()));
    let right = live.post(&body).bearer_auth("right").send().await.unwrap();
    assert_eq!(right.status(), 200);
    assert_eq!(live.get("/v1/models").await.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_paths_and_methods_are_errors_of_the_same_form() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(&dir).await;
    assert_eq!(message(live.get("/v1/embeddings").await).await.0, 404);
    assert_eq!(message(live.get("/v1/chat/completions").await).await.0, 405);
}

//! Requests that something happened to, at a real socket: each is answered, in the form that all
//! errors have; the gateway goes on, and nothing of what was refused is recorded.

use headway_runtime::secret::Secret;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::all::damage::{Damage, damages};
use crate::all::live::{Live, SMALL, Setup, query, turn};
use crate::all::messages::{speaks_of_tools, with_tools};

async fn start(dir: &std::path::Path) -> Live {
    let mut setup = Setup::new(SMALL);
    setup.gateway.admin_token = Secret::new("token");
    setup.gateway.max_tokens = 32;
    setup.start(dir).await
}

/// The status; an error is of the form that all have.
async fn status_of(response: reqwest::Response, sent: &str) -> u16 {
    let status = response.status().as_u16();
    let bytes = response.bytes().await.unwrap();
    if status != 200 {
        assert!((400..500).contains(&status) || status == 503, "{status} to {sent}");
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_else(|_| panic!("{sent}"));
        let error = &body["error"];
        let is_text = |name: &str| error[name].as_str().is_some_and(|text| !text.is_empty());
        assert!(is_text("message") && is_text("type") && is_text("code"), "{body} to {sent}");
    }
    status
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned()
}

/// A damaged body at a path: how often it was served and refused.
async fn damaged(live: &Live, path: &str, whole: &str, count: usize) -> (u32, u32) {
    let (mut served, mut refused) = (0_u32, 0_u32);
    for (_, damage) in damages(count) {
        let sent = damage.of(whole.as_bytes());
        let shown = shown(&sent);
        let request = live.client.post(format!("{}{path}", live.url)).body(sent);
        match status_of(request.send().await.unwrap(), &shown).await {
            200 => served += 1,
            _ => refused += 1,
        }
    }
    (served, refused)
}

/// Nothing was recorded but two turns of a batch: what was damaged is a side turn, or refused.
async fn only_two_are_recorded(live: Live) {
    for session in ["one", "two"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until_nothing_is_kept().await;
    let (ended, record) = live.end().await;
    ended.unwrap();
    assert_eq!(query::<u32>(&record, "SELECT count(*) FROM samples"), 2);
    headway_runtime::store::replay(&record).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_turn_is_answered_and_recorded_only_where_it_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(dir.path()).await;
    let mut body = turn("s", "hello");
    let more = json!({
        "temperature": 0.5, "max_tokens": 9, "seed": 7, "stop": ["x"], "n": 1, "logprobs": true,
        "stream": false, "stream_options": {"include_usage": true}, "turn_type": "side",
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let path = "/v1/chat/completions";
    let (served, refused) = damaged(&live, path, &body.to_string(), 400).await;
    assert!(served > 20 && refused > 100, "{served} served, {refused} refused");
    only_two_are_recorded(live).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_message_is_answered_and_recorded_only_where_it_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(dir.path()).await;
    let body = json!({
        "model": "policy", "max_tokens": 9, "system": [{"type": "text", "text": "be brief"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": "so"},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"},
            ]},
        ],
        "temperature": 0.5, "seed": 7, "stop_sequences": ["x"], "metadata": {"user_id": "me"},
        "tools": [], "tool_choice": {"type": "auto"}, "session_id": "s", "turn_type": "side",
    });
    let (served, refused) = damaged(&live, "/v1/messages", &body.to_string(), 400).await;
    assert!(served > 20 && refused > 100, "{served} served, {refused} refused");
    let count = "/v1/messages/count_tokens";
    let (served, refused) = damaged(&live, count, &body.to_string(), 100).await;
    assert!(served > 20 && refused > 20, "{served} counted, {refused} refused");
    only_two_are_recorded(live).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_tools_and_calls_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    let live = with_tools(SMALL, dir.path()).start(dir.path()).await;
    live.engine.follows(speaks_of_tools);
    let function = json!({"name": "look", "description": "x", "parameters": {"type": "object"}});
    let call = json!({"id": "1", "type": "function", "function": {"name": "look", "arguments": "{\"a\": 1}"}});
    let body = json!({
        "messages": [
            {"role": "user", "content": "text hello"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "call look {}"},
        ],
        "tools": [{"type": "function", "function": function}], "tool_choice": "auto", "max_tokens": 99,
    });
    let path = "/v1/chat/completions";
    let (served, refused) = damaged(&live, path, &body.to_string(), 200).await;
    assert!(served > 5 && refused > 50, "{served} served, {refused} refused");
    let body = json!({
        "max_tokens": 99,
        "messages": [
            {"role": "user", "content": "text hello"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "look", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "call look {}"}]},
        ],
        "tools": [{"name": "look", "description": "x", "input_schema": {"type": "object"}}],
    });
    let (served, refused) = damaged(&live, "/v1/messages", &body.to_string(), 200).await;
    assert!(served > 5 && refused > 50, "{served} served, {refused} refused");
    live.until_nothing_is_kept().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_header_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(dir.path()).await;
    let headers = [
        ("x-session-id", "session-7"),
        ("x-turn-type", "side"),
        ("x-session-done", "true"),
        ("x-group-id", "group-7"),
        ("authorization", "Bearer token"),
        ("content-type", "application/json"),
    ];
    for (which, damage) in damages(300) {
        let (name, value) = headers[which.index(headers.len())];
        let mut value = damage.of(value.as_bytes());
        // What HTTP itself refuses never comes this far; neither do lines longer than its buffer.
        value.retain(|&byte| byte == b'\t' || (byte >= 32 && byte != 127));
        value.truncate(10_000);
        let shown = format!("{name}: {}", shown(&value));
        let value = HeaderValue::from_bytes(&value).unwrap();
        let name = HeaderName::from_static(name);
        let body = json!({"messages": [{"role": "user", "content": "hi"}]});
        let request = live.post(&body).header(name, value);
        status_of(request.send().await.unwrap(), &shown).await;
    }
    live.answer(&turn("after", "hello")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_configuration_changes_nothing_or_what_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(dir.path()).await;
    let url = format!("{}/admin/config", live.url);
    let now = live.client.get(&url).bearer_auth("token").send().await.unwrap();
    let whole = now.text().await.unwrap();
    let post = async |url: &str, damage: Option<&Damage>| {
        let body = damage.map_or(whole.clone().into_bytes(), |damage| damage.of(whole.as_bytes()));
        let shown = shown(&body);
        let request = live.client.post(url).bearer_auth("token").body(body);
        status_of(request.send().await.unwrap(), &shown).await
    };
    let dry = format!("{url}?dry_run=true");
    for (_, damage) in damages(200) {
        post(&dry, Some(&damage)).await;
    }
    let after = live.client.get(&url).bearer_auth("token").send().await.unwrap();
    assert_eq!(after.text().await.unwrap(), whole);
    for query in ["dry_run=", "dry_run=1", "x", "dry_run=true&dry_run=false", "%00"] {
        assert_eq!(post(&format!("{url}?{query}"), None).await, 400, "{query}");
    }
    // For good: whatever was accepted, the run goes on under the one it had.
    for (_, damage) in damages(60) {
        post(&url, Some(&damage)).await;
    }
    assert_eq!(post(&url, None).await, 200);
    live.answer(&turn("after", "hello")).await;
}

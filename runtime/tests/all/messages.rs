//! Anthropic's messages: the same turns in another form.

use std::path::Path;
use std::sync::Arc;

use headway_runtime::secret::Secret;
use headway_runtime::tokenizer::HuggingFace;
use serde_json::{Value, json};

use crate::all::checkpoint::{self, END, HE, START};
use crate::all::live::{Live, SMALL, Setup, query};

/// A chat template with tools, each a line of JSON, and calls between marks.
pub(super) const TOOLS: &str = "{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- for tool in tools %}
        {{- tool | tojson + '\n' }}
    {%- endfor %}
    {{- '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\n' + message.content }}
    {%- for call in message.tool_calls %}
        {%- if message.content or not loop.first %}
            {{- '\n' }}
        {%- endif %}
        {{- '<tool_call>\n{\"name\": \"' + call.function.name + '\", \"arguments\": ' }}
        {{- call.function.arguments | tojson }}
        {{- '}\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
";

/// A run whose model takes tools; its engine has to be told to [speak of them](speaks_of_tools).
pub(super) fn with_tools(config: &str, dir: &Path) -> Setup {
    let model = dir.join("model");
    std::fs::create_dir(&model).unwrap();
    checkpoint::write_with(&model, TOOLS);
    let tokenizer = Arc::new(HuggingFace::load(&model).unwrap());
    Setup { tokenizer, ..Setup::new(config) }
}

/// The text of ids, marks included.
pub(super) fn spelled(ids: &[u32]) -> String {
    let bytes = ids.iter().flat_map(|&id| match id {
        HE => b"he".to_vec(),
        START => b"<|im_start|>".to_vec(),
        END => b"<|im_end|>".to_vec(),
        id => vec![u8::try_from(id).unwrap()],
    });
    String::from_utf8(bytes.collect()).unwrap()
}

/// Answers the lines of the last message: `text TEXT` with TEXT, `call NAME JSON` with a call of
/// that tool, each in a line, spelled as the template spells them.
pub(super) fn speaks_of_tools(prompt: &[u32]) -> (Vec<u32>, bool) {
    let prompt = spelled(prompt);
    let (before, _) = prompt.rsplit_once("<|im_end|>").unwrap();
    let said = before.rsplit_once("<|im_start|>").unwrap().1.split_once('\n').unwrap().1;
    let lines = said.lines().map(|line| match line.split_once(' ') {
        Some(("call", call)) => {
            let (name, arguments) = call.split_once(' ').unwrap_or((call, ""));
            let arguments = arguments.replace("\":", "\": ").replace(":  ", ": ");
            format!(
                "<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>"
            )
        }
        Some((_, text)) => text.to_owned(),
        None => line.to_owned(),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut ids = Vec::new();
    for (place, piece) in text.split("he").enumerate() {
        ids.extend((place > 0).then_some(HE));
        ids.extend(piece.bytes().map(u32::from));
    }
    ids.push(END);
    (ids, false)
}

fn message(session: &str, text: &str) -> Value {
    json!({
        "model": "policy",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": text}],
        "session_id": session,
        "turn_type": "main",
        "metadata": {"answer": text},
    })
}

async fn post(live: &Live, body: &Value) -> reqwest::Response {
    let request = live.client.post(format!("{}/v1/messages", live.url)).json(body);
    request.header("anthropic-version", "2023-06-01").send().await.unwrap()
}

async fn answer(live: &Live, body: &Value) -> Value {
    let response = post(live, body).await;
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    response.json().await.unwrap()
}

/// The events of a stream: the data of each, whose `type` is its name.
async fn events(response: reqwest::Response) -> Vec<Value> {
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    let event = |event: &str| {
        let (name, data) = event.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["type"], name);
        data
    };
    text.split_terminator("\n\n").map(event).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_says_the_same_as_the_whole_message() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    let mut body = message("s", "hé, you ✓");
    let whole = answer(&live, &body).await;
    body["stream"] = json!(true);
    let response = post(&live, &body).await;
    assert_eq!(response.headers()["x-policy-version"], "0");
    let events = events(response).await;
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["message_start", "ping", "content_block_start"]);
    assert_eq!(kinds[kinds.len() - 3..], ["content_block_stop", "message_delta", "message_stop"]);
    let text: String = events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!(json!([{"type": "text", "text": text}]), whole["content"]);
    let start = &events[0]["message"];
    assert_eq!((&start["session_id"], &start["content"]), (&json!("s"), &json!([])));
    let end = &events[events.len() - 2];
    assert_eq!(end["delta"]["stop_reason"], whole["stop_reason"]);
    assert_eq!(end["usage"], whole["usage"]);
    assert_eq!(end["policy_versions"], whole["policy_versions"]);
    assert_eq!((&whole["sample_id"], &end["sample_id"]), (&json!(0), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_conversation_is_the_same_turn_on_both_surfaces() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    let mut body = message("a", "hello");
    body["system"] = json!("be brief");
    answer(&live, &body).await;
    let messages = json!([
        {"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"},
    ]);
    live.answer(&json!({
        "messages": messages, "max_tokens": 100, "session_id": "b", "turn_type": "main",
        "metadata": {"answer": "hello"},
    }))
    .await;
    live.until(|status| status.ledger.steps == 1).await;
    let (ended, record) = live.end().await;
    ended.unwrap();
    let kinds: u32 = query(
        &record,
        "SELECT count(DISTINCT messages || metadata || response || score) FROM samples",
    );
    assert_eq!(kinds, 1);
    assert_eq!(query::<u32>(&record, "SELECT count(*) FROM samples"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_anthropics_form_and_either_key_opens() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(SMALL);
    setup.gateway.api_key = Secret::new("key");
    setup.gateway.max_body = 5_000;
    let live = setup.start(dir.path()).await;
    let url = format!("{}/v1/messages", live.url);
    let send = async |request: reqwest::RequestBuilder| {
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body: Value = response.json().await.unwrap();
        assert!(status == 200 || body["type"] == "error", "{body}");
        (status, body["error"]["type"].as_str().unwrap_or_default().to_owned())
    };
    let body = message("s", "hello");
    let post = || live.client.post(&url).json(&body);
    let ok = (200, String::new());
    let unauthorized = (401, "authentication_error".to_owned());
    assert_eq!(send(post().header("x-api-key", "key")).await, ok);
    assert_eq!(send(post().bearer_auth("key")).await, ok);
    assert_eq!(send(post().header("x-api-key", "other").bearer_auth("key")).await, ok);
    assert_eq!(send(post().header("x-api-key", "other")).await, unauthorized);
    assert_eq!(send(post().bearer_auth("other")).await, unauthorized);
    assert_eq!(send(post()).await, unauthorized);
    let long = live.client.post(&url).header("x-api-key", "key").body("x".repeat(6_000));
    assert_eq!(send(long).await, (413, "request_too_large".to_owned()));
    let other = live.client.get(&url).header("x-api-key", "key");
    assert_eq!(send(other).await, (405, "invalid_request_error".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_message_says_when_to_come_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(SMALL);
    setup.gateway.admin_token = Secret::new("token");
    let live = setup.start(dir.path()).await;
    let pause = live.client.post(format!("{}/admin/pause", live.url)).bearer_auth("token");
    assert_eq!(pause.send().await.unwrap().status(), 200);
    for stream in [false, true] {
        let mut body = message("s", "hello");
        body["stream"] = json!(stream);
        let refused = post(&live, &body).await;
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (503, &"60".parse().unwrap())
        );
        let error: Value = refused.json().await.unwrap();
        assert_eq!(
            (&error["error"]["type"], &error["error"]["code"]),
            (&json!("overloaded_error"), &json!("paused"))
        );
    }
}

/// A trajectory in which a tool is called: what was sampled is what is trained, in one sequence.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_a_tool_is_trained_as_it_was_sampled() {
    let dir = tempfile::tempdir().unwrap();
    let text = "
        [policy_training]
        sample_unit = \"session\"
        batch_size = 1
        max_head_off_policyness = 4
    ";
    let live = with_tools(text, dir.path()).start(dir.path()).await;
    live.engine.follows(speaks_of_tools);
    let tool = json!({"name": "weather", "description": "the weather", "input_schema": {"type": "object"}});
    let mut body = json!({
        "max_tokens": 200, "session_id": "s", "turn_type": "main", "metadata": {"answer": "the rain"},
        "tools": [tool], "messages": [{"role": "user", "content": "text I ask.\ncall weather {\"where\": \"there ✓\"}"}],
    });
    let first = answer(&live, &body).await;
    assert_eq!(first["stop_reason"], "tool_use");
    let call = &first["content"][1];
    assert_eq!(call["input"], json!({"where": "there ✓"}));
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": first["content"]}));
    let result =
        json!({"type": "tool_result", "tool_use_id": call["id"], "content": "text the rain"});
    messages.push(json!({"role": "user", "content": [result]}));
    body["session_done"] = json!(true);
    let last = answer(&live, &body).await;
    assert_eq!(last["content"], json!([{"type": "text", "text": "the rain"}]));
    live.until(|status| status.ledger.steps == 1).await;
    let batches = live.trainer.batches();
    let [sample] = &batches[0][..] else { panic!("more than one sequence: {batches:?}") };
    let trained = sample.tokens.iter().zip(&sample.loss_mask).filter(|(_, mask)| **mask);
    let trained: Vec<u32> = trained.map(|(&id, _)| id).collect();
    let expected = "I ask.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"where\": \"there ✓\"}}\n\
                    </tool_call><|im_end|>the rain<|im_end|>";
    assert_eq!(spelled(&trained), expected);
    let whole = spelled(&sample.tokens);
    assert!(whole.contains("\"description\": \"the weather\""), "{whole}");
    assert!(whole.contains("<|im_start|>tool\ntext the rain<|im_end|>"), "{whole}");
    let (ended, record) = live.end().await;
    ended.unwrap();
    let states: String = query(&record, "SELECT next_state FROM turns WHERE turn = 0");
    assert_eq!(states, "text the rain");
    let judged: String =
        query(&record, "SELECT json_extract(messages, '$[1].content') FROM samples");
    assert!(judged.starts_with("I ask.\n<tool_call>\n{\"name\": \"weather\""), "{judged}");
}

//! Tokenizers and chat templates of checkpoints in Hugging Face's format.

use std::fs;

use headway_runtime::tokenizer::{Entry, HuggingFace, Message, NoTools, Tokenizer, ToolCall};
use serde_json::{Map, json};

use crate::all::checkpoint::{self, END, HE, START};
use crate::all::messages::{TOOLS, spelled};

fn loaded() -> HuggingFace {
    let dir = tempfile::tempdir().unwrap();
    checkpoint::write(dir.path());
    HuggingFace::load(dir.path()).unwrap()
}

fn message(role: &str, content: &str) -> Message {
    Message { role: role.to_owned(), content: content.to_owned() }
}

fn bytes(text: &str) -> impl Iterator<Item = u32> {
    text.bytes().map(u32::from).collect::<Vec<_>>().into_iter()
}

#[test]
fn a_conversation_becomes_the_prompt_that_its_template_makes() {
    let prompt = loaded().prompt(&[message("user", " he\n")]).unwrap();
    let expected: Vec<u32> = [START]
        .into_iter()
        .chain(bytes("user\n"))
        .chain([HE, END])
        .chain(bytes("\n"))
        .chain([START])
        .chain(bytes("assistant\n"))
        .collect();
    assert_eq!(prompt, expected);
}

#[test]
fn what_a_template_refuses_is_an_error_in_its_own_words() {
    let error = loaded().prompt(&[message("oracle", "hi")]).unwrap_err().to_string();
    assert!(error.contains("there is no role oracle"), "{error}");
}

#[test]
fn text_comes_back_as_it_was_and_without_marks() {
    let tokenizer = loaded();
    for text in ["hello  there", "naïve ✓ 12", "a\n\n b", "'s he"] {
        let mut ids = tokenizer.encode(text);
        ids.push(tokenizer.end_of_turn());
        assert_eq!(tokenizer.decode(&ids), text);
    }
    assert_eq!(tokenizer.end_of_turn(), END);
    let half = &tokenizer.encode("é")[..1];
    assert!(tokenizer.decode(half).ends_with('\u{fffd}'), "a character that is not whole");
}

#[test]
fn what_is_missing_in_a_directory_is_named_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let error = HuggingFace::load(dir.path()).unwrap_err().to_string();
    assert!(error.contains("tokenizer.json"), "{error}");
    checkpoint::write(dir.path());
    for (config, wrong) in [
        ("{}", "eos_token"),
        (r#"{"eos_token": "<|nothing|>", "chat_template": "x"}"#, "eos_token"),
        (r#"{"eos_token": "<|im_end|>"}"#, "chat_template"),
        (r#"{"eos_token": {"content": "<|im_end|>"}, "chat_template": "{% if %}"}"#, "template"),
    ] {
        fs::write(dir.path().join("tokenizer_config.json"), config).unwrap();
        let error = HuggingFace::load(dir.path()).unwrap_err().to_string();
        assert!(error.contains(wrong), "{config}: {error}");
    }
    // A template of its own file comes first.
    let config = r#"{"eos_token": {"content": "<|im_end|>"}}"#;
    fs::write(dir.path().join("tokenizer_config.json"), config).unwrap();
    fs::write(dir.path().join("chat_template.jinja"), "{{ messages[0].content }}").unwrap();
    let tokenizer = HuggingFace::load(dir.path()).unwrap();
    assert_eq!(tokenizer.prompt(&[message("user", "he")]).unwrap(), [HE]);
}

fn with(template: &str) -> HuggingFace {
    let dir = tempfile::tempdir().unwrap();
    checkpoint::write_with(dir.path(), template);
    HuggingFace::load(dir.path()).unwrap()
}

#[test]
fn a_conversation_with_tools_becomes_what_its_template_makes_of_it() {
    let tokenizer = with(TOOLS);
    assert_eq!(tokenizer.takes_tools(), Ok(()));
    let entry = |role: &str, content: &str| Entry::new(role.to_owned(), content.to_owned());
    let arguments = Map::from_iter([("b".to_owned(), json!("<é>")), ("a".to_owned(), json!([1]))]);
    let call = ToolCall { id: "1".to_owned(), name: "look".to_owned(), arguments };
    let calling = Entry { calls: vec![call], ..entry("assistant", "so") };
    let answer = Entry { answers: Some("1".to_owned()), ..entry("tool", "x") };
    let tools = [json!({"type": "function", "function": {"name": "look", "parameters": {}}})];
    let conversation = [entry("user", "hello"), calling, answer];
    let prompt = tokenizer.prompt_with_tools(&conversation, &tools).unwrap();
    let expected = "<|im_start|>system\n\
        {\"type\": \"function\", \"function\": {\"name\": \"look\", \"parameters\": {}}}\n<|im_end|>\n\
        <|im_start|>user\nhello<|im_end|>\n\
        <|im_start|>assistant\nso\n<tool_call>\n\
        {\"name\": \"look\", \"arguments\": {\"b\": \"<é>\", \"a\": [1]}}\n</tool_call><|im_end|>\n\
        <|im_start|>tool\nx<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(spelled(&prompt), expected);
    // Without any, it is the prompt that it always was.
    let plain = tokenizer.prompt(&[message("user", "hello")]).unwrap();
    assert_eq!(tokenizer.prompt_with_tools(&conversation[..1], &[]).unwrap(), plain);
}

#[test]
fn a_model_that_is_not_told_of_tools_or_calls_them_otherwise_is_given_none() {
    assert_eq!(loaded().takes_tools(), Err(NoTools::NotRendered));
    let otherwise = TOOLS.replace("<tool_call>", "<function>");
    assert_eq!(with(&otherwise).takes_tools(), Err(NoTools::NotRead));
    let refuses = TOOLS.replace("{%- if tools %}", "{%- if tools %}{{ raise_exception('no') }}");
    assert_eq!(with(&refuses).takes_tools(), Err(NoTools::NotRendered));
    let without = loaded().prompt_with_tools(&[], &[]);
    assert!(without.is_ok(), "a conversation without any: {without:?}");
}

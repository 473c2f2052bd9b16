//! Tools in prompts: what chat templates are told of them, and how a model spells its calls.

use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use serde_json::{Map, Value, json};

use super::Message;

/// What begins a call.
pub const CALL: &str = "<tool_call>";
/// What ends it.
pub const CALL_END: &str = "</tool_call>";

/// A call of a tool, as the model said it or as a client tells it again.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Its name among the calls of the conversation.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it is called with.
    pub arguments: Map<String, Value>,
}

impl ToolCall {
    /// As the model spells it: `<tool_call>`, a line of JSON as Python writes it, `</tool_call>`.
    #[must_use]
    pub fn text(&self) -> String {
        let call = json!({"name": self.name, "arguments": self.arguments});
        format!("{CALL}\n{}\n{CALL_END}", python_json(&call))
    }
}

/// A message of a conversation in which tools may be called.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its role, and its text without calls.
    pub message: Message,
    /// What an assistant calls.
    pub calls: Vec<ToolCall>,
    /// The call that a tool answers.
    pub answers: Option<String>,
}

impl Entry {
    /// A message without calls.
    #[must_use]
    pub const fn new(role: String, content: String) -> Self {
        Self { message: Message { role, content }, calls: Vec::new(), answers: None }
    }

    /// The message with its calls as the model spells them, for judges and the record.
    #[must_use]
    pub fn shown(&self) -> Message {
        let Message { role, content } = &self.message;
        let text = Some(content.clone()).filter(|text| !text.is_empty());
        let pieces: Vec<String> =
            text.into_iter().chain(self.calls.iter().map(ToolCall::text)).collect();
        Message { role: role.clone(), content: pieces.join("\n") }
    }

    /// The message as templates of Hugging Face checkpoints read it.
    pub(super) fn for_template(&self) -> Value {
        let Self { message: Message { role, content }, calls, answers } = self;
        let mut value = json!({"role": role, "content": content});
        let calls: Vec<Value> = calls
            .iter()
            .map(|ToolCall { id, name, arguments }| {
                let function = json!({"name": name, "arguments": arguments});
                json!({"id": id, "type": "function", "function": function})
            })
            .collect();
        if !calls.is_empty() {
            value["tool_calls"] = calls.into();
        }
        if let Some(call) = answers {
            value["tool_call_id"] = json!(call);
        }
        value
    }
}

/// Why a model is given no tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTools {
    /// Its prompts have no place for them.
    #[error(
        "tools are not supported: the model's chat template does not render them; describe them \
         in a message"
    )]
    NotRendered,
    /// Its calls are spelled in a form that is not read back.
    #[error(
        "tools are not supported: the model's chat template spells calls otherwise than as \
         <tool_call>, JSON with name and arguments, </tool_call>, which is what can be read; \
         describe them in a message"
    )]
    NotRead,
}

/// What a template is tried with before any client comes.
pub(super) struct Trial {
    pub(super) entries: [Entry; 3],
    pub(super) tools: Value,
}

impl Trial {
    const SAYS: &'static str = "headway says what this tool does";
    const ANSWER: &'static str = "headway hears this from the tool";

    pub(super) fn new() -> Self {
        let arguments = Map::from_iter([("key".to_owned(), json!("value"))]);
        let (id, name) = ("headwaycall".to_owned(), "headway_trial".to_owned());
        let call = ToolCall { id: id.clone(), name: name.clone(), arguments };
        let entry = |role: &str, content: &str| Entry::new(role.to_owned(), content.to_owned());
        let calling = Entry { calls: vec![call], ..entry("assistant", "") };
        let answer = Entry { answers: Some(id), ..entry("tool", Self::ANSWER) };
        let parameters = json!({"type": "object", "properties": {"key": {"type": "string"}}});
        let function = json!({"name": name, "description": Self::SAYS, "parameters": parameters});
        Self {
            entries: [entry("user", "hello"), calling, answer],
            tools: json!([{"type": "function", "function": function}]),
        }
    }

    /// What a template made of it says of the model.
    pub(super) fn judge(&self, rendered: Option<&str>) -> Result<(), NoTools> {
        let text = rendered.ok_or(NoTools::NotRendered)?;
        if !text.contains(Self::SAYS) || !text.contains(Self::ANSWER) {
            return Err(NoTools::NotRendered);
        }
        let spelled = self.entries.iter().flat_map(|entry| &entry.calls);
        let read = spelled.into_iter().all(|call| text.contains(&call.text()));
        if read { Ok(()) } else { Err(NoTools::NotRead) }
    }
}

/// JSON as Python's `json.dumps(.., ensure_ascii=False)` writes it, which is what models see when
/// they are trained.
pub(super) fn python_json(value: &impl Serialize) -> String {
    dump(value, Spaced)
}

/// The same over several lines.
pub(super) fn indented_json(value: &impl Serialize, indent: usize) -> String {
    dump(value, PrettyFormatter::with_indent(" ".repeat(indent).as_bytes()))
}

fn dump(value: &impl Serialize, formatter: impl Formatter) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Keys that are no texts cannot be written; none come from JSON.
    let written = value.serialize(&mut serializer);
    written.ok().and_then(|()| String::from_utf8(bytes).ok()).unwrap_or_default()
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        CompactFormatter.begin_object_value(to)?;
        to.write_all(b" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_written_as_python_writes_it() {
        let value = json!({"b": [1, "é<&>"], "a": {}, "c": null, "d": {"x": 0.5}});
        let line = r#"{"b": [1, "é<&>"], "a": {}, "c": null, "d": {"x": 0.5}}"#;
        assert_eq!(python_json(&value), line);
        assert_eq!(
            indented_json(&json!({"a": [1, []]}), 2),
            "{\n  \"a\": [\n    1,\n    []\n  ]\n}"
        );
    }

    #[test]
    fn a_message_is_shown_with_its_calls() {
        let arguments = Map::from_iter([("path".to_owned(), json!("a b"))]);
        let call = ToolCall { id: "1".into(), name: "read".into(), arguments };
        let said =
            "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a b\"}}\n</tool_call>";
        let mut entry = Entry::new("assistant".into(), String::new());
        entry.calls = vec![call.clone()];
        assert_eq!(entry.shown().content, said);
        entry.message.content = "I look.".to_owned();
        entry.calls.push(call);
        assert_eq!(entry.shown().content, format!("I look.\n{said}\n{said}"));
    }
}

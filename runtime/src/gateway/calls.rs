//! What a model says, as text and calls of tools.

use serde_json::Value;

use super::text::TextStream;
use crate::tokenizer::{CALL, CALL_END, Tokenizer, ToolCall};

/// What stands between a call and what is said before it: not a part of either.
const BREAK: char = '\n';

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Text, never empty.
    Text(String),
    /// A call, whole.
    Call(ToolCall),
}

/// An answer as its tokens come. A call is one of an offered tool, in the form that the model's
/// template has for it; whatever else the model says is text, and so is a call that breaks off.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    text: TextStream,
    /// The tools that may be called; none: everything is text.
    tools: Vec<String>,
    /// What calls are numbered after.
    prefix: String,
    /// Text that may be the beginning of a call.
    held: String,
    calls: usize,
}

impl Reader {
    /// Reads an answer to a request that offers these tools, and names calls `PREFIX_0` and so on.
    pub(super) fn new(stops: &[String], tools: &[String], prefix: String) -> Self {
        let (text, tools) = (TextStream::new(stops), tools.to_vec());
        Self { text, tools, prefix, held: String::new(), calls: 0 }
    }

    /// What a token adds.
    pub(super) fn push(&mut self, id: u32, tokenizer: &dyn Tokenizer) -> Vec<Piece> {
        let text = self.text.push(id, tokenizer);
        self.read(text)
    }

    /// What several tokens add.
    pub(super) fn push_all(
        &mut self,
        ids: impl Iterator<Item = u32>,
        tokenizer: &dyn Tokenizer,
    ) -> Vec<Piece> {
        let text = self.text.push_all(ids, tokenizer);
        self.read(text)
    }

    /// What was held back, once no token follows.
    pub(super) fn finish(&mut self, tokenizer: &dyn Tokenizer) -> Vec<Piece> {
        let text = self.text.finish(tokenizer);
        let mut pieces = self.read(text);
        let rest = std::mem::take(&mut self.held);
        // Behind a call, the end of a line says nothing.
        if self.calls == 0 || !rest.trim().is_empty() {
            pieces.extend(text_of(rest));
        }
        pieces
    }

    /// The stop text that ended the answer.
    pub(super) fn stopped(&self) -> Option<&str> {
        self.text.stopped()
    }

    /// Calls so far.
    pub(super) const fn calls(&self) -> usize {
        self.calls
    }

    fn read(&mut self, text: String) -> Vec<Piece> {
        if self.tools.is_empty() {
            return text_of(text).into_iter().collect();
        }
        self.held.push_str(&text);
        let mut pieces = Vec::new();
        while let Some(at) = self.held.find(CALL) {
            let body = at + CALL.len();
            let Some(length) = self.held[body..].find(CALL_END) else {
                let said = self.held[..at].strip_suffix(BREAK).unwrap_or(&self.held[..at]).len();
                let rest = self.held.split_off(said);
                pieces.extend(text_of(std::mem::replace(&mut self.held, rest)));
                return pieces;
            };
            let end = body + length + CALL_END.len();
            let call = self.call(&self.held[body..body + length]);
            let said = match call {
                Some(_) => self.held[..at].strip_suffix(BREAK).unwrap_or(&self.held[..at]),
                None => &self.held[..end],
            };
            pieces.extend(text_of(said.to_owned()));
            self.calls += usize::from(call.is_some());
            pieces.extend(call.map(Piece::Call));
            self.held.drain(..end);
        }
        let rest = self.held.split_off(self.sure());
        pieces.extend(text_of(std::mem::replace(&mut self.held, rest)));
        pieces
    }

    /// How much of what is held no call can begin in.
    fn sure(&self) -> usize {
        let held = &self.held;
        let begins = |at: usize| {
            let rest = &held[at..];
            CALL.starts_with(rest.strip_prefix(BREAK).unwrap_or(rest))
        };
        let from = held.len().saturating_sub(CALL.len());
        let mut places = held.char_indices().map(|(at, _)| at).filter(|&at| at >= from);
        places.find(|&at| begins(at)).unwrap_or(held.len())
    }

    fn call(&self, body: &str) -> Option<ToolCall> {
        let Ok(Value::Object(mut said)) = serde_json::from_str(body) else { return None };
        let (name, arguments) = (said.remove("name")?, said.remove("arguments")?);
        let (Value::String(name), Value::Object(arguments)) = (name, arguments) else {
            return None;
        };
        let id = format!("{}_{}", self.prefix, self.calls);
        let known = said.is_empty() && self.tools.contains(&name);
        known.then_some(ToolCall { id, name, arguments })
    }
}

fn text_of(text: String) -> Option<Piece> {
    (!text.is_empty()).then_some(Piece::Text(text))
}

/// The text and the calls of pieces.
pub(super) fn split(pieces: Vec<Piece>) -> (String, Vec<ToolCall>) {
    let (mut text, mut calls) = (String::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Text(more) => text.push_str(&more),
            Piece::Call(call) => calls.push(call),
        }
    }
    (text, calls)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tokenizer::{Bytes, Entry};

    /// What is read of a text that comes in pieces of this many bytes.
    fn read(text: &str, stops: &[&str]) -> Vec<Piece> {
        let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let tools = ["read".to_owned(), "write".to_owned()];
        let mut reader = Reader::new(&stops, &tools, "call".to_owned());
        let mut pieces = Vec::new();
        let ids = Bytes.encode(text).into_iter().flat_map(|id| reader.push(id, &Bytes));
        ids.collect::<Vec<_>>().into_iter().for_each(|piece| join(&mut pieces, piece));
        reader.finish(&Bytes).into_iter().for_each(|piece| join(&mut pieces, piece));
        pieces
    }

    fn join(pieces: &mut Vec<Piece>, piece: Piece) {
        match (pieces.last_mut(), piece) {
            (Some(Piece::Text(text)), Piece::Text(more)) => text.push_str(&more),
            (_, piece) => pieces.push(piece),
        }
    }

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    fn call(number: usize, name: &str, arguments: &Value) -> Piece {
        let id = format!("call_{number}");
        let arguments = arguments.as_object().unwrap().clone();
        Piece::Call(ToolCall { id, name: name.to_owned(), arguments })
    }

    const READ: &str =
        "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"é\"}}\n</tool_call>";

    #[test]
    fn calls_are_told_from_text_and_the_line_break_before_them_is_neither() {
        let first = call(0, "read", &json!({"path": "é"}));
        let second = call(1, "read", &json!({"path": "é"}));
        assert_eq!(read(READ, &[]), std::slice::from_ref(&first));
        assert_eq!(
            read(&format!("I look.\n{READ}\n{READ}\n"), &[]),
            [text("I look."), first.clone(), second]
        );
        assert_eq!(read(&format!("a\n\n{READ} b"), &[]), [text("a\n"), first, text(" b")]);
    }

    #[test]
    fn what_is_no_call_of_an_offered_tool_stays_text() {
        for said in [
            "<tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call>",
            "<tool_call>{\"name\": \"read\"}</tool_call>",
            "<tool_call>{\"name\": \"read\", \"arguments\": \"{}\"}</tool_call>",
            "<tool_call>{\"name\": \"read\", \"arguments\": {}, \"id\": 1}</tool_call>",
            "<tool_call>read</tool_call> and on",
            "<tool_call>\n{\"name\": \"read\", \"argu",
            "a\n<tool_call",
            "a <b\n",
        ] {
            assert_eq!(read(said, &[]), [text(said)]);
        }
    }

    #[test]
    fn a_stop_text_ends_a_call_too() {
        assert_eq!(
            read(&format!("a\n{READ}"), &["\"path"]),
            [text("a\n<tool_call>\n{\"name\": \"read\", \"arguments\": {")]
        );
    }

    #[test]
    fn nothing_is_held_that_cannot_begin_a_call() {
        let mut reader = Reader::new(&[], &["read".to_owned()], String::new());
        let mut push = |byte: u8| reader.push(u32::from(byte), &Bytes);
        assert_eq!(push(b'a'), [text("a")]);
        assert_eq!(push(b'\n'), []);
        assert_eq!(push(b'<'), []);
        assert_eq!(push(b'b'), [text("\n<b")]);
    }

    proptest! {
        /// What is read, told again as a template has it, is what was said.
        #[test]
        fn what_was_said_in_the_templates_form_comes_back_as_it_was(
            said in "[a-z<>/_ \n]{0,12}",
            values in prop::collection::vec("\\PC{0,8}", 0..3),
        ) {
            let mut whole = Entry::new("assistant".to_owned(), said);
            let arguments = |value: &String| json!({"path": value}).as_object().unwrap().clone();
            whole.calls = values.iter().enumerate().map(|(number, value)| ToolCall {
                id: format!("call_{number}"), name: "write".to_owned(), arguments: arguments(value),
            }).collect();
            let (content, calls) = split(read(&whole.shown().content, &[]));
            let mut again = Entry::new("assistant".to_owned(), content);
            again.calls = calls;
            prop_assert_eq!(again.shown().content, whole.shown().content);
        }
    }
}

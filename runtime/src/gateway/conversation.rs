//! A conversation as the policy is asked to go on with it, whichever surface it came by.

use serde_json::{Map, Value, json};

use super::error::ApiError;
use crate::tokenizer::{Entry, Message, Tokenizer};

/// What a name of a tool may have beside letters and digits.
const MARKS: &str = "_-";
/// The longest name of a tool.
const LONGEST_NAME: usize = 128;

/// The messages, and the tools that may be called.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Conversation {
    pub(super) entries: Vec<Entry>,
    /// As OpenAI's API has them.
    pub(super) tools: Vec<Value>,
    /// Their names.
    pub(super) names: Vec<String>,
}

impl Conversation {
    /// A tool that may be called.
    pub(super) fn offer(&mut self, name: &str, tool: Value) -> Result<(), ApiError> {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || MARKS.contains(letter);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) {
            let message = "the name of a tool must be 1 to 128 letters, digits, _ or -";
            return Err(ApiError::bad_request(message));
        }
        if self.names.iter().any(|known| known == name) {
            return Err(ApiError::bad_request(&format!("there are two tools {name}")));
        }
        self.names.push(name.to_owned());
        self.tools.push(tool);
        Ok(())
    }

    /// The messages as judges and the record see them.
    pub(super) fn messages(&self) -> Vec<Message> {
        self.entries.iter().map(Entry::shown).collect()
    }

    /// The prompt of the next turn.
    pub(super) fn prompt(&self, tokenizer: &dyn Tokenizer) -> Result<Vec<u32>, ApiError> {
        let calls = self.entries.iter().any(|entry| !entry.calls.is_empty());
        let prompt = if self.tools.is_empty() && !calls {
            tokenizer.prompt(&self.messages())
        } else {
            let refused = tokenizer.takes_tools();
            refused.map_err(|why| ApiError::bad_request(&why.to_string()))?;
            tokenizer.prompt_with_tools(&self.entries, &self.tools)
        };
        prompt.map_err(|error| ApiError::bad_request(&error.to_string()))
    }
}

/// A function as OpenAI's API has it.
pub(super) fn function(name: &str, description: Option<&str>, parameters: &Value) -> Value {
    let mut function = Map::from_iter([("name".to_owned(), json!(name))]);
    if let Some(description) = description {
        function.insert("description".to_owned(), json!(description));
    }
    function.insert("parameters".to_owned(), parameters.clone());
    json!({"type": "function", "function": function})
}

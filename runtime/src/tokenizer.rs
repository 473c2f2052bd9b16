//! Text to token ids and back.

mod hugging_face;
mod symbols;
mod tools;

use serde::Serialize;
use serde_json::Value;

pub use hugging_face::{HuggingFace, TokenizerError};
pub use symbols::Symbols;
pub use tools::{CALL, CALL_END, Entry, NoTools, ToolCall};

use crate::utf8;

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// Its text.
    pub content: String,
}

/// Turns conversations into prompts and generated tokens into text. Text that was generated is
/// never tokenised again: what is trained on are the ids that the engine sampled.
pub trait Tokenizer: Send + Sync + 'static {
    /// The prompt of the next turn: the conversation, and the opening of the assistant's answer.
    ///
    /// # Errors
    /// [`PromptError`]: the model has no form for such a conversation.
    fn prompt(&self, messages: &[Message]) -> Result<Vec<u32>, PromptError>;

    /// Whether tools can be offered: the model's template renders them, and its calls can be read.
    ///
    /// # Errors
    /// [`NoTools`]: why not.
    fn takes_tools(&self) -> Result<(), NoTools> {
        Err(NoTools::NotRendered)
    }

    /// The prompt of the next turn of a conversation with tools, each as OpenAI's API has it. Only
    /// where it [takes tools](Self::takes_tools).
    ///
    /// # Errors
    /// [`PromptError`]: the model has no form for such a conversation.
    fn prompt_with_tools(
        &self,
        entries: &[Entry],
        tools: &[Value],
    ) -> Result<Vec<u32>, PromptError> {
        let _ = (entries, tools);
        Err(PromptError(NoTools::NotRendered.to_string()))
    }

    /// The ids of a text, for stop sequences.
    fn encode(&self, text: &str) -> Vec<u32>;

    /// The text of generated ids, without the token that ends a turn. Bytes that are no UTF-8
    /// (yet) are U+FFFD.
    fn decode(&self, ids: &[u32]) -> String;

    /// The token that ends the assistant's turn.
    fn end_of_turn(&self) -> u32;
}

/// A conversation that the model's template refuses: the template's own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model's chat template refuses these messages: {0}")]
pub struct PromptError(pub String);

/// A tokenizer of bytes: the ids 0 to 255 are bytes, and a few more mark messages. It needs no
/// vocabulary file, and suits small models.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytes;

impl Bytes {
    /// Ends a message.
    pub const END: u32 = 256;
    /// Begins a message of the system.
    pub const SYSTEM: u32 = 257;
    /// Begins a message of the user.
    pub const USER: u32 = 258;
    /// Begins a message of the assistant.
    pub const ASSISTANT: u32 = 259;
    /// Begins a message of a tool, or of any other role.
    pub const TOOL: u32 = 260;
    /// How many ids there are.
    pub const VOCABULARY: u32 = 261;
}

impl Tokenizer for Bytes {
    fn prompt(&self, messages: &[Message]) -> Result<Vec<u32>, PromptError> {
        let mut ids = Vec::new();
        for message in messages {
            ids.push(match message.role.as_str() {
                "system" => Self::SYSTEM,
                "user" => Self::USER,
                "assistant" => Self::ASSISTANT,
                _ => Self::TOOL,
            });
            ids.extend(self.encode(&message.content));
            ids.push(Self::END);
        }
        ids.push(Self::ASSISTANT);
        Ok(ids)
    }

    fn encode(&self, text: &str) -> Vec<u32> {
        text.bytes().map(u32::from).collect()
    }

    fn decode(&self, ids: &[u32]) -> String {
        utf8::lossy(ids.iter().filter_map(|&id| u8::try_from(id).ok()).collect())
    }

    fn end_of_turn(&self) -> u32 {
        Self::END
    }
}

//! Text to token ids and back.

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    fn prompt(&self, messages: &[Message]) -> Vec<u32>;

    /// The ids of a text, for stop sequences.
    fn encode(&self, text: &str) -> Vec<u32>;

    /// The text of generated ids, without the token that ends a turn. Bytes that are no UTF-8
    /// (yet) are U+FFFD.
    fn decode(&self, ids: &[u32]) -> String;

    /// The token that ends the assistant's turn.
    fn end_of_turn(&self) -> u32;
}

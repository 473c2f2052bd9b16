//! A tokenizer of a few symbols.

use super::{Message, PromptError, Tokenizer};

/// How many marks there are around messages.
const MARKS: u32 = 5;

/// A tokenizer that knows a few symbols, for tasks that need no others: a policy that begins with
/// random weights says something meaningful now and then only where there is little else to say.
/// The ids are those of the symbols in their order, then the marks that end and begin messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbols(Vec<char>);

impl Symbols {
    /// A tokenizer of these symbols; each should be there once.
    #[must_use]
    pub fn new(symbols: &str) -> Self {
        Self(symbols.chars().collect())
    }

    /// How many ids there are.
    #[must_use]
    pub fn vocabulary(&self) -> u32 {
        self.count() + MARKS
    }

    fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX - MARKS)
    }

    /// What begins a message.
    fn opening(&self, role: &str) -> u32 {
        self.count()
            + match role {
                "system" => 1,
                "user" => 2,
                "assistant" => 3,
                _ => 4,
            }
    }
}

impl Tokenizer for Symbols {
    fn prompt(&self, messages: &[Message]) -> Result<Vec<u32>, PromptError> {
        let mut ids = Vec::new();
        for message in messages {
            ids.push(self.opening(&message.role));
            ids.extend(self.encode(&message.content));
            ids.push(self.end_of_turn());
        }
        ids.push(self.opening("assistant"));
        Ok(ids)
    }

    /// Characters that are no symbols are left out.
    fn encode(&self, text: &str) -> Vec<u32> {
        let id = |letter| self.0.iter().position(|symbol| *symbol == letter);
        text.chars().filter_map(|letter| u32::try_from(id(letter)?).ok()).collect()
    }

    fn decode(&self, ids: &[u32]) -> String {
        ids.iter().filter_map(|&id| self.0.get(id as usize)).collect()
    }

    fn end_of_turn(&self) -> u32 {
        self.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_becomes_symbols_between_marks() {
        let symbols = Symbols::new("01?");
        let message =
            |role: &str, content: &str| Message { role: role.into(), content: content.into() };
        let messages = [message("user", "10x"), message("assistant", "?1"), message("tool", "0")];
        assert_eq!(symbols.prompt(&messages).unwrap(), [5, 1, 0, 3, 6, 2, 1, 3, 7, 0, 3, 6]);
        assert_eq!(symbols.decode(&[2, 1, 3]), "?1");
        assert_eq!(symbols.vocabulary(), 8);
    }
}

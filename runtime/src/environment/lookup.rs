//! A task with a tool that can be learned from nothing: ask for a key, answer with its value.

use headway_shared::digest::{Digest, mix};

use super::{Episode, Operation, State, Task};

/// The symbols of keys and values.
const DIGITS: &[u8] = b"0123456789";
/// What a call of the tool begins with.
const CALL: char = '?';

/// The user names a key. The policy calls the tool, `?` and the key, which gives the value that
/// this session's table has for it; then it answers with the value. It cannot be known without the
/// call: every prompt has a table of its own. The table has a value for every text, so that a wrong
/// call gets a wrong value rather than an error.
///
/// Each turn can be checked: the right first answer is the call, the right second one what the tool
/// said.
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    /// Equal seeds, equal tables.
    pub seed: u64,
    /// Digits of a key and of a value.
    pub length: u32,
}

impl Lookup {
    /// Every symbol that its texts have.
    pub const SYMBOLS: &str = "0123456789?";

    /// The task with keys and values of one digit, which a tiny policy learns within some hundred
    /// steps.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, length: 1 }
    }
}

impl Task for Lookup {
    fn name(&self) -> &'static str {
        "lookup"
    }

    fn begin(&self, prompt: u64) -> Box<dyn Episode> {
        let table = Table { seed: mix(mix(self.seed) ^ prompt), length: self.length };
        Box::new(Session { key: table.digits(0), table, called: false })
    }
}

/// The tool.
struct Table {
    seed: u64,
    length: u32,
}

impl Table {
    fn look_up(&self, key: &str) -> String {
        self.digits(Digest::of(key.as_bytes()).value())
    }

    fn digits(&self, number: u64) -> String {
        let number = mix(self.seed ^ mix(number));
        let digit = |place| DIGITS[(mix(number ^ mix(u64::from(place))) % 10) as usize];
        (0..self.length).map(|place| char::from(digit(place))).collect()
    }
}

struct Session {
    key: String,
    table: Table,
    called: bool,
}

impl Session {
    fn state(&self, role: &'static str, content: String, answer: String, last: bool) -> State {
        // A digit is a token. There is no room for what ends a turn, and no need.
        let max_tokens = u32::try_from(answer.len()).unwrap_or(u32::MAX);
        State { role, content, answer, max_tokens, last }
    }
}

impl Episode for Session {
    fn reset(&mut self) -> Operation<'_, State> {
        self.called = false;
        let state = self.state("user", self.key.clone(), format!("{CALL}{}", self.key), false);
        Box::pin(async move { Ok(state) })
    }

    fn step<'a>(&'a mut self, said: &'a str) -> Operation<'a, Option<State>> {
        let over = std::mem::replace(&mut self.called, true);
        let value = self.table.look_up(said.strip_prefix(CALL).unwrap_or(said));
        let state = self.state("tool", value.clone(), value, true);
        Box::pin(async move { Ok((!over).then_some(state)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_tool_is_called_once_and_gives_each_key_its_value() {
        let mut values = Vec::new();
        for said in [None, None, Some("?x"), Some("12")] {
            let mut episode = Lookup { seed: 3, length: 2 }.begin(7);
            let first = episode.reset().await.unwrap();
            assert_eq!(first.answer, format!("?{}", first.content));
            let said = said.unwrap_or(&first.answer).to_owned();
            let second = episode.step(&said).await.unwrap().unwrap();
            assert_eq!((second.role, second.last, second.max_tokens), ("tool", true, 2));
            assert_eq!(second.content, second.answer);
            values.push(second.content);
            assert_eq!(episode.step(&second.answer).await.unwrap(), None);
        }
        assert_eq!(values[0], values[1]);
        assert!(values[0] != values[2] && values[0] != values[3], "{values:?}");
    }

    #[tokio::test]
    async fn prompts_differ_and_members_of_a_group_do_not() {
        let mut states = Vec::new();
        for prompt in [0, 0, 1, 2, 3] {
            states.push(Lookup::new(3).begin(prompt).reset().await.unwrap());
        }
        assert_eq!(states[0], states[1]);
        assert!(states[1..].windows(2).any(|pair| pair[0] != pair[1]));
        assert_ne!(Lookup::new(4).begin(0).reset().await.unwrap(), states[0]);
    }
}

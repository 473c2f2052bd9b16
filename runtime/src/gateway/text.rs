//! Generated ids into text, piece by piece.

use crate::tokenizer::Tokenizer;

/// What a decoder writes for bytes that are no character yet.
const UNKNOWN: char = '\u{fffd}';

/// The text of a turn as its tokens come: whole characters only, and nothing from a stop text on.
#[derive(Clone, Debug, Default)]
pub(super) struct TextStream {
    /// Ids whose characters are not whole.
    pending: Vec<u32>,
    /// Text that may be the beginning of a stop text.
    held: String,
    stops: Vec<String>,
    /// The stop text that came.
    stopped: Option<String>,
}

impl TextStream {
    pub(super) fn new(stops: &[String]) -> Self {
        Self { stops: stops.to_vec(), ..Self::default() }
    }

    /// The text that a token adds.
    pub(super) fn push(&mut self, id: u32, tokenizer: &dyn Tokenizer) -> String {
        self.pending.push(id);
        let text = tokenizer.decode(&self.pending);
        if text.ends_with(UNKNOWN) {
            return String::new();
        }
        self.pending.clear();
        self.add(text)
    }

    /// The text that several tokens add: the same at once, where no text can end it between them.
    pub(super) fn push_all(
        &mut self,
        ids: impl Iterator<Item = u32>,
        tokenizer: &dyn Tokenizer,
    ) -> String {
        if !self.stops.is_empty() {
            return ids.map(|id| self.push(id, tokenizer)).collect();
        }
        self.pending.extend(ids);
        match self.pending.pop() {
            Some(last) => self.push(last, tokenizer),
            None => String::new(),
        }
    }

    /// What was held back, once no token follows.
    pub(super) fn finish(&mut self, tokenizer: &dyn Tokenizer) -> String {
        let rest = tokenizer.decode(&std::mem::take(&mut self.pending));
        let mut text = self.add(rest);
        text.push_str(&std::mem::take(&mut self.held));
        text
    }

    /// The stop text that ended it.
    pub(super) fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    fn add(&mut self, text: String) -> String {
        if self.stopped.is_some() {
            return String::new();
        }
        if self.stops.is_empty() {
            return text;
        }
        self.held.push_str(&text);
        let held = &self.held;
        let found = self.stops.iter().filter_map(|stop| Some((held.find(stop)?, stop)));
        if let Some((at, stop)) = found.min() {
            self.stopped = Some(stop.clone());
            let mut text = std::mem::take(&mut self.held);
            text.truncate(at);
            return text;
        }
        let begins = |at: &usize| self.stops.iter().any(|stop| stop.starts_with(&held[*at..]));
        let places = held.char_indices().map(|(at, _)| at);
        let cut = places.filter(|at| held.len() - at < self.longest()).find(begins);
        let rest = self.held.split_off(cut.unwrap_or(self.held.len()));
        std::mem::replace(&mut self.held, rest)
    }

    fn longest(&self) -> usize {
        self.stops.iter().map(String::len).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::{Bytes, Message};

    fn all(stops: &[&str], text: &str) -> (Vec<String>, String) {
        let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut stream = TextStream::new(&stops);
        let ids = Bytes.encode(text);
        let mut pieces: Vec<String> = ids.iter().map(|&id| stream.push(id, &Bytes)).collect();
        pieces.push(stream.finish(&Bytes));
        let whole = pieces.concat();
        (pieces, whole)
    }

    proptest::proptest! {
        #[test]
        fn tokens_give_the_same_text_one_by_one_and_at_once(
            ids in proptest::collection::vec(0..300_u32, 0..40),
            text in "[a-e✓é]{0,12}",
            stops in proptest::collection::vec("[a-e]{1,3}", 0..3),
            cut in 0..60_usize,
        ) {
            let ids: Vec<u32> = ids.into_iter().chain(Bytes.encode(&text)).collect();
            let (mut one, mut all) = (TextStream::new(&stops), TextStream::new(&stops));
            let mut said: String = ids.iter().map(|&id| one.push(id, &Bytes)).collect();
            said.push_str(&one.finish(&Bytes));
            let (before, behind) = ids.split_at(cut.min(ids.len()));
            let parts = [before, behind].map(|part| all.push_all(part.iter().copied(), &Bytes));
            let at_once = parts.concat() + &all.finish(&Bytes);
            proptest::prop_assert_eq!(at_once, said);
            proptest::prop_assert_eq!(all.stopped(), one.stopped());
        }
    }

    #[test]
    fn characters_come_whole() {
        let (pieces, whole) = all(&[], "aé✓");
        assert_eq!(whole, "aé✓");
        assert!(pieces.iter().all(|piece| !piece.contains(UNKNOWN)), "{pieces:?}");
    }

    #[test]
    fn nothing_of_a_stop_text_is_shown_however_it_is_cut() {
        assert_eq!(all(&["STOP"], "go on STOP here").1, "go on ");
        assert_eq!(all(&["STOP"], "STO").1, "STO");
        assert_eq!(all(&["</a>", "<"], "x</a>y").1, "x");
        let (pieces, _) = all(&["STOP"], "a STx");
        assert_eq!(pieces, ["a", " ", "", "", "STx", ""]);
    }

    #[test]
    fn a_prompt_shows_each_message_with_its_role() {
        let message =
            |role: &str, content: &str| Message { role: role.into(), content: content.into() };
        let one = Bytes.prompt(&[message("user", "hi")]).unwrap();
        let two = Bytes.prompt(&[message("user", "hi"), message("assistant", "ho")]).unwrap();
        assert!(two.starts_with(&one[..one.len() - 1]));
        assert_eq!(Bytes.decode(&Bytes.encode("hé")), "hé");
    }
}

//! Words whose ids are known.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// So many words are remembered.
const MOST: usize = 1 << 15;
/// Longer words are not remembered; with `MOST`, what bounds the memory: 12 MB, and 1 MB where words are
/// as they are in English.
pub(super) const MOST_BYTES: usize = 64;

/// A word with its ids.
type Entry = (Box<str>, Box<[u32]>);

/// Words whose ids are known, each at the place that its letters say: a new one takes the place of another.
/// Who asks for words that share a place only waits as long as if nothing were remembered.
#[derive(Debug)]
pub(super) struct Words(RwLock<Vec<Option<Entry>>>);

/// The words as they are now.
pub(super) struct Known<'w>(RwLockReadGuard<'w, Vec<Option<Entry>>>);

impl Words {
    pub(super) fn new() -> Self {
        Self(RwLock::new(vec![None; MOST]))
    }

    pub(super) fn read(&self) -> Known<'_> {
        Known(self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Remembers words of at most `MOST_BYTES` bytes, unless somebody reads just now: a long prompt must not
    /// keep those behind it waiting, and a word that comes often comes again.
    pub(super) fn add(&self, fresh: Vec<Entry>) {
        if fresh.is_empty() {
            return;
        }
        let Ok(mut words) = self.0.try_write() else { return };
        for entry in fresh {
            let place = place(&entry.0);
            words[place] = Some(entry);
        }
    }
}

impl Known<'_> {
    pub(super) fn get(&self, word: &str) -> Option<&[u32]> {
        let (known, ids) = self.0[place(word)].as_ref()?;
        (**known == *word).then_some(ids)
    }
}

fn place(word: &str) -> usize {
    let hash = word.as_bytes().chunks(8).fold(word.len() as u64, |hash, chunk| {
        (hash.rotate_left(23) ^ number(chunk)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    (hash >> (u64::BITS - MOST.ilog2())) as usize
}

/// At most eight bytes as a number, others for others of the same length.
fn number(bytes: &[u8]) -> u64 {
    let first = |count: usize| bytes[..count].iter().rev();
    let joined = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    match bytes.len() {
        8 => first(8).fold(0, joined),
        4.. => first(4).fold(0, joined) << 32 | bytes[bytes.len() - 4..].iter().fold(0, joined),
        _ => bytes.iter().fold(0, joined),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_until_others_take_their_places_and_never_more_are_kept() {
        let words = Words::new();
        let ids = |number: usize| -> Box<[u32]> { [number as u32].into() };
        words.add((0..3 * MOST).map(|number| (number.to_string().into(), ids(number))).collect());
        let known = words.read();
        assert_eq!(known.0.len(), MOST);
        let found = (0..3 * MOST).filter(|number| {
            let found = known.get(&number.to_string());
            assert!(found.is_none_or(|found| *found == *ids(*number)), "{number}");
            found.is_some()
        });
        let found = found.count();
        assert_eq!(found, known.0.iter().flatten().count());
        // Places are used evenly: of three words for each, one in twenty is left empty.
        assert!(found > MOST * 9 / 10, "{found}");
    }
}

//! Valid bytes with one thing wrong, as disks, networks, editors and strangers make them.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// What may stand where a number stood.
const NUMBERS: [&str; 14] = [
    "-1",
    "0",
    "-0",
    "1e999",
    "-1e999",
    "1e-999",
    "NaN",
    "inf",
    "18446744073709551616",
    "9223372036854775807",
    "4294967296",
    "1e15",
    "",
    "0x",
];
/// What may stand where anything stood.
const VALUES: [&str; 10] =
    ["null", "true", "\"\"", "\"x\"", "[]", "{}", "[[1]]", "{\"a\":{}}", "\u{feff}", "\u{0}"];
/// What nests, as far as any text of ours does and further than any stack reaches.
const NESTS: [&str; 4] = ["[", "{\"a\":", "(", "{a="];
const DEEP: usize = 100_000;

/// One thing wrong: which, where, and how.
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    kind: u8,
    place: Index,
    other: Index,
    byte: u8,
}

/// So many kinds of damage, each to one of several things: always the same ones.
pub(crate) fn damages(count: usize) -> impl Iterator<Item = (Index, Damage)> {
    let damage = (0..9_u8, any::<Index>(), any::<Index>(), 1..=u8::MAX)
        .prop_map(|(kind, place, other, byte)| Damage { kind, place, other, byte });
    let one = (any::<Index>(), damage);
    let mut runner = TestRunner::deterministic();
    (0..count).map(move |_| one.new_tree(&mut runner).unwrap().current())
}

impl Damage {
    /// The bytes with this wrong.
    pub(crate) fn of(&self, valid: &[u8]) -> Vec<u8> {
        let mut bytes = valid.to_vec();
        if bytes.is_empty() {
            return vec![self.byte];
        }
        let at = self.place.index(bytes.len());
        match self.kind {
            0 => bytes[at] ^= self.byte,
            1 => bytes.truncate(at),
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, self.byte),
            4 => self.put(&mut bytes, &NUMBERS, |byte| {
                byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e')
            }),
            5 => self.put(&mut bytes, &VALUES, |byte| !b",:[]{}\n=".contains(&byte)),
            // A line, twice.
            6 => {
                let start =
                    bytes[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
                let end = bytes[at..].iter().position(|&byte| byte == b'\n');
                let end = end.map_or(bytes.len(), |length| at + length + 1);
                let line = bytes[start..end].to_vec();
                drop(bytes.splice(start..start, line));
            }
            // A stretch of it gone.
            7 => {
                let end = at + self.other.index(bytes.len() - at);
                drop(bytes.drain(at..end));
            }
            _ => {
                let nest = NESTS[self.other.index(NESTS.len())].repeat(DEEP);
                drop(bytes.splice(at..at, nest.bytes()));
            }
        }
        bytes
    }

    /// Puts one of these in the place of the word around a place.
    fn put(&self, bytes: &mut Vec<u8>, these: &[&str], of_word: impl Fn(u8) -> bool) {
        let from = self.place.index(bytes.len());
        let found = bytes[from..].iter().position(|&byte| of_word(byte));
        let start = from + found.unwrap_or(0);
        let length = bytes[start..].iter().take_while(|&&byte| of_word(byte)).count();
        let new = these[self.other.index(these.len())];
        drop(bytes.splice(start..start + length, new.bytes()));
    }
}

//! Typed reading of a table that never stops at the first error.

use std::ops::RangeInclusive;

use super::asked::{Asked, Shape};
use super::choices::Choice;
use super::diagnostic::{Diagnostic, Findings, Origin};
use super::node::{Entry, Node, Table, Value};
use crate::time::Span;

/// Longest span that a key takes: about 31 years.
const MAX_SECONDS: f64 = 1e9;

/// Reads one table. Each getter takes a key and the default for where it is absent; a value that
/// is wrong is a finding, and the default stands in. End with [`finish`](Self::finish), which
/// reports the keys that nothing asked for.
#[derive(Debug)]
#[must_use = "call finish(), or unknown keys go unnoticed"]
pub struct Reader<'a> {
    table: &'a Table,
    /// The dotted path of the table; empty at the root.
    path: String,
    /// Where the table stands.
    origin: Origin,
    asked: Vec<&'static str>,
    findings: &'a Findings,
}

impl<'a> Reader<'a> {
    /// A reader of a document's root; `start` is where the document begins.
    pub const fn new(root: &'a Table, start: Origin, findings: &'a Findings) -> Self {
        Self { table: root, path: String::new(), origin: start, asked: Vec::new(), findings }
    }

    /// The dotted path of the table; empty at the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether the key is there. Does not count as asking for it.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// Where the value of a key was written; else where the table was.
    fn origin(&self, key: &str) -> Origin {
        self.table.get(key).map_or(self.origin, |entry| entry.node.origin)
    }

    /// The value of a key as it was written; for what the typed getters do not cover.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.entry(key, || Shape::Any).map(|entry| &entry.node)
    }

    /// Reports an error at a key's value (at the table, where the key is absent).
    pub fn error(&self, key: &str, message: impl Into<String>, help: impl Into<String>) {
        self.findings.push(Diagnostic::error(self.origin(key), message).help(help));
    }

    /// Reports a warning at a key's value (at the table, where the key is absent).
    pub fn warn(&self, key: &str, message: impl Into<String>, help: impl Into<String>) {
        self.findings.push(Diagnostic::warning(self.origin(key), message).help(help));
    }

    /// The value of the key may be a secret: no message will show it.
    pub(super) fn hide(&self, key: &str) {
        if let Some(entry) = self.table.get(key) {
            self.findings.hide(entry.node.origin);
        }
    }

    /// Reports the key as missing, if it is. `example` is a value that could be given.
    pub fn require(&mut self, key: &'static str, example: &str) -> bool {
        let there = self.entry(key, || Shape::Any).is_some();
        self.findings.notes().note(&self.path, |path| Asked::Required { path, key });
        if !there {
            let place = if self.path.is_empty() { "the file" } else { &self.path };
            let help = format!("add {}", self.origin.source.assignment(key, example));
            let message = format!("`{key}` is missing in {place}");
            self.findings.push(Diagnostic::error(self.origin, message).help(help));
        }
        there
    }

    /// A whole number.
    pub fn u32(&mut self, key: &'static str, default: u32, range: RangeInclusive<u32>) -> u32 {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        // The range keeps it within `u32`.
        self.u64(key, u64::from(default), range) as u32
    }

    /// A whole number.
    pub fn u64(&mut self, key: &'static str, default: u64, range: RangeInclusive<u64>) -> u64 {
        let shape = || Shape::Whole(*range.start(), *range.end());
        let Some(entry) = self.entry(key, shape) else { return default };
        let Value::Integer(number) = entry.node.value else {
            self.wrong_type(entry, "a whole number", &default.to_string());
            return default;
        };
        match u64::try_from(number) {
            Ok(number) if range.contains(&number) => number,
            _ => {
                self.out_of_range(entry, *range.start(), *range.end());
                default
            }
        }
    }

    /// A number; a whole number counts too.
    pub fn float(&mut self, key: &'static str, default: f64, range: RangeInclusive<f64>) -> f64 {
        self.number(key, default, range).unwrap_or(default)
    }

    /// A number of seconds, 0 or more. By custom the key ends in `_sec`.
    pub fn span_sec(&mut self, key: &'static str, default: Span) -> Span {
        let seconds = self.number(key, default.as_secs_f64(), 0.0..=MAX_SECONDS);
        seconds.and_then(Span::from_secs_f64).unwrap_or(default)
    }

    /// A number that is kept in millionths.
    pub fn millionths(&mut self, key: &'static str, default: u32) -> u32 {
        let number = self.number(key, f64::from(default) / 1e6, 0.0..=4_000.0);
        // At most 4e9, which fits.
        number.map_or(default, |number| (number * 1e6 + 0.5) as u32)
    }

    /// Two numbers in a list, each of a range; `None` where the key is absent.
    pub fn pair(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<[f64; 2]> {
        let entry = self.entry(key, || Shape::Pair(*range.start(), *range.end()))?;
        let number = |node: &Node| match node.value {
            Value::Integer(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            _ => None,
        };
        let pair = match &entry.node.value {
            Value::List(items) => match items.as_slice() {
                [first, second] => number(first).zip(number(second)),
                _ => None,
            },
            _ => None,
        };
        let Some((first, second)) = pair else {
            self.wrong_type(entry, "a list of two numbers", "[1.0, 2.0]");
            return None;
        };
        if range.contains(&first) && range.contains(&second) {
            return Some([first, second]);
        }
        self.out_of_range(entry, *range.start(), *range.end());
        None
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, key: &'static str, default: bool) -> bool {
        let Some(entry) = self.entry(key, || Shape::Boolean) else { return default };
        if let Value::Boolean(value) = entry.node.value {
            return value;
        }
        self.wrong_type(entry, "true or false", if default { "true" } else { "false" });
        default
    }

    /// Text.
    pub fn string(&mut self, key: &'static str, default: &str) -> String {
        let Some(entry) = self.entry(key, || Shape::Text) else { return default.to_owned() };
        if let Value::Text(text) = &entry.node.value {
            return text.clone();
        }
        self.wrong_type(entry, "text", &format!("{default:?}"));
        default.to_owned()
    }

    /// One of a few words.
    pub fn choice<T: Choice>(&mut self, key: &'static str, default: T) -> T {
        let words = || Shape::Words(T::ALL.iter().map(|(word, _)| *word).collect());
        let Some(entry) = self.entry(key, words) else { return default };
        let Value::Text(text) = &entry.node.value else {
            self.wrong_type(entry, "text", &format!("{:?}", default.word()));
            return default;
        };
        if let Some((_, value)) = T::ALL.iter().find(|(word, _)| word == text) {
            return *value;
        }
        let words: Vec<&str> = T::ALL.iter().map(|(word, _)| *word).collect();
        let all = format!("write one of {}", words.join(", "));
        self.findings.push(
            Diagnostic::error(entry.node.origin, format!("`{key}` cannot be {text:?}"))
                .help(did_you_mean(text, &words, &all)),
        );
        default
    }

    /// A list of texts; empty where the key is absent.
    pub fn strings(&mut self, key: &'static str) -> Vec<String> {
        let Some(entry) = self.entry(key, || Shape::Texts) else { return Vec::new() };
        let Value::List(items) = &entry.node.value else {
            self.wrong_type(entry, "a list of texts", "[\"...\"]");
            return Vec::new();
        };
        let mut values = Vec::new();
        for item in items {
            match &item.value {
                Value::Text(text) => values.push(text.clone()),
                _ => self.wrong_item(item, key, "a list of texts"),
            }
        }
        values
    }

    /// A table within this one; where the key is absent, an empty one.
    pub fn table(&mut self, key: &'static str) -> Reader<'a> {
        self.optional_table(key).unwrap_or_else(|| Reader {
            table: Table::EMPTY,
            path: self.path_of(key),
            origin: self.origin,
            asked: Vec::new(),
            findings: self.findings,
        })
    }

    /// A table within this one, if it is there.
    pub fn optional_table(&mut self, key: &'static str) -> Option<Reader<'a>> {
        let entry = self.entry(key, || Shape::Table)?;
        let child = self.child(&entry.node, entry.key_origin, self.path_of(key));
        if child.is_none() {
            self.wrong_type(entry, "a table", "{ ... }");
        }
        child
    }

    /// A list of tables; empty where the key is absent.
    pub fn tables(&mut self, key: &'static str) -> Vec<Reader<'a>> {
        let Some(entry) = self.entry(key, || Shape::Tables) else { return Vec::new() };
        let Value::List(items) = &entry.node.value else {
            self.wrong_type(entry, "a list of tables", "[{ ... }]");
            return Vec::new();
        };
        let mut readers = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", self.path_of(key));
            match self.child(item, item.origin, path) {
                Some(reader) => readers.push(reader),
                None => self.wrong_item(item, key, "a list of tables"),
            }
        }
        readers
    }

    /// Reports the keys that nothing asked for, each with the nearest one that exists.
    pub fn finish(self) {
        self.findings.notes().note(&self.path, |path| Asked::Finished { path });
        for entry in self.table.entries() {
            if self.asked.iter().any(|asked| *asked == entry.key) {
                continue;
            }
            let place = match self.path.as_str() {
                "" => String::new(),
                path => format!(" in [{path}]"),
            };
            let all = format!("the keys here are {}", self.asked.join(", "));
            self.findings.push(
                Diagnostic::error(entry.key_origin, format!("unknown key `{}`{place}", entry.key))
                    .help(did_you_mean(&entry.key, &self.asked, &all)),
            );
        }
    }

    /// Says that the table at `key` has a form that other keys have, too: see [`Shape::Form`].
    pub fn form(&self, key: &'static str, form: &'static str) {
        self.note(key, || Shape::Form(form));
    }

    fn note(&self, key: &'static str, shape: impl FnOnce() -> Shape) {
        let asked = |path| Asked::Key { path, key, shape: shape() };
        self.findings.notes().note(&self.path, asked);
    }

    fn entry(&mut self, key: &'static str, shape: impl FnOnce() -> Shape) -> Option<&'a Entry> {
        self.note(key, shape);
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.table.get(key)
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn child(&self, node: &'a Node, origin: Origin, path: String) -> Option<Reader<'a>> {
        let table = node.as_table()?;
        Some(Reader { table, path, origin, asked: Vec::new(), findings: self.findings })
    }

    fn number(
        &mut self,
        key: &'static str,
        example: f64,
        range: RangeInclusive<f64>,
    ) -> Option<f64> {
        let entry = self.entry(key, || Shape::Number(*range.start(), *range.end()))?;
        let number = match entry.node.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) if number.is_finite() => number,
            Value::Float(_) => {
                let message = format!("`{key}` must be a finite number");
                let write = entry.node.origin.source.assignment(key, &example.to_string());
                let help = format!("write {write}, or leave the key out");
                self.findings.push(Diagnostic::error(entry.node.origin, message).help(help));
                return None;
            }
            _ => {
                self.wrong_type(entry, "a number", &example.to_string());
                return None;
            }
        };
        if !range.contains(&number) {
            self.out_of_range(entry, *range.start(), *range.end());
            return None;
        }
        Some(number)
    }

    fn wrong_type(&self, entry: &Entry, expected: &str, example: &str) {
        let Entry { key, node, .. } = entry;
        let message = format!("`{key}` must be {expected}, not {}", node.value.describe());
        let help = format!("write {}", node.origin.source.assignment(key, example));
        self.findings.push(Diagnostic::error(node.origin, message).help(help));
    }

    fn wrong_item(&self, item: &Node, key: &str, expected: &str) {
        let message = format!("`{key}` must be {expected}; this is {}", item.value.describe());
        self.findings.push(Diagnostic::error(item.origin, message).help("change this item"));
    }

    fn out_of_range<T: std::fmt::Display>(&self, entry: &Entry, low: T, high: T) {
        let key = &entry.key;
        let message = format!("`{key}` must be between {low} and {high}");
        let help = format!("choose a number from {low} to {high}");
        self.findings.push(Diagnostic::error(entry.node.origin, message).help(help));
    }
}

/// "did you mean `x`?" where a candidate is near, else `otherwise`.
pub(crate) fn did_you_mean(word: &str, candidates: &[&str], otherwise: &str) -> String {
    match nearest(word, candidates) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    }
}

/// No candidate is nearly as long, and comparing takes time and memory of both lengths.
const LONGEST_WORD: usize = 128;

/// The candidate that is most like `word`, if it is like it at all.
#[must_use]
pub fn nearest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    // `median` for `median_sec`: the unit was left out.
    let longer =
        |candidate: &&&str| candidate.strip_prefix(word).is_some_and(|rest| rest.starts_with('_'));
    let near = candidates
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), *candidate))
        // Up to a third of the letters may differ.
        .filter(|(distance, candidate)| distance * 3 <= candidate.len().max(word.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate);
    near.or_else(|| candidates.iter().find(longer).copied())
}

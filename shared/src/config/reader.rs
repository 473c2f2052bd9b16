//! Typed reading of a table that never stops at the first error.

use std::ops::RangeInclusive;

use super::asked::{Asked, Shape};
use super::choices::Choice;
use super::diagnostic::{Diagnostic, Findings, Origin};
use super::keys::keys;
use super::near::did_you_mean;
use super::node::{Entry, Node, Table, Value};
use super::remedy;
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
    standing: Standing,
    asked: Vec<&'static str>,
    findings: &'a Findings,
}

/// Whether a table is there to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is.
    Given,
    /// Nothing is in its place.
    Absent,
    /// Something else is in its place, which has been reported.
    Wrong,
}

impl<'a> Reader<'a> {
    /// A reader of a document's root; `start` is where the document begins.
    pub const fn new(root: &'a Table, start: Origin, findings: &'a Findings) -> Self {
        let standing = Standing::Given;
        Self {
            table: root,
            path: String::new(),
            origin: start,
            standing,
            asked: Vec::new(),
            findings,
        }
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

    /// The value of a key, if it is there. Does not count as asking for it.
    #[must_use]
    pub fn peek(&self, key: &str) -> Option<&'a Value> {
        self.table.get(key).map(|entry| &entry.node.value)
    }

    /// The same reader; where its table is absent, what is missing in it is reported at `origin`.
    pub(super) fn else_at(mut self, origin: Option<Origin>) -> Self {
        if let Some(origin) = origin.filter(|_| self.standing == Standing::Absent) {
            self.origin = origin;
        }
        self
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
        if !there && self.standing != Standing::Wrong {
            let place = if self.path.is_empty() { "the file" } else { &self.path };
            let source = self.origin.source;
            let help = match self.standing {
                Standing::Absent => format!("add {}", source.section(&self.path, key, example)),
                _ => format!("add {}", source.assignment(key, example)),
            };
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
            let within = (*range.start() as f64)..=(*range.end() as f64);
            let meant = self.meant(entry, &within).map(f64::round);
            let example = meant.map_or_else(|| default.to_string(), |meant| meant.to_string());
            self.wrong_type(entry, "a whole number", &example);
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
        let meant = remedy::boolean(&entry.node.value).unwrap_or(default);
        self.wrong_type(entry, "true or false", if meant { "true" } else { "false" });
        default
    }

    /// Text.
    pub fn string(&mut self, key: &'static str, default: &str) -> String {
        let Some(entry) = self.entry(key, || Shape::Text) else { return default.to_owned() };
        if let Value::Text(text) = &entry.node.value {
            return text.clone();
        }
        let meant = remedy::text(&entry.node.value).filter(|_| default.is_empty());
        self.wrong_type(entry, "text", &meant.unwrap_or_else(|| format!("{default:?}")));
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
            let meant = remedy::texts(&entry.node.value);
            self.wrong_type(entry, "a list of texts", meant.as_deref().unwrap_or("[\"...\"]"));
            return Vec::new();
        };
        let mut values = Vec::new();
        for item in items {
            match &item.value {
                Value::Text(text) => values.push(text.clone()),
                value => {
                    let meant = remedy::text(value);
                    let help = meant.map_or_else(
                        || "write a text in double quotes here".to_owned(),
                        |meant| format!("write {meant}, in quotes"),
                    );
                    self.wrong_item(item, key, "a list of texts", &help);
                }
            }
        }
        values
    }

    /// A table within this one; where the key is absent, an empty one.
    pub fn table(&mut self, key: &'static str) -> Reader<'a> {
        self.optional_table(key).unwrap_or_else(|| self.no_table(key))
    }

    /// The same of a table that is short: `example` is how it could be written.
    pub fn short_table(&mut self, key: &'static str, example: &str) -> Reader<'a> {
        self.optional_short_table(key, example).unwrap_or_else(|| self.no_table(key))
    }

    fn no_table(&self, key: &'static str) -> Reader<'a> {
        let standing = if self.has(key) { Standing::Wrong } else { Standing::Absent };
        let (path, asked) = (self.path_of(key), Vec::new());
        let Self { origin, findings, .. } = *self;
        Reader { table: Table::EMPTY, path, origin, standing, asked, findings }
    }

    /// A table within this one, if it is there.
    pub fn optional_table(&mut self, key: &'static str) -> Option<Reader<'a>> {
        let entry = self.entry(key, || Shape::Table)?;
        let child = self.child(&entry.node, entry.key_origin, self.path_of(key));
        if child.is_none() {
            let Entry { node, .. } = entry;
            let message = format!("`{key}` must be a table, not {}", node.value.describe());
            let help = node.origin.source.table(&self.path_of(key));
            self.findings.push(Diagnostic::error(node.origin, message).help(help));
        }
        child
    }

    /// The same of a table that is short: `example` is how it could be written.
    pub fn optional_short_table(&mut self, key: &'static str, example: &str) -> Option<Reader<'a>> {
        let entry = self.entry(key, || Shape::Table)?;
        let child = self.child(&entry.node, entry.key_origin, self.path_of(key));
        if child.is_none() {
            self.wrong_type(entry, "a table", example);
        }
        child
    }

    /// A list of tables; empty where the key is absent.
    pub fn tables(&mut self, key: &'static str) -> Vec<Reader<'a>> {
        let Some(entry) = self.entry(key, || Shape::Tables) else { return Vec::new() };
        let Value::List(items) = &entry.node.value else {
            let message =
                format!("`{key}` must be a list of tables, not {}", entry.node.value.describe());
            let help = match (&entry.node.value, entry.node.origin.is_json()) {
                (Value::Table(_), false) => {
                    format!("begin each with two brackets: [[{}]]", self.path_of(key))
                }
                _ => format!("write {}", entry.node.origin.source.assignment(key, "[{ ... }]")),
            };
            self.findings.push(Diagnostic::error(entry.node.origin, message).help(help));
            return Vec::new();
        };
        let mut readers = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", self.path_of(key));
            match self.child(item, item.origin, path) {
                Some(reader) => readers.push(reader),
                None => {
                    let help = "write a table here, in braces: { key = value }";
                    self.wrong_item(item, key, "a list of tables", help);
                }
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
            let message = format!("unknown key `{}`{place}", entry.key);
            let help = self.known_instead(entry);
            self.findings.push(Diagnostic::error(entry.key_origin, message).help(help));
        }
    }

    /// What is known instead of a key: it under another section, or another one here.
    fn known_instead(&self, entry: &Entry) -> String {
        let elsewhere: Vec<String> = keys()
            .iter()
            .filter(|key| key.name == entry.key && key.section != self.path)
            .map(|key| match entry.key_origin.is_in_file() {
                true => format!("[{}]", key.section),
                false => key.path(),
            })
            .collect();
        let all = format!("the keys here are {}", self.asked.join(", "));
        match elsewhere.as_slice() {
            [] => did_you_mean(&entry.key, &self.asked, &all),
            places if entry.key_origin.is_in_file() => {
                format!("`{}` stands under {}", entry.key, places.join(" or "))
            }
            places => format!("write {}", places.join(" or ")),
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
        let (standing, asked) = (Standing::Given, Vec::new());
        Some(Reader { table, path, origin, standing, asked, findings: self.findings })
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
                let meant = self.meant(entry, &range).unwrap_or(example);
                self.wrong_type(entry, "a number", &meant.to_string());
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

    fn wrong_item(&self, item: &Node, key: &str, expected: &str, help: &str) {
        let message = format!("`{key}` must be {expected}; this is {}", item.value.describe());
        self.findings.push(Diagnostic::error(item.origin, message).help(help));
    }

    /// The number of the range that a value of the wrong type shows.
    fn meant(&self, entry: &Entry, range: &RangeInclusive<f64>) -> Option<f64> {
        let seconds = entry.key.ends_with("_sec");
        remedy::number(&entry.node.value, seconds).filter(|number| range.contains(number))
    }

    fn out_of_range<T: std::fmt::Display>(&self, entry: &Entry, low: T, high: T) {
        let Entry { key, node, .. } = entry;
        let message = format!("`{key}` must be between {low} and {high}");
        let range = format!("choose a number from {low} to {high}");
        let percent =
            remedy::number(&node.value, false).filter(|number| (2.0..=100.0).contains(number));
        let help = match percent {
            Some(percent) if key.ends_with("_share") => {
                let share = node.origin.source.assignment(key, &(percent / 100.0).to_string());
                format!("{range}: write {share} for {percent}%")
            }
            _ if key.ends_with("_sec") => format!("{range}: it counts seconds"),
            _ => range,
        };
        self.findings.push(Diagnostic::error(entry.node.origin, message).help(help));
    }
}

//! Several texts, one above the other: files, and `--set key=value`.

use super::diagnostic::{Diagnostic, Diagnostics, Findings, Origin, SourceId, Sources, Syntax};
use super::keys;
use super::node::{Entry, Node, Table, Value};
use super::reader::Reader;
use super::text::{parse_json, parse_toml, parse_toml_value};

/// The texts of a configuration, lowest first: what a later one says wins.
#[derive(Clone, Debug, Default)]
pub struct Layers(Vec<(Syntax, String, String)>);

impl Layers {
    /// No text: every key has its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the text of a TOML file.
    #[must_use]
    pub fn toml(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.0.push((Syntax::Toml, name.into(), text.into()));
        self
    }

    /// Adds the text of a JSON file.
    #[must_use]
    pub fn json(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.0.push((Syntax::Json, name.into(), text.into()));
        self
    }

    /// Adds one `key=value`. The key is a dotted path, or the unique end of one; the value is
    /// TOML, or else text without quotes.
    #[must_use]
    pub fn set(mut self, assignment: impl Into<String>) -> Self {
        self.0.push((Syntax::Set, "--set".to_owned(), assignment.into()));
        self
    }

    /// Reads and merges the texts.
    ///
    /// # Errors
    /// What is no TOML, no JSON, or no `key=value`.
    pub fn merge(&self) -> Result<Document, Diagnostics> {
        let mut sources = Sources::default();
        let findings = Findings::default();
        let mut root = Table::default();
        for (syntax, name, text) in &self.0 {
            let source = sources.add(*syntax, name, text);
            let layer = match syntax {
                Syntax::Toml => parse_toml(source, text, &findings),
                Syntax::Json => parse_json(source, text, &findings),
                Syntax::Set => parse_set(source, text, &root, &findings),
            };
            keys::drop_rivals(&mut root, &layer);
            if *syntax == Syntax::Set {
                keys::drop_setting(&mut root, &layer);
            }
            root.merge(layer);
        }
        if findings.has_errors() {
            let (Ok(diagnostics) | Err(diagnostics)) = findings.finish(sources);
            return Err(diagnostics);
        }
        Ok(Document { sources, root, findings })
    }
}

/// `a.b.c=value` as a table that holds nothing else.
fn parse_set(source: SourceId, text: &str, root: &Table, findings: &Findings) -> Table {
    let whole = Origin { source, start: 0, end: text.len() };
    let Some((key, value)) = text.split_once('=') else {
        let help = match text.trim().split_once([' ', ':']) {
            Some((key, value)) => format!("write --set {key}={}", value.trim()),
            None => "write --set key=value, such as --set max_head_off_policyness=4".to_owned(),
        };
        let message = format!("`{text}` is no assignment");
        findings.push(Diagnostic::error(whole, message).help(help));
        return Table::default();
    };
    let origin = Origin { source, start: 0, end: key.len() };
    if key.trim().is_empty() {
        let help = "write --set key=value, such as --set max_head_off_policyness=4";
        let message = "no key stands in front of the `=`";
        findings.push(Diagnostic::error(origin, message).help(help));
        return Table::default();
    }
    let path = match keys::resolve(key.trim(), root) {
        Ok(path) => path,
        Err(unknown) => {
            findings.push(Diagnostic::error(origin, unknown.to_string()).help(unknown.help()));
            return Table::default();
        }
    };
    let offset = text.len() - value.trim_start().len();
    let value = value.trim();
    let bare = Node {
        value: Value::Text(value.to_owned()),
        origin: Origin { source, start: offset, end: offset + value.len() },
    };
    let mut node = parse_toml_value(source, value, offset).unwrap_or(bare);
    for name in path.rsplit('.') {
        let mut table = Table::default();
        table.push(Entry { key: name.to_owned(), key_origin: origin, node });
        node = Node { value: Value::Table(table), origin };
    }
    match node.value {
        Value::Table(table) => table,
        _ => Table::default(),
    }
}

/// The merged texts, and what is found in them.
#[derive(Debug)]
pub struct Document {
    /// The texts.
    pub sources: Sources,
    /// The merged tree.
    pub root: Table,
    /// What was found so far.
    pub findings: Findings,
}

impl Document {
    /// Reads the tree from its root.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&self.root, self.sources.start(), &self.findings)
    }

    /// Ends the reading: the warnings, if there is nothing worse.
    ///
    /// # Errors
    /// Everything found, if there is an error among it.
    pub fn finish(self) -> Result<Diagnostics, Diagnostics> {
        self.findings.finish(self.sources)
    }
}

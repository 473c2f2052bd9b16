//! Several texts, one above the other: files, and `--set key=value`.

use crate::config::diagnostic::{Diagnostic, Diagnostics, Findings, Origin, SourceId, Sources};
use crate::config::keys;
use crate::config::node::{Entry, Node, Table, Value};
use crate::config::reader::Reader;
use crate::config::text::{parse_json, parse_toml, parse_toml_value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Toml,
    Json,
    Set,
}

/// The texts of a configuration, lowest first: what a later one says wins.
#[derive(Clone, Debug, Default)]
pub struct Layers(Vec<(Format, String, String)>);

impl Layers {
    /// No text: every key has its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the text of a TOML file.
    #[must_use]
    pub fn toml(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.0.push((Format::Toml, name.into(), text.into()));
        self
    }

    /// Adds the text of a JSON file.
    #[must_use]
    pub fn json(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.0.push((Format::Json, name.into(), text.into()));
        self
    }

    /// Adds one `key=value`. The key is a dotted path, or the unique end of one; the value is
    /// TOML, or else text without quotes.
    #[must_use]
    pub fn set(mut self, assignment: impl Into<String>) -> Self {
        self.0.push((Format::Set, "--set".to_owned(), assignment.into()));
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
        for (format, name, text) in &self.0 {
            let source = sources.add(name, text);
            let layer = match format {
                Format::Toml => parse_toml(source, text, &findings),
                Format::Json => parse_json(source, text, &findings),
                Format::Set => parse_set(source, text, &root, &findings),
            };
            keys::drop_rivals(&mut root, &layer);
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
        findings.push(
            Diagnostic::error(whole, format!("`{text}` is no assignment"))
                .help("write --set key=value, such as --set max_head_off_policyness=4"),
        );
        return Table::default();
    };
    let origin = Origin { source, start: 0, end: key.len() };
    let path = match keys::resolve(key.trim(), root) {
        Ok(path) => path,
        Err(unknown) => {
            findings.push(Diagnostic::error(origin, unknown.to_string()).help(unknown.help()));
            return Table::default();
        }
    };
    let offset = key.len() + 1;
    let bare = Node {
        value: Value::Text(value.trim().to_owned()),
        origin: Origin { source, start: offset, end: text.len() },
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
        Reader::new(&self.root, &self.findings)
    }

    /// Ends the reading: the warnings, if there is nothing worse.
    ///
    /// # Errors
    /// Everything found, if there is an error among it.
    pub fn finish(self) -> Result<Diagnostics, Diagnostics> {
        self.findings.finish(self.sources)
    }
}

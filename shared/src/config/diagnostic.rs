//! Where a text is wrong, why, and what to write instead.

use std::cell::RefCell;
use std::fmt;

use super::asked::{Asked, Notes};

/// One of the texts of a [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId {
    index: u32,
    syntax: Syntax,
}

/// How a source is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Syntax {
    /// TOML.
    Toml,
    /// JSON, comments allowed.
    Json,
    /// One `key=value`.
    Set,
}

impl SourceId {
    /// How one writes there that a key has a value.
    pub(super) fn assignment(self, key: &str, value: &str) -> String {
        match self.syntax {
            Syntax::Toml => format!("`{key} = {value}`"),
            Syntax::Json => format!("`\"{key}\": {value}`"),
            Syntax::Set => format!("`{key}={value}`"),
        }
    }

    /// How one writes there a section with a key.
    pub(super) fn section(self, path: &str, key: &str, value: &str) -> String {
        match self.syntax {
            Syntax::Toml => format!("a section [{path}] with {}", self.assignment(key, value)),
            Syntax::Json => format!("`\"{path}\": {{ \"{key}\": {value} }}`"),
            Syntax::Set => format!("`{path}.{key}={value}`"),
        }
    }

    /// What to do there where something else stands in the place of a table.
    pub(super) fn table(self, path: &str) -> String {
        let name = path.rsplit('.').next().unwrap_or(path);
        match self.syntax {
            Syntax::Toml => format!("begin a section [{path}], and write its keys below"),
            Syntax::Json => format!("write its keys in braces: `\"{name}\": {{ \"key\": value }}`"),
            Syntax::Set => format!("set a key of it: `{path}.KEY=VALUE`"),
        }
    }
}

/// Bytes of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Which text.
    pub source: SourceId,
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Origin {
    /// Whether it is in a JSON text.
    pub(super) const fn is_json(self) -> bool {
        matches!(self.source.syntax, Syntax::Json)
    }

    /// Whether it is in a file, and not in a `--set`.
    #[must_use]
    pub const fn is_in_file(self) -> bool {
        !matches!(self.source.syntax, Syntax::Set)
    }
}

/// A place as people count: both from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// The texts that a configuration was read from, with their names.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<(Syntax, String, String)>);

impl Sources {
    /// Adds a text under the name that messages give it.
    pub fn add(
        &mut self,
        syntax: Syntax,
        name: impl Into<String>,
        text: impl Into<String>,
    ) -> SourceId {
        self.0.push((syntax, name.into(), text.into()));
        // A run has a handful of sources.
        SourceId { index: self.0.len() as u32 - 1, syntax }
    }

    /// The start of the first source.
    #[must_use]
    pub fn start(&self) -> Origin {
        let syntax = self.0.first().map_or(Syntax::Toml, |(syntax, ..)| *syntax);
        let source = SourceId { index: 0, syntax };
        Origin { source, start: 0, end: 0 }
    }

    /// The start of the first JSON text, if there is one.
    #[must_use]
    pub fn json(&self) -> Option<Origin> {
        let index = self.0.iter().position(|(syntax, ..)| *syntax == Syntax::Json)?;
        // A run has a handful of sources.
        let source = SourceId { index: index as u32, syntax: Syntax::Json };
        Some(Origin { source, start: 0, end: 0 })
    }

    /// The name of a source.
    #[must_use]
    pub fn name(&self, source: SourceId) -> &str {
        self.0.get(source.index as usize).map_or("defaults", |(_, name, _)| name)
    }

    /// The whole text of a source.
    #[must_use]
    pub fn text(&self, source: SourceId) -> &str {
        self.0.get(source.index as usize).map_or("", |(_, _, text)| text)
    }

    /// The text at a place; empty where the place is empty.
    #[must_use]
    pub fn offending(&self, origin: Origin) -> &str {
        self.text(origin.source).get(origin.start..origin.end).unwrap_or("")
    }

    /// Line and column of the start of a place.
    #[must_use]
    pub fn position(&self, origin: Origin) -> Position {
        let text = self.text(origin.source);
        let before = &text[..floor_boundary(text, origin.start)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Position {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// Overwrites a place, byte for byte, so that every other place stays where it is.
    fn blank(&mut self, origin: Origin) {
        if let Some((_, _, text)) = self.0.get_mut(origin.source.index as usize)
            && text.get(origin.start..origin.end).is_some()
        {
            text.replace_range(origin.start..origin.end, &"*".repeat(origin.end - origin.start));
        }
    }

    /// The line that a place starts in, without its end.
    fn line(&self, origin: Origin) -> &str {
        let text = self.text(origin.source);
        let at = floor_boundary(text, origin.start);
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        text[start..end].trim_end_matches('\r')
    }
}

fn floor_boundary(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is run.
    Error,
    /// It runs, perhaps not as meant.
    Warning,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub origin: Origin,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// Other places that take part, each with a note.
    pub related: Vec<(Origin, String)>,
}

impl Diagnostic {
    /// An error at a place.
    #[must_use]
    pub fn error(origin: Origin, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { severity: Severity::Error, origin, message, help: None, related: Vec::new() }
    }

    /// A warning at a place.
    #[must_use]
    pub fn warning(origin: Origin, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(origin, message) }
    }

    /// Says what to write instead.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Names another place.
    #[must_use]
    pub fn related(mut self, origin: Origin, note: impl Into<String>) -> Self {
        self.related.push((origin, note.into()));
        self
    }
}

/// Collects findings while a text is read, so that a reader never stops at the first.
#[derive(Debug, Default)]
pub struct Findings {
    items: RefCell<Vec<Diagnostic>>,
    secrets: RefCell<Vec<Origin>>,
    notes: Notes,
}

impl Findings {
    /// From now on, what readers ask for is written down.
    pub fn note_asked(&self) {
        self.notes.begin();
    }

    /// What they have asked for since.
    #[must_use]
    pub fn take_asked(&self) -> Vec<Asked> {
        self.notes.take()
    }

    pub(super) const fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Adds one.
    pub fn push(&self, diagnostic: Diagnostic) {
        self.items.borrow_mut().push(diagnostic);
    }

    /// What stands at this place may be a secret: no message will show it.
    pub fn hide(&self, origin: Origin) {
        self.secrets.borrow_mut().push(origin);
    }

    /// Whether there is an error among them.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.items.borrow().iter().any(|item| item.severity == Severity::Error)
    }

    /// Ends the collection: the warnings, if there is nothing worse.
    ///
    /// # Errors
    /// Everything found, if there is an error among it.
    pub fn finish(self, mut sources: Sources) -> Result<Diagnostics, Diagnostics> {
        let failed = self.has_errors();
        self.secrets.into_inner().into_iter().for_each(|origin| sources.blank(origin));
        let mut items = self.items.into_inner();
        items.sort_by_key(|item| (item.origin.source, item.origin.start));
        let diagnostics = Diagnostics { sources, items };
        if failed { Err(diagnostics) } else { Ok(diagnostics) }
    }
}

/// Findings with the texts that they are about. Prints each as
/// `file:line:column: message`, the line with its offending text underlined, and `help: ...`.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// The texts.
    pub sources: Sources,
    /// The findings, in the order of the texts.
    pub items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The findings of one severity.
    pub fn of(&self, severity: Severity) -> impl Iterator<Item = &Diagnostic> {
        self.items.iter().filter(move |item| item.severity == severity)
    }

    fn place(&self, f: &mut fmt::Formatter<'_>, origin: Origin) -> fmt::Result {
        let Position { line, column } = self.sources.position(origin);
        write!(f, "{}:{line}:{column}: ", self.sources.name(origin.source))
    }

    fn underlined(&self, f: &mut fmt::Formatter<'_>, origin: Origin) -> fmt::Result {
        let line = self.sources.line(origin);
        if line.trim().is_empty() {
            return Ok(());
        }
        let column = self.sources.position(origin).column - 1;
        let width = self.sources.offending(origin).lines().next().unwrap_or("").chars().count();
        // A tab stays a tab, so that the marks stand below what they mark.
        let indent: String =
            line.chars().take(column).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        writeln!(f, "    {line}")?;
        writeln!(f, "    {indent}{}", "^".repeat(width.max(1)))
    }

    fn item(&self, f: &mut fmt::Formatter<'_>, item: &Diagnostic) -> fmt::Result {
        self.place(f, item.origin)?;
        if item.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        writeln!(f, "{}", item.message)?;
        self.underlined(f, item.origin)?;
        for (origin, note) in &item.related {
            self.place(f, *origin)?;
            writeln!(f, "{note}")?;
            self.underlined(f, *origin)?;
        }
        match &item.help {
            Some(help) => writeln!(f, "help: {help}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items.iter().try_for_each(|item| self.item(f, item))
    }
}

impl std::error::Error for Diagnostics {}

//! Changing a configuration in place: what is not changed stays as it is, byte for byte.
//!
//! A [`Draft`] is a TOML text with the places of its keys. A change replaces the bytes of one value,
//! or adds or takes away one line; comments, order, spaces and line ends are never written again.
//! After each change the text is read again, so that a change that would break it is not made.

mod adopt;
mod change;
mod guarded;
mod line;

use std::fmt;

use super::diagnostic::Diagnostics;
use super::layers::{Document, Layers};
use super::node::{Entry, Table, Value};
use super::parse::parse_sections;
use super::sections::Config;

pub use change::{Change, changes};

use line::{end_of_line, line_break, start_of_line};

/// A change that cannot be made in place: the text writes the table in a way that has no room for
/// the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPlace {
    /// The key's path.
    pub key: String,
}

impl fmt::Display for NoPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` cannot be written without rewriting what is there", self.key)
    }
}

impl std::error::Error for NoPlace {}

/// A TOML text that is changed in place.
#[derive(Clone, Debug)]
pub struct Draft {
    name: String,
    text: String,
    root: Table,
}

impl Draft {
    /// A draft of a text; `name` is what messages call it.
    ///
    /// # Errors
    /// It is no TOML.
    pub fn new(name: &str, text: &str) -> Result<Self, Diagnostics> {
        let Document { root, .. } = Layers::new().toml(name, text).merge()?;
        Ok(Self { name: name.to_owned(), text: text.to_owned(), root })
    }

    /// The text as it is now.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The scheduling sections as they are now, whatever rules between keys they break.
    #[must_use]
    pub fn config(&self) -> Config {
        match Layers::new().toml(&self.name, &self.text).merge() {
            Ok(document) => parse_sections(&mut document.reader()),
            // The text is read after each change.
            Err(_) => Config::default(),
        }
    }

    /// The entry at a path.
    #[must_use]
    pub fn find(&self, path: &[&str]) -> Option<&Entry> {
        let (last, tables) = path.split_last()?;
        self.table(tables)?.get(last)
    }

    /// Gives a key a value, which is TOML, as its name is: where it stands, or else after the last key of its table;
    /// a table that there is none of is added behind its parent, or at the end.
    ///
    /// # Errors
    /// There is no place for it; the text is as it was.
    pub fn set(&mut self, path: &[&str], value: &str) -> Result<(), NoPlace> {
        let there = self.find(path).map(|entry| (entry.node.origin.start, entry.node.origin.end));
        match there {
            Some((start, end)) => self.replace(path, start, end, value),
            None => self.insert(path, value),
        }
    }

    /// Takes the line of a key away, if it is there; a comment behind it stays.
    ///
    /// # Errors
    /// It has no line of its own; the text is as it was.
    pub fn remove(&mut self, path: &[&str]) -> Result<(), NoPlace> {
        let Some(entry) = self.find(path) else { return Ok(()) };
        let (key, value) = (entry.key_origin.start, entry.node.origin.end);
        let start = start_of_line(&self.text, key);
        let prefix = &self.text[start..key];
        if !line::is_key_path(prefix) {
            return Err(no_place(path));
        }
        let end = end_of_line(&self.text, value);
        match self.text[value..end].find('#') {
            Some(comment) => {
                let indent = prefix.len() - prefix.trim_start().len();
                self.replace(path, start + indent, value + comment, "")
            }
            None => self.replace(path, start, end, ""),
        }
    }

    /// Adds lines at the end, behind an empty one; they end as the lines of the text do.
    ///
    /// # Errors
    /// They do not fit to what is there; the text is as it was.
    pub fn append(&mut self, lines: &str) -> Result<(), NoPlace> {
        let end = self.text.len();
        let text = self.block(end, lines);
        self.replace(&[lines.lines().next().unwrap_or("")], end, end, &text)
    }

    fn table(&self, path: &[&str]) -> Option<&Table> {
        path.iter().try_fold(&self.root, |table, name| table.get(name)?.node.as_table())
    }

    /// Whether the table at a path is written in braces.
    #[must_use]
    pub fn is_inline(&self, path: &[&str]) -> bool {
        self.find(path).is_some_and(|entry| self.written(entry).starts_with('{'))
    }

    /// How the value of an entry is written; of a table with a header: the header.
    fn written(&self, entry: &Entry) -> &str {
        self.text.get(entry.node.origin.start..entry.node.origin.end).unwrap_or("")
    }

    fn insert(&mut self, path: &[&str], value: &str) -> Result<(), NoPlace> {
        let Some((last, tables)) = path.split_last() else { return Err(no_place(path)) };
        let assignment = format!("{last} = {value}");
        if let Some(table) = self.find(tables) {
            let (start, end) = (table.node.origin.start, table.node.origin.end);
            if self.is_inline(tables) {
                return self.insert_in_braces(path, tables, (start, end), &assignment);
            }
            let has_header = self.written(table).starts_with('[');
            let below = || (!has_header).then(|| self.after_dotted(tables)).flatten();
            if let Some((at, prefix)) = self.after_siblings(tables).or_else(below) {
                return self.insert_line(path, at, &format!("{prefix}{assignment}"));
            }
            if has_header {
                let indent = start_of_line(&self.text, start);
                let line = format!("{}{assignment}", &self.text[indent..start]);
                return self.insert_line(path, end_of_line(&self.text, end), &line);
            }
        } else if let Some((_, above)) = tables.split_last()
            && (1..=above.len()).any(|depth| self.is_inline(&above[..depth]))
        {
            return self.insert(tables, &format!("{{ {assignment} }}"));
        }
        if tables.is_empty() {
            return Err(no_place(path));
        }
        let lines = format!("[{}]\n{assignment}\n", tables.join("."));
        let at = self.behind_parent(tables).unwrap_or(self.text.len());
        let text = self.block(at, &lines);
        self.replace(path, at, at, &text)
    }

    /// Lines with an empty one before them, to be put at the start of a line or at the end of the
    /// text.
    fn block(&self, at: usize, lines: &str) -> String {
        let newline = line_break(&self.text);
        let before = &self.text[..at];
        let unfinished = !before.is_empty() && !before.ends_with('\n');
        let gap = if before.is_empty() { "" } else { newline };
        let ends = if unfinished { newline } else { "" };
        format!("{ends}{gap}{}", lines.replace('\n', newline))
    }

    fn insert_in_braces(
        &mut self,
        path: &[&str],
        tables: &[&str],
        (start, end): (usize, usize),
        assignment: &str,
    ) -> Result<(), NoPlace> {
        let last = self
            .table(tables)
            .and_then(|table| table.entries().map(|entry| self.end_of(entry)).max());
        match last {
            Some(at) => self.replace(path, at, at, &format!(", {assignment}")),
            None => self.replace(path, start, end, &format!("{{ {assignment} }}")),
        }
    }

    /// Where the line after the last key of a table begins, and what its keys have before their
    /// names: spaces, or the names of tables with dots.
    fn after_siblings(&self, tables: &[&str]) -> Option<(usize, String)> {
        let siblings = self.table(tables)?.entries().filter(|entry| match &entry.node.value {
            Value::Table(_) => self.written(entry).starts_with('{'),
            Value::List(_) => !self.written(entry).starts_with("[["),
            _ => true,
        });
        let last = siblings.max_by_key(|entry| entry.node.origin.end)?;
        let key = last.key_origin.start;
        let prefix = &self.text[start_of_line(&self.text, key)..key];
        line::is_key_path(prefix)
            .then(|| (end_of_line(&self.text, last.node.origin.end), prefix.to_owned()))
    }

    /// The same for a table that only dotted keys of tables within it speak of.
    fn after_dotted(&self, tables: &[&str]) -> Option<(usize, String)> {
        let below = self.table(tables)?.entries().filter_map(|entry| {
            let path = [tables, &[entry.key.as_str()]].concat();
            let (at, prefix) = self.after_siblings(&path).or_else(|| self.after_dotted(&path))?;
            // Without the name of the table within.
            let names = prefix.trim_end().strip_suffix('.')?;
            Some((at, names[..=names.rfind('.')?].to_owned()))
        });
        below.max_by_key(|(at, _)| *at)
    }

    /// Where the line after everything of the nearest table above begins, if that has a header.
    fn behind_parent(&self, tables: &[&str]) -> Option<usize> {
        let (_, above) = tables.split_last()?;
        let parent = self.find(above)?;
        let has_header = self.written(parent).starts_with('[');
        has_header.then(|| end_of_line(&self.text, self.end_of(parent)))
    }

    /// The end of the last thing that an entry holds.
    fn end_of(&self, entry: &Entry) -> usize {
        let own = entry.node.origin.end;
        let below = entry.node.as_table().into_iter().flat_map(Table::entries);
        below.map(|entry| self.end_of(entry)).fold(own, usize::max)
    }

    fn insert_line(&mut self, path: &[&str], at: usize, line: &str) -> Result<(), NoPlace> {
        let newline = line_break(&self.text);
        let unfinished = !self.text[..at].ends_with('\n');
        let text = if unfinished { format!("{newline}{line}") } else { format!("{line}{newline}") };
        self.replace(path, at, at, &text)
    }

    fn replace(
        &mut self,
        path: &[&str],
        start: usize,
        end: usize,
        by: &str,
    ) -> Result<(), NoPlace> {
        let mut text = self.text.clone();
        if text.get(start..end).is_none() {
            return Err(no_place(path));
        }
        text.replace_range(start..end, by);
        *self = Self::new(&self.name, &text).map_err(|_| no_place(path))?;
        Ok(())
    }
}

fn no_place(path: &[&str]) -> NoPlace {
    NoPlace { key: path.join(".") }
}

#[cfg(test)]
mod tests;

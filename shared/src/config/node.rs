//! A tree of values that remembers where each was written.

use super::diagnostic::Origin;

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it was written; of a table with a header: the header.
    pub origin: Origin,
}

/// What a file can say.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number; one beyond the range is the nearest end of it.
    Integer(i128),
    /// A number with a decimal point or an exponent; also `nan` and `inf`.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// Something that no key takes, by its name: a date, `null`.
    Other(&'static str),
    /// A list.
    List(Vec<Node>),
    /// Named values.
    Table(Table),
}

impl Value {
    /// What it is, in words.
    #[must_use]
    pub const fn describe(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a decimal number",
            Self::Boolean(_) => "true or false",
            Self::Other(name) => name,
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// A named value of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub key: String,
    /// Where the name was written.
    pub key_origin: Origin,
    /// Its value.
    pub node: Node,
}

/// Named values, in the order in which they were first written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(Vec<Entry>);

impl Table {
    /// A table without values.
    pub const EMPTY: &'static Table = &Table(Vec::new());

    /// The entry of a name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    /// Every entry, in order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    /// Adds an entry. The name must be new: look with [`get`](Self::get) first.
    pub fn push(&mut self, entry: Entry) {
        self.0.push(entry);
    }

    /// The entry at a dotted path, if each of its names is there.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&Entry> {
        match path.split_once('.') {
            None => self.get(path),
            Some((first, rest)) => self.get(first)?.node.as_table()?.find(rest),
        }
    }

    /// Takes away the entry at a dotted path.
    pub fn remove(&mut self, path: &str) {
        match path.split_once('.') {
            None => self.0.retain(|entry| entry.key != path),
            Some((first, rest)) => {
                if let Some(Value::Table(table)) = self.get_mut(first).map(|e| &mut e.node.value) {
                    table.remove(rest);
                }
            }
        }
    }

    /// Lays `over` on top: its values win. Tables merge name by name, except where both have a
    /// `kind` and the kinds differ: there the upper one replaces the lower one.
    pub fn merge(&mut self, over: Table) {
        for entry in over.0 {
            let Some(under) = self.get_mut(&entry.key) else {
                self.0.push(entry);
                continue;
            };
            match (&mut under.node.value, entry.node.value) {
                (Value::Table(lower), Value::Table(upper)) if !lower.kind_differs(&upper) => {
                    lower.merge(upper);
                }
                (lower, upper) => {
                    *lower = upper;
                    under.node.origin = entry.node.origin;
                    under.key_origin = entry.key_origin;
                }
            }
        }
    }

    /// The dotted paths of all entries, tables included, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        for entry in &self.0 {
            let path = format!("{prefix}{}", entry.key);
            if let Some(table) = entry.node.as_table() {
                table.collect_paths(&format!("{path}."), paths);
            }
            paths.push(path);
        }
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.key == key)
    }

    fn kind_differs(&self, other: &Table) -> bool {
        match (self.get("kind"), other.get("kind")) {
            (Some(mine), Some(theirs)) => mine.node.value != theirs.node.value,
            _ => false,
        }
    }
}

impl Node {
    /// Its table, if it is one.
    #[must_use]
    pub const fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }
}

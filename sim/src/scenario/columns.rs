//! Columns of CSV files that a scenario names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use headway_shared::config::{
    Diagnostic, Findings, Origin, Reader, SourceId, Sources, Syntax, nearest,
};

use crate::rates::{RateTable, RatesError};

/// Reads columns, and reports what is wrong with them at their own file and line.
pub(super) struct Columns<'a> {
    /// The folder that the scenario's paths start from.
    base: &'a Path,
    sources: &'a mut Sources,
    findings: &'a Findings,
    read: Vec<(PathBuf, Option<SourceId>)>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(base: &'a Path, sources: &'a mut Sources, findings: &'a Findings) -> Self {
        Self { base, sources, findings, read: Vec::new() }
    }

    /// The numbers of the `column` of the `file` that a table names; `None` where something is
    /// wrong, which is then reported.
    pub(super) fn of(&mut self, table: &mut Reader<'_>) -> Option<Arc<[f64]>> {
        let named = table.require("file", "\"trace.csv\"") & table.require("column", "\"tokens\"");
        let (file, column) = (table.string("file", ""), table.string("column", ""));
        if !named || file.is_empty() {
            return None;
        }
        let source = self.source(table, "file", &file)?;
        self.parse(table, source, &column)
    }

    /// The table of rates in the `file` that `key` names; `None` where something is wrong, which is
    /// then reported.
    pub(super) fn rates(&mut self, table: &Reader<'_>, key: &str, file: &str) -> Option<RateTable> {
        let source = self.source(table, key, file)?;
        let report = |error: RatesError| {
            let origin = Origin { source, start: error.start, end: error.end };
            self.findings.push(Diagnostic::error(origin, error.message).help(error.help));
        };
        RateTable::read(self.sources.text(source)).map_err(report).ok()
    }

    fn source(&mut self, table: &Reader<'_>, key: &str, file: &str) -> Option<SourceId> {
        let path = self.base.join(file);
        if let Some((_, source)) = self.read.iter().find(|(known, _)| *known == path) {
            return *source;
        }
        let source = match std::fs::read_to_string(&path) {
            // The syntax only spells assignments in a help, which rows of a CSV never get.
            Ok(text) => Some(self.sources.add(Syntax::Toml, path.display().to_string(), text)),
            Err(error) => {
                table.error(
                    key,
                    format!("cannot read {}: {error}", path.display()),
                    "name a CSV file; a path starts from the scenario's folder",
                );
                None
            }
        };
        self.read.push((path, source));
        source
    }

    fn parse(&self, table: &Reader<'_>, source: SourceId, column: &str) -> Option<Arc<[f64]>> {
        let text = self.sources.text(source);
        let at = |start: usize, end: usize| Origin { source, start, end };
        let mut rows = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
        let header = match rows.headers() {
            Ok(header) if !header.is_empty() => header.clone(),
            _ => {
                self.findings.push(
                    Diagnostic::error(at(0, 0), "the file is empty")
                        .help(format!("write a header with `{column}` and at least one row")),
                );
                return None;
            }
        };
        let Some(index) = header.iter().position(|name| name.trim() == column) else {
            let names: Vec<&str> = header.iter().map(str::trim).collect();
            table.error(
                "column",
                format!("there is no column `{column}` in {}", self.sources.name(source)),
                match nearest(column, &names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("its columns are {}", names.join(", ")),
                },
            );
            return None;
        };
        let mut values = Vec::new();
        let mut row = csv::StringRecord::new();
        loop {
            // A position is a byte in a text that is in memory.
            let start = rows.position().byte() as usize;
            match rows.read_record(&mut row) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.findings.push(
                        Diagnostic::error(at(start, start), format!("no CSV: {error}"))
                            .help("write one row per line, with commas between its values"),
                    );
                    return None;
                }
            }
            let start = row.position().map_or(start, |position| position.byte() as usize);
            // The reader has skipped blank lines, but its position is the one before them.
            let rest = text.get(start..).unwrap_or("");
            let start = text.len() - rest.trim_start_matches(['\r', '\n']).len();
            let cell = row.get(index).unwrap_or("").trim();
            match cell.parse::<f64>() {
                Ok(value) if (0.0..=1e15).contains(&value) => values.push(value),
                _ => {
                    let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
                    self.findings.push(
                        Diagnostic::error(at(start, end), format!("`{cell}` is no `{column}`"))
                            .help("write a number from 0 to 1e15, or take the row out"),
                    );
                    return None;
                }
            }
        }
        if values.is_empty() {
            self.findings.push(
                Diagnostic::error(at(0, text.len().min(header.as_slice().len())), "no rows")
                    .help("add at least one row below the header"),
            );
            return None;
        }
        Some(values.into())
    }
}

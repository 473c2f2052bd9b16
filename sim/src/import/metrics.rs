//! Logs of metrics of other trainers, as a table with one row per train step.

mod log;
mod systems;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};

use super::{ImportError, Problem};
use crate::report::number;
use log::Reader;
pub use systems::{How, MetricColumn, System};

/// Gathers what the logs of one run say, file by file: what a later line says of a step and a
/// metric counts.
#[derive(Debug)]
pub struct MetricsLog {
    system: System,
    /// By step, the metrics that are known.
    steps: BTreeMap<u64, BTreeMap<String, f64>>,
    /// Metrics that are in no column.
    unknown: BTreeSet<String>,
}

/// What became of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsReport {
    /// Rows of the table.
    pub rows: u64,
    /// Its columns, but for `step`.
    pub columns: Vec<&'static str>,
    /// Steps that lack one of the columns, and so have no row.
    pub short: u64,
    /// Columns that fewer than half of the steps have, and how many have them.
    pub rare: Vec<(&'static str, u64)>,
    /// Metrics that are in no column, by name.
    pub unknown: Vec<String>,
}

impl MetricsLog {
    /// Of a run of this system.
    #[must_use]
    pub const fn new(system: System) -> Self {
        Self { system, steps: BTreeMap::new(), unknown: BTreeSet::new() }
    }

    /// Reads a log: JSON lines, CSV, or what the trainer printed. `name` is the file's, without
    /// folder: TensorBoard's CSV files say only there which metric they hold.
    ///
    /// # Errors
    /// The log cannot be read or is wrong, with line and remedy; or nothing in it is known.
    pub fn read(&mut self, reader: impl BufRead, name: &str) -> Result<(), ImportError> {
        let mut reader = Reader::new(self.system, reader, name);
        let mut lines = 0;
        while let Some((step, values)) = reader.next()? {
            lines = reader.line();
            let known = self.steps.entry(step).or_default();
            for (name, value) in values {
                if self.system.knows(&name) {
                    known.insert(name, value);
                } else {
                    self.unknown.insert(name);
                }
            }
        }
        if lines == 0 {
            let problem = Problem::NoMetrics { system: self.system.word() };
            return Err(ImportError::Wrong { line: 1, column: 1, problem });
        }
        Ok(())
    }

    /// Writes the table: `step`, and the columns that are `wanted`, or else those that half of the
    /// steps have. A step that lacks one of them has no row.
    ///
    /// # Errors
    /// Nothing is left for the table, or it cannot be written.
    pub fn write(
        &self,
        wanted: &[&'static str],
        mut writer: impl Write,
    ) -> Result<MetricsReport, ImportError> {
        let columns = self.system.columns();
        let rows: Vec<(u64, Vec<Option<f64>>)> = self
            .steps
            .iter()
            .map(|(&step, known)| (step, columns.iter().map(|column| column.of(known)).collect()))
            .filter(|(_, row): &(u64, Vec<Option<f64>>)| row.iter().any(Option::is_some))
            .collect();
        let count = |at: usize| rows.iter().filter(|(_, row)| row[at].is_some()).count();
        let mut report =
            MetricsReport { unknown: self.unknown.iter().cloned().collect(), ..Default::default() };
        let mut taken = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            let has = count(at);
            let often = has > 0 && 2 * has >= rows.len();
            if wanted.contains(&column.name) || (wanted.is_empty() && often) {
                taken.push(at);
                report.columns.push(column.name);
            } else if has > 0 && !often {
                report.rare.push((column.name, has as u64));
            }
        }
        writeln!(writer, "step,{}", report.columns.join(",")).map_err(ImportError::Write)?;
        for (step, row) in &rows {
            let cells: Option<Vec<String>> =
                taken.iter().map(|&at| Some(columns[at].text(row[at]?))).collect();
            match cells {
                Some(cells) if !cells.is_empty() => {
                    writeln!(writer, "{step},{}", cells.join(",")).map_err(ImportError::Write)?;
                    report.rows += 1;
                }
                _ => report.short += 1,
            }
        }
        if report.rows == 0 {
            let problem = Problem::NoSteps { columns: report.columns.join(",") };
            return Err(ImportError::Wrong { line: 1, column: 1, problem });
        }
        writer.flush().map_err(ImportError::Write)?;
        Ok(report)
    }
}

impl MetricColumn {
    /// The column's value in a step with these metrics.
    fn of(&self, known: &BTreeMap<String, f64>) -> Option<f64> {
        let find = |name: &str| {
            let named = |known: &String| systems::is(name, known);
            known.iter().find(|(name, _)| named(name)).map(|(_, &value)| value)
        };
        match self.how {
            How::First(names) => names.iter().find_map(|name| find(name)),
            // In the order of the table: sums of floats depend on it.
            How::Sum { needs, with } => {
                let rest = with.iter().filter_map(|name| find(name));
                find(needs).map(|needed| rest.fold(needed, |sum, value| sum + value))
            }
            How::Difference(all, part) => Some(find(all)? - find(part)?),
        }
    }

    fn text(&self, value: f64) -> String {
        // What is counted has to be whole: the mean of a batch is not.
        number::text(if self.whole { libm::round(value) } else { value })
    }
}

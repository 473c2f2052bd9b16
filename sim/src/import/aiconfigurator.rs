//! What `aiconfigurator cli estimate` prints, as a table of rates.
//!
//! An estimate is a box of `Key: value` lines about one batch size. In the modes `static` and
//! `static_gen` its time per output token (TPOT) is that of a batch which does nothing but decode,
//! and its time to the first token (TTFT) that of reading the prompts of the whole batch: what a
//! replica of the world needs. `agg` mixes the two, and the files that `cli default` saves are of
//! that kind; they are refused.

mod estimate;

use std::io::BufRead;

use super::lines::{Line, Lines};
use super::{ImportError, Problem};
use crate::rates::{COLUMNS, RateTable};
use crate::report::number;
use estimate::{Block, Estimate, Subject};

/// What the tool's own log lines hold, wherever they stand between the estimates.
const LOG: &str = "[aiconfigurator]";
/// The beginning of the header of `pareto.csv` and `best_config_topn.csv`.
const SAVED: &str = "model,isl,osl,";

/// Gathers the estimates of one model, GPU, engine, parallelism and length over batch sizes, from
/// one text or several.
#[derive(Debug, Default)]
pub struct Estimates {
    subject: Option<Subject>,
    rows: Vec<Row>,
    /// The tool's version, if its log is in a text.
    version: Option<String>,
}

#[derive(Debug)]
struct Row {
    estimate: Estimate,
    line: u64,
    fits: bool,
}

/// A table of rates out of estimates.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedRates {
    /// The table, a CSV file with the [`COLUMNS`] of rates.
    pub csv: String,
    /// The same, read.
    pub table: RateTable,
    /// Batch sizes that the tool says do not fit into the GPUs' memory, and that are left out.
    pub left_out: Vec<u32>,
}

impl Estimates {
    /// Takes the estimates of a text. What stands between them is skipped; the tool's warnings that
    /// a batch does not fit count for the estimate that they are about.
    ///
    /// # Errors
    /// The text cannot be read, holds no estimate, or one that is of another kind than is wanted,
    /// about something else than the others, or twice about the same batch.
    pub fn read(&mut self, reader: impl BufRead) -> Result<(), ImportError> {
        let mut lines = Lines::new(reader);
        let before = self.rows.len();
        // A warning comes before its estimate where the tool's output went through a buffer.
        let mut announced = Vec::new();
        while let Some(line) = lines.next()? {
            if line.text.contains(LOG) {
                self.log(line.text, before, &mut announced);
            } else if estimate::is_title(line.text) {
                let (number, block) = (line.number, Block::begin(&line)?);
                let (subject, estimate) = block.read(&mut lines)?;
                self.same_subject(number, &subject)?;
                let fits = !take(&mut announced, estimate.batch_of_a_rank);
                self.rows.push(Row { estimate, line: number, fits });
            } else if line.number == 1 && line.text.starts_with(SAVED) {
                return Err(line.wrong(line.text, Problem::Saved));
            }
        }
        if self.rows.len() == before {
            return Err(ImportError::Wrong { line: 1, column: 1, problem: Problem::NoEstimate });
        }
        self.once_each(before)
    }

    /// The table; `source` says where its numbers come from, else the tool's name and version do.
    ///
    /// # Errors
    /// No batch fits into the memory of the GPUs.
    pub fn finish(mut self, source: Option<&str>) -> Result<ImportedRates, ImportError> {
        self.rows.sort_by_key(|row| row.estimate.batch);
        let fitting: Vec<&Estimate> =
            self.rows.iter().filter(|row| row.fits).map(|row| &row.estimate).collect();
        let (Some(subject), [_, ..]) = (&self.subject, fitting.as_slice()) else {
            return Err(ImportError::NothingFits);
        };
        let tool = match &self.version {
            Some(version) => format!("aiconfigurator {version}"),
            None => "aiconfigurator".to_owned(),
        };
        let csv = write(subject, &fitting, source.unwrap_or(&tool)).map_err(ImportError::Write)?;
        let table = RateTable::read(&csv)
            .map_err(|error| ImportError::Write(std::io::Error::other(error)))?;
        let mut left_out: Vec<u32> = self.rows.iter().map(|row| row.estimate.batch).collect();
        left_out.retain(|&batch| fitting.iter().all(|estimate| estimate.batch != batch));
        left_out.dedup();
        Ok(ImportedRates { csv, table, left_out })
    }

    /// Notes the tool's version, and which batch does not fit.
    fn log(&mut self, text: &str, before: usize, announced: &mut Vec<u32>) {
        if let Some((_, version)) = text.split_once("Loading AIConfigurator version: ") {
            self.version = Some(version.trim().to_owned());
        }
        let Some((_, about)) = text.split_once("OOM: ") else { return };
        let batch = about.split_once("batch_size=").map(|(_, rest)| {
            let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse::<u32>()
        });
        let Some(Ok(batch)) = batch else { return };
        match self.rows[before..].last_mut() {
            Some(row) if row.fits && row.estimate.batch_of_a_rank == batch => row.fits = false,
            _ => announced.push(batch),
        }
    }

    fn same_subject(&mut self, line: u64, subject: &Subject) -> Result<(), ImportError> {
        let first = self.subject.get_or_insert_with(|| subject.clone());
        match first.difference(subject) {
            None => Ok(()),
            Some((what, expected, found)) => {
                let problem = Problem::OtherEstimate { what, expected, found };
                Err(ImportError::Wrong { line, column: 1, problem })
            }
        }
    }

    /// No batch that fits is there twice; `before`: rows that are known to be so.
    fn once_each(&self, before: usize) -> Result<(), ImportError> {
        for (index, row) in self.rows.iter().enumerate().skip(before).filter(|(_, row)| row.fits) {
            let batch = row.estimate.batch;
            let twin = |other: &Row| other.fits && other.estimate.batch == batch;
            if self.rows[..index].iter().any(twin) {
                let problem = Problem::Twice { batch };
                return Err(ImportError::Wrong { line: row.line, column: 1, problem });
            }
        }
        Ok(())
    }
}

/// Takes a batch out of the list, if it is there.
fn take(batches: &mut Vec<u32>, batch: u32) -> bool {
    let place = batches.iter().position(|&announced| announced == batch);
    place.map(|place| batches.remove(place)).is_some()
}

fn write(subject: &Subject, rows: &[&Estimate], source: &str) -> std::io::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for row in rows {
        let batch = f64::from(row.batch);
        let sec = row.ms_per_token / 1000.0;
        let prefill = row.prefill_ms.map(|ms| batch * f64::from(subject.isl) / (ms / 1000.0));
        writer.write_record([
            subject.model.as_str(),
            &subject.system,
            &subject.engine,
            &subject.engine_version,
            &subject.gpus.to_string(),
            &subject.isl.to_string(),
            &subject.osl.to_string(),
            &row.batch.to_string(),
            // The tool prints thousandths of a millisecond.
            &format!("{sec:.6}"),
            &number::text(batch / sec),
            &number::cell(prefill),
            source,
        ])?;
    }
    let bytes = writer.into_inner().map_err(|error| std::io::Error::other(error.to_string()))?;
    String::from_utf8(bytes).map_err(std::io::Error::other)
}

//! The files of a validation: writing them, and reading them back.
//!
//! Plots and page are drawn from what the files hold and from nothing else, so drawn again they are the
//! same.

use std::io;
use std::path::Path;

use super::document::ValidationDocument;
use super::figures::FIGURES;
use super::interval::Prediction;
use super::results::{Compared, Row, Score, Validation, sum};
use super::tolerance::Tolerance;
use crate::report::csv::Csv;
use crate::report::number;
use crate::report::results::ReadError;
use crate::report::stored;

/// The columns after those of the keys.
const COLUMNS: [&str; 11] = [
    "metric",
    "unit",
    "measured",
    "predicted",
    "low",
    "high",
    "inside",
    "tolerance",
    "within",
    "error",
    "relative_error",
];

impl Validation {
    /// The name of the table.
    pub const TABLE: &str = "validation.csv";
    /// The name of the file with all else.
    pub const META: &str = "validation.json";

    /// The files, by name.
    ///
    /// # Errors
    /// None that is known: they are what the writers report.
    pub fn files(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        stored::files([(Self::TABLE, &self.csv())], (Self::META, &self.document()))
    }

    /// Reads the files of a folder; `None`: it holds no validation.
    ///
    /// # Errors
    /// A file of it is missing or malformed.
    pub fn read(folder: &Path) -> Result<Option<Self>, ReadError> {
        let Some(document) = stored::meta(folder, Self::META)? else { return Ok(None) };
        let table = stored::table(folder, Self::TABLE)?;
        let malformed = |message| ReadError::Malformed { path: folder.join(Self::TABLE), message };
        Self::of_files(&table, document).map(Some).map_err(malformed)
    }

    /// What its files hold of it: numbers as they are written.
    ///
    /// # Errors
    /// None that is known: it is what the reader reports.
    pub fn as_stored(&self) -> Result<Self, String> {
        Self::of_files(&self.csv(), self.document())
    }

    /// A row for each run and metric: what differs about the run, measured, predicted, and the
    /// verdicts.
    #[must_use]
    pub fn csv(&self) -> Csv {
        let keys = self.keys.iter().map(String::as_str);
        let mut csv = Csv::new(std::iter::once("run").chain(keys).chain(COLUMNS));
        for row in &self.rows {
            let run = &self.runs[row.run];
            let (value, [low, high]) = row.predicted();
            let cells = [
                row.figure().name.to_owned(),
                row.metric().map_or("", |metric| metric.unit).to_owned(),
                number::cell(row.measured),
                number::cell(value),
                number::cell(low),
                number::cell(high),
                word(row.is_inside()).to_owned(),
                row.tolerance.to_string(),
                word(row.is_within()).to_owned(),
                number::cell(row.error()),
                number::cell(row.relative_error()),
            ];
            let name = std::iter::once(run.name.clone());
            csv.rows.push(name.chain(run.settings.iter().cloned()).chain(cells).collect());
        }
        csv
    }

    fn of_files(csv: &Csv, document: ValidationDocument) -> Result<Self, String> {
        let missing = COLUMNS.iter().chain(["run"].iter()).find(|name| csv.column(name).is_none());
        if let Some(missing) = missing {
            return Err(format!("it has no column `{missing}`"));
        }
        let keys = csv.header.iter().filter(|name| *name != "run" && !COLUMNS.contains(&&***name));
        let keys: Vec<String> = keys.cloned().collect();
        let names: Vec<String> = document.runs.iter().map(|run| run.run.clone()).collect();
        let rows = (0..csv.rows.len()).map(|row| row_of(csv, row, &names));
        let rows: Vec<Row> = rows.collect::<Result<_, _>>()?;
        let runs = document.runs.into_iter().enumerate().map(|(place, run)| {
            let row = rows.iter().position(|row| row.run == place);
            let value = |key: &String| row.map_or("", |row| csv.text(row, key)).to_owned();
            Compared {
                name: run.run,
                settings: keys.iter().map(value).collect(),
                steps: run.steps,
                seconds: run.seconds.0.unwrap_or(0.0),
                notes: run.warnings,
                failed: run.failed.map(|failed| (failed.what, failed.replications)),
            }
        });
        let runs = runs.collect();
        let scores = document.interval_scores.into_iter().filter_map(|score| {
            Some(Score {
                figure: figure(&score.metric)?,
                runs: score.runs,
                predicted: score.predicted.0?,
                baseline: score.as_in_the_fitted_run.0,
            })
        });
        Ok(Self {
            version: document.version,
            scenario: document.scenario,
            scenario_digest: document.scenario_digest,
            fitted_to: document.fitted_to.unwrap_or_default(),
            uncertain: document.uncertain_parameters,
            seed: document.seed,
            replications: document.replications,
            warmup_steps: document.warmup_steps,
            baseline: document.baseline,
            keys,
            runs,
            sums: (0..FIGURES.len()).filter_map(|figure| sum(figure, &rows)).collect(),
            scores: scores.collect(),
            rows,
            about: document.about,
        })
    }
}

/// A row of the table.
fn row_of(csv: &Csv, row: usize, runs: &[String]) -> Result<Row, String> {
    let text = |column: &str| csv.text(row, column);
    let value = |column: &str| csv.value(row, column);
    // The header is the first line.
    let wrong = |what: String| format!("line {}: {what}", row + 2);
    let run = runs.iter().position(|name| name == text("run"));
    let run =
        run.ok_or_else(|| wrong(format!("`{}` is no run of {}", text("run"), Validation::META)))?;
    let figure = figure(text("metric"));
    let figure = figure.ok_or_else(|| wrong(format!("`{}` is no metric", text("metric"))))?;
    let tolerance = Tolerance::of_text(text("tolerance"));
    let tolerance =
        tolerance.ok_or_else(|| wrong(format!("`{}` is no tolerance", text("tolerance"))))?;
    let prediction = value("predicted")
        .map(|value_of| Prediction { value: value_of, interval: value("low").zip(value("high")) });
    Ok(Row {
        inside: verdict(text("inside")),
        within: verdict(text("within")),
        ..Row::new(run, figure, value("measured"), prediction, tolerance)
    })
}

fn figure(name: &str) -> Option<usize> {
    FIGURES.iter().position(|figure| figure.name == name)
}

const fn word(verdict: Option<bool>) -> &'static str {
    match verdict {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    }
}

fn verdict(word: &str) -> Option<bool> {
    match word {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

//! A table of rates as a CSV file.

use csv::StringRecord;

use super::RateTable;
use crate::world::replica::DecodeLaw;

/// The columns of a table of rates, in order: of what it is, a row per batch, where it comes from.
///
/// `batch` sequences decode together: each gets a token every `sec_per_token`, all together
/// `tokens_per_sec`; their prompts are read at `prefill_tokens_per_sec`.
pub const COLUMNS: [&str; 12] = [
    "model",
    "system",
    "engine",
    "engine_version",
    "gpus_per_replica",
    "input_tokens",
    "output_tokens",
    "batch",
    "sec_per_token",
    "tokens_per_sec",
    "prefill_tokens_per_sec",
    "source",
];

/// The columns that say of what the table is: the same in every row.
const CONSTANT: [&str; 8] = [
    "model",
    "system",
    "engine",
    "engine_version",
    "gpus_per_replica",
    "input_tokens",
    "output_tokens",
    "source",
];

/// Fastest throughput that a row may have, in tokens/s.
const FASTEST: f64 = 1e12;

/// Why a text is no table of rates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RatesError {
    /// The first byte of what is wrong.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
    /// What is wrong there.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

/// Which cell of a row a column is.
struct Header<'h>(&'h StringRecord);

impl Header<'_> {
    fn index(&self, column: &str) -> Option<usize> {
        self.0.iter().position(|name| name.trim() == column)
    }

    /// The cell of a row; empty where the table has no such column.
    fn cell<'r>(&self, row: &'r StringRecord, column: &str) -> &'r str {
        self.index(column).and_then(|index| row.get(index)).unwrap_or("").trim()
    }
}

/// A row, and the bytes that it was read from.
struct Row {
    cells: StringRecord,
    start: usize,
    end: usize,
}

impl Row {
    fn wrong(&self, message: impl Into<String>, help: impl Into<String>) -> RatesError {
        let (start, end) = (self.start, self.end);
        RatesError { start, end, message: message.into(), help: help.into() }
    }
}

pub(super) fn read(text: &str) -> Result<RateTable, RatesError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| no_csv(0, &error))?.clone();
    let header = Header(&header);
    for column in ["batch", "tokens_per_sec"] {
        if header.index(column).is_none() {
            return Err(no_column(column, text));
        }
    }
    let mut rows = Vec::new();
    while let Some(row) = next(&mut reader, text)? {
        rows.push(row);
    }
    let Some(first) = rows.first() else {
        let help = "add at least one row below the header".into();
        return Err(RatesError { start: 0, end: text.len(), message: "no rows".into(), help });
    };
    rows.iter().try_for_each(|row| same(&header, first, row))?;
    let points = points(&header, &rows)?;
    let law = DecodeLaw::table(points.clone());
    let word = |column| header.cell(&first.cells, column).to_owned();
    Ok(RateTable {
        model: word("model"),
        system: word("system"),
        engine: word("engine"),
        engine_version: word("engine_version"),
        gpus_per_replica: count(&header, first, "gpus_per_replica")?,
        input_tokens: count(&header, first, "input_tokens")?,
        output_tokens: count(&header, first, "output_tokens")?,
        source: word("source"),
        points,
        prefill_tokens_per_sec: rate(&header, first, "prefill_tokens_per_sec")?,
        law: law.map_err(|error| first.wrong(error.to_string(), "correct the rows"))?,
    })
}

/// The next row and its place.
fn next(reader: &mut csv::Reader<&[u8]>, text: &str) -> Result<Option<Row>, RatesError> {
    // A position is a byte in a text that is in memory.
    let before = reader.position().byte() as usize;
    let mut cells = StringRecord::new();
    match reader.read_record(&mut cells) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(error) => return Err(no_csv(before, &error)),
    }
    let start = cells.position().map_or(before, |position| position.byte() as usize);
    // The reader has skipped blank lines, but its position is the one before them.
    let rest = text.get(start..).unwrap_or("");
    let row = rest.trim_start_matches(['\r', '\n']);
    let start = text.len() - row.len();
    let line = row.lines().next().unwrap_or("");
    let end = start + line.len();
    Ok(Some(Row { cells, start, end }))
}

/// The row says the same as the first one about what the table is.
fn same(header: &Header<'_>, first: &Row, row: &Row) -> Result<(), RatesError> {
    for column in CONSTANT {
        let (above, here) = (header.cell(&first.cells, column), header.cell(&row.cells, column));
        if above != here {
            return Err(row.wrong(
                format!("`{column}` is `{here}` here and `{above}` in the first row"),
                "keep one table in a file: one model, GPU, engine and length",
            ));
        }
    }
    Ok(())
}

fn points(header: &Header<'_>, rows: &[Row]) -> Result<Vec<(u32, f64)>, RatesError> {
    let mut points: Vec<(u32, f64)> = Vec::new();
    for row in rows {
        let no_value = |column| {
            let help = format!("write `{column}` in every row");
            move || row.wrong(format!("`{column}` is missing"), help)
        };
        let batch = count(header, row, "batch")?.ok_or_else(no_value("batch"))?;
        let tokens = rate(header, row, "tokens_per_sec")?.ok_or_else(no_value("tokens_per_sec"))?;
        if points.last().is_some_and(|&(before, _)| before >= batch) {
            return Err(row.wrong(
                format!("batch {batch} is not above that of the row before it"),
                "sort the rows by their batch, one row for each",
            ));
        }
        points.push((batch, tokens));
    }
    Ok(points)
}

/// A whole number from 1, if there is one.
fn count(header: &Header<'_>, row: &Row, column: &str) -> Result<Option<u32>, RatesError> {
    let cell = header.cell(&row.cells, column);
    match cell.parse() {
        _ if cell.is_empty() => Ok(None),
        Ok(number @ 1..) => Ok(Some(number)),
        _ => Err(row.wrong(
            format!("`{cell}` is no `{column}`"),
            format!("write a whole number from 1 to {}", u32::MAX),
        )),
    }
}

/// A number above 0, if there is one.
fn rate(header: &Header<'_>, row: &Row, column: &str) -> Result<Option<f64>, RatesError> {
    let cell = header.cell(&row.cells, column);
    match cell.parse::<f64>() {
        _ if cell.is_empty() => Ok(None),
        Ok(number) if number > 0.0 && number <= FASTEST => Ok(Some(number)),
        _ => Err(row.wrong(
            format!("`{cell}` is no `{column}`"),
            "write tokens/s: a number above 0, up to 1e12",
        )),
    }
}

fn no_column(column: &str, text: &str) -> RatesError {
    RatesError {
        start: 0,
        end: text.lines().next().map_or(0, str::len),
        message: format!("there is no column `{column}`"),
        help: "write a header with `batch` and `tokens_per_sec`: sequences that decode together, \
               and the tokens/s of all of them"
            .into(),
    }
}

fn no_csv(start: usize, error: &csv::Error) -> RatesError {
    RatesError {
        start,
        end: start,
        message: format!("no CSV: {error}"),
        help: "write one row per line, with commas between its values".into(),
    }
}

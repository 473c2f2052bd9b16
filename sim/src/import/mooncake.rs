//! The traces of Mooncake: a JSON object per line and request, with the milliseconds at which it
//! came, the tokens of its prompt and those that were generated.
//!
//! Qin et al., "Mooncake: Trading more storage for less computation", FAST 2025.

use std::io::{BufRead, Write};

use super::json::Object;
use super::lines::Lines;
use super::time::{TICKS_PER_SEC, seconds};
use super::{COLUMNS, ImportError, ImportReport, Problem};

const TICKS_PER_MS: u64 = TICKS_PER_SEC / 1000;
/// A line has an id for each 512 tokens of its prompt.
const LONGEST: usize = 1 << 20;

/// Turns the trace into a table of arrivals and lengths ([`COLUMNS`]), one request at a time, in
/// the order of the file. Arrivals count from the first request and are exact. Other keys than
/// `timestamp`, `input_length` and `output_length` are passed over.
///
/// # Errors
/// The trace cannot be read or is wrong (its line and what to do about it are said), time goes
/// backwards in it, or the table cannot be written.
pub fn import_mooncake(
    reader: impl BufRead,
    mut writer: impl Write,
) -> Result<ImportReport, ImportError> {
    let mut lines = Lines::up_to(LONGEST, reader);
    writeln!(writer, "{}", COLUMNS.join(",")).map_err(ImportError::Write)?;
    let mut report = ImportReport::default();
    let mut first = 0;
    while let Some(line) = lines.next()? {
        let row = Object::read(&line)?;
        let ms = row.integer("timestamp", u64::MAX / TICKS_PER_MS)?;
        let [prompt, output] =
            ["input_length", "output_length"].map(|key| row.integer(key, u64::from(u32::MAX)));
        let (prompt, output) = (prompt?, output?);
        if report.rows == 0 {
            first = ms;
        }
        let arrival = ms.checked_sub(first).map(|ms| ms * TICKS_PER_MS);
        let Some(arrival) = arrival.filter(|&arrival| arrival >= report.ticks) else {
            return Err(row.wrong("timestamp", Problem::Backwards { found: ms.to_string() }));
        };
        report.rows += 1;
        report.ticks = arrival;
        report.prompt_tokens += prompt;
        report.output_tokens += output;
        writeln!(writer, "{},{prompt},{output}", seconds(arrival)).map_err(ImportError::Write)?;
    }
    if report.rows == 0 {
        return Err(ImportError::Wrong { line: 1, column: 1, problem: Problem::Empty });
    }
    writer.flush().map_err(ImportError::Write)?;
    Ok(report)
}

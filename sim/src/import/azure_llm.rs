//! The Azure LLM inference trace of 2023: a row per request, with the time at which it came, the
//! tokens of its prompt and the tokens that were generated.
//!
//! Patel et al., "Splitwise: Efficient generative LLM inference using phase splitting", ISCA 2024.

use std::io::{BufRead, Write};

use super::lines::{Line, Lines};
use super::time::{seconds, ticks};
use super::{COLUMNS, ImportError, ImportReport, Problem};

const HEADER: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";

/// Turns the trace into a table of arrivals and lengths ([`COLUMNS`]), one request at a time, in
/// the order of the file. Arrivals count from the first request and are exact.
///
/// Lines may end in CRLF, the last one may lack its end, a byte order mark and blank lines are
/// skipped.
///
/// # Errors
/// The trace cannot be read or is wrong (its line and what to do about it are said), time goes
/// backwards in it, or the table cannot be written.
pub fn import_azure_llm(
    reader: impl BufRead,
    mut writer: impl Write,
) -> Result<ImportReport, ImportError> {
    let mut lines = Lines::new(reader);
    read_header(&mut lines)?;
    writeln!(writer, "{}", COLUMNS.join(",")).map_err(ImportError::Write)?;
    let mut report = ImportReport::default();
    let mut first = 0;
    while let Some(line) = lines.next()? {
        let row = read_row(&line)?;
        if report.rows == 0 {
            first = row.ticks;
        }
        let arrival = row.ticks.checked_sub(first).filter(|&arrival| arrival >= report.ticks);
        let Some(arrival) = arrival else {
            return Err(line.wrong(row.time, Problem::Backwards { found: row.time.into() }));
        };
        report.rows += 1;
        report.ticks = arrival;
        report.prompt_tokens += u64::from(row.prompt);
        report.output_tokens += u64::from(row.output);
        writeln!(writer, "{},{},{}", seconds(arrival), row.prompt, row.output)
            .map_err(ImportError::Write)?;
    }
    if report.rows == 0 {
        let line = lines.number();
        return Err(ImportError::Wrong { line, column: 1, problem: Problem::NoRows });
    }
    writer.flush().map_err(ImportError::Write)?;
    Ok(report)
}

struct Row<'a> {
    time: &'a str,
    ticks: u64,
    prompt: u32,
    output: u32,
}

fn read_header<R: BufRead>(lines: &mut Lines<R>) -> Result<(), ImportError> {
    let Some(line) = lines.next()? else {
        return Err(ImportError::Wrong { line: 1, column: 1, problem: Problem::Empty });
    };
    let text = line.text.strip_prefix('\u{feff}').unwrap_or(line.text);
    if text.split(',').map(str::trim).eq(HEADER.split(',')) {
        return Ok(());
    }
    let found = text.chars().take(80).collect();
    Err(line.wrong(text, Problem::Header { found, expected: HEADER }))
}

fn read_row<'a>(line: &Line<'a>) -> Result<Row<'a>, ImportError> {
    let [time, prompt, output] = line.values()?;
    let tokens = |found: &str, column| {
        let problem = || Problem::Tokens { found: found.into(), column };
        found.parse().map_err(|_| line.wrong(found, problem()))
    };
    let ticks =
        ticks(time).ok_or_else(|| line.wrong(time, Problem::Time { found: time.into() }))?;
    Ok(Row {
        time,
        ticks,
        prompt: tokens(prompt, "ContextTokens")?,
        output: tokens(output, "GeneratedTokens")?,
    })
}

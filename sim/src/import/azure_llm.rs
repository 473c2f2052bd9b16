//! The Azure LLM inference trace of 2023: a row per request, with the time at which it came, the
//! tokens of its prompt and the tokens that were generated.
//!
//! Patel et al., "Splitwise: Efficient generative LLM inference using phase splitting", ISCA 2024.

use std::io::{BufRead, Write};

use super::lines::{Line, Lines};
use super::{COLUMNS, ImportError, ImportReport, Problem};

const HEADER: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";
/// The trace counts time in units of 100 ns.
const TICKS_PER_SEC: u64 = 10_000_000;
/// Digits of a fraction of a second.
const DIGITS: usize = 7;

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

/// The ticks from the beginning of year 0 to `2023-11-16 18:15:46.6805900`; the fraction may have
/// fewer digits, or be missing.
fn ticks(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(' ')?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let valid = (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && (1..=DIGITS).contains(&fraction.len());
    if !valid {
        return None;
    }
    let scale = (fraction.len()..DIGITS).fold(1, |scale, _| scale * 10);
    let ticks = number(fraction)? * scale;
    let days = days_before(year) + (1..month).map(|month| days_of(year, month)).sum::<u64>() + day;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * TICKS_PER_SEC + ticks)
}

/// Three numbers of these many digits.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(between);
    let mut next = |digits| number(parts.next().filter(|part| part.len() == digits)?);
    let values = [next(digits[0])?, next(digits[1])?, next(digits[2])?];
    parts.next().is_none().then_some(values)
}

/// A number that is written in digits alone.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// Days of a month, which is from 1 to 12.
const fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of the years before this one, in the Gregorian calendar.
const fn days_before(year: u64) -> u64 {
    let last = year.saturating_sub(1);
    year * 365 + last / 4 - last / 100 + last / 400
}

/// Ticks as seconds, in as few digits as say it exactly.
fn seconds(ticks: u64) -> String {
    let (whole, fraction) = (ticks / TICKS_PER_SEC, ticks % TICKS_PER_SEC);
    if fraction == 0 {
        return whole.to_string();
    }
    let text = format!("{whole}.{fraction:07}");
    text.trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_across_days_months_and_leap_years() {
        let between = |from: &str, to: &str| ticks(to).unwrap() - ticks(from).unwrap();
        let day = 86_400 * TICKS_PER_SEC;
        assert_eq!(between("2023-12-31 23:59:59.9999999", "2024-01-01 00:00:00.0000000"), 1);
        assert_eq!(between("2024-02-28 00:00:00", "2024-03-01 00:00:00"), 2 * day);
        assert_eq!(between("2023-02-28 00:00:00", "2023-03-01 00:00:00"), day);
        assert_eq!(between("1900-02-28 00:00:00", "1900-03-01 00:00:00"), day);
        assert_eq!(between("2000-01-01 00:00:00", "2001-01-01 00:00:00"), 366 * day);
        assert_eq!(between("1970-01-01 00:00:00", "2023-11-16 00:00:00"), 19_677 * day);
        assert_eq!(between("2023-11-16 18:15:46", "2023-11-16 18:15:46.68"), 6_800_000);
    }

    #[test]
    fn what_is_no_time_is_not_taken_for_one() {
        for text in [
            "",
            "2023-11-16",
            "2023-11-16T18:15:46",
            "2023-11-16 18:15",
            "2023-11-16 18:15:46.",
            "2023-11-16 18:15:46.12345678",
            "2023-11-16 18:15:46.-1",
            "2023-02-29 18:15:46",
            "2023-13-01 18:15:46",
            "2023-11-00 18:15:46",
            "2023-11-16 24:00:00",
            "2023-11-16 18:60:00",
            "23-11-16 18:15:46",
            "2023-11-16 18:15:46 PM",
            "2023-11-+6 18:15:46",
        ] {
            assert_eq!(ticks(text), None, "{text}");
        }
    }

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds(0), "0");
        assert_eq!(seconds(43_145_490), "4.314549");
        assert_eq!(seconds(1), "0.0000001");
        assert_eq!(seconds(20_000_000), "2");
    }
}

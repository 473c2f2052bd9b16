//! Latencies out of CSV columns: any system's logs will do.

use headway_shared::config::{Diagnostic, Diagnostics, Findings, Origin, Sources, Syntax, nearest};

use super::fit::{Limits, Unit};

/// A latency or a length of the world, by the name that a command line has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The name.
    pub name: &'static str,
    /// What it is, in words.
    pub what: &'static str,
    /// The table of the scenario.
    pub table: &'static str,
    /// The key there.
    pub key: &'static str,
    /// Seconds, or a count.
    pub unit: Unit,
}

macro_rules! latencies {
    ($($name:literal $what:literal $table:literal . $key:literal $unit:ident;)*) => {
        /// All that a column can be of.
        pub const LATENCIES: &[Latency] = &[$(Latency {
            name: $name, what: $what, table: $table, key: $key, unit: Unit::$unit,
        },)*];
    };
}

latencies! {
    "judge" "vote of the judge" "world.judge"."vote" Seconds;
    "verdict" "verdict" "world.judge"."verdict_tokens" Count;
    "step" "train step" "world.trainer"."step" Seconds;
    "save" "weight export" "world.weights"."save" Seconds;
    "transfer" "weight transfer" "world.weights"."transfer" Seconds;
    "load" "weight load" "world.weights"."load" Seconds;
    "think" "pause between turns" "world.clients"."think" Seconds;
    "turns" "turns of a session" "world.clients"."turns" Count;
    "prompt" "first prompt" "world.clients"."prompt_tokens" Count;
    "growth" "tokens between turns" "world.clients"."growth_tokens" Count;
    "output" "output" "world.clients"."output_tokens" Count;
    "reset" "environment reset" "world.environment"."reset" Seconds;
    "environment" "environment step" "world.environment"."step" Seconds;
    "restart" "replica restart" "world.faults"."replica_restart" Seconds;
}

impl Latency {
    /// The one of this name.
    ///
    /// # Errors
    /// There is none; the message says what there is.
    pub fn find(name: &str) -> Result<&'static Self, String> {
        LATENCIES.iter().find(|latency| latency.name == name).ok_or_else(|| {
            let names: Vec<&str> = LATENCIES.iter().map(|latency| latency.name).collect();
            let help = match nearest(name, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write one of {}", names.join(", ")),
            };
            format!("there is no latency `{name}`\nhelp: {help}")
        })
    }

    /// What the world does to its counts.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let at_least = (self.key == "turns").then_some(1);
        Limits { at_least, at_most: None }
    }
}

/// The numbers of a column. `file` is what messages call the text.
///
/// # Errors
/// There is no such column, no row, or a cell is no number from 0 to 1e15: with file and line.
pub fn column(file: &str, text: &str, name: &str, unit: Unit) -> Result<Vec<f64>, Diagnostics> {
    let (mut sources, findings) = (Sources::default(), Findings::default());
    // The syntax only spells assignments in a help, which a table never gets.
    let source = sources.add(Syntax::Toml, file, text);
    let fail = |start: usize, end: usize, message: String, help: String| {
        let origin = Origin { source, start, end };
        findings.push(Diagnostic::error(origin, message).help(help));
    };
    let mut values = Vec::new();
    if let Err((start, end, message, help)) = read(text, name, unit, &mut values) {
        fail(start, end, message, help);
    }
    findings.finish(sources).map(|_| values)
}

type Wrong = (usize, usize, String, String);

fn read(text: &str, name: &str, unit: Unit, values: &mut Vec<f64>) -> Result<(), Wrong> {
    let mut rows = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let first = text.find('\n').unwrap_or(text.len());
    let header = match rows.headers() {
        Ok(header) if !header.is_empty() => header.clone(),
        _ => {
            let help = format!("write a header with `{name}` and at least one row");
            return Err((0, 0, "the file is empty".to_owned(), help));
        }
    };
    let names: Vec<&str> = header.iter().map(str::trim).collect();
    let Some(index) = names.iter().position(|column| *column == name) else {
        let help = format!("its columns are {}", names.join(", "));
        return Err((0, first, format!("there is no column `{name}`"), help));
    };
    let mut row = csv::StringRecord::new();
    loop {
        // A position is a byte of a text that is in memory.
        let start = rows.position().byte() as usize;
        let more = rows.read_record(&mut row).map_err(|error| {
            let help = "write one row per line, with commas between its values".to_owned();
            (start, start, format!("no CSV: {error}"), help)
        })?;
        if !more {
            break;
        }
        let start = row.position().map_or(start, |position| position.byte() as usize);
        // The reader has skipped blank lines, but its position is the one before them.
        let rest = text.get(start..).unwrap_or("");
        let start = text.len() - rest.trim_start_matches(['\r', '\n']).len();
        let cell = row.get(index).unwrap_or("").trim();
        let whole = |value: f64| unit == Unit::Seconds || value.trunc() == value;
        match cell.parse::<f64>() {
            Ok(value) if (0.0..=1e15).contains(&value) && whole(value) => values.push(value),
            _ => {
                let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
                let what = if unit == Unit::Seconds { "number" } else { "whole number" };
                let help = format!("write a {what} from 0 to 1e15, or take the row out");
                return Err((start, end, format!("`{cell}` is no `{name}`"), help));
            }
        }
    }
    if values.is_empty() {
        let help = "add at least one row below the header".to_owned();
        return Err((0, first, "no rows".to_owned(), help));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, name: &str, unit: Unit) -> String {
        column("log.csv", text, name, unit).unwrap_err().to_string()
    }

    #[test]
    fn a_column_is_read_by_its_name() {
        let text = "when, secs\n1, 2.5\n\n2, 3\n";
        assert_eq!(column("log.csv", text, "secs", Unit::Seconds).unwrap(), [2.5, 3.0]);
        assert_eq!(column("log.csv", text, "when", Unit::Count).unwrap(), [1.0, 2.0]);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_line() {
        let text = "when,secs\n1,2.5\n\n2,soon\n";
        let wrong = said(text, "secs", Unit::Seconds);
        assert!(wrong.contains("log.csv:4:1: `soon` is no `secs`"), "{wrong}");
        assert!(wrong.contains("help: write a number from 0 to 1e15"), "{wrong}");
        let fraction = said(text, "secs", Unit::Count);
        assert!(fraction.contains("log.csv:2:1: `2.5` is no `secs`"), "{fraction}");
        let missing = said(text, "seconds", Unit::Seconds);
        assert!(missing.contains("log.csv:1:1: there is no column `seconds`"), "{missing}");
        assert!(missing.contains("help: its columns are when, secs"), "{missing}");
        assert!(said("secs\n", "secs", Unit::Seconds).contains("no rows"));
        assert!(said("", "secs", Unit::Seconds).contains("the file is empty"));
    }

    #[test]
    fn an_unknown_latency_has_a_suggestion() {
        let error = Latency::find("jugde").unwrap_err();
        assert!(error.contains("did you mean `judge`?"), "{error}");
        assert!(Latency::find("zzzzzz").unwrap_err().contains("write one of judge, verdict"));
    }
}

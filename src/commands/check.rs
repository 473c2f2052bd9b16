//! `headway check`

use std::fmt::Write;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use headway_runtime::store::{self, StoreError, Stretch};
use headway_shared::check::{CheckReport, Unended, check};
use headway_shared::record::{DECISION_VERSION, Reader, RecordError};
use headway_shared::replay::ReplayError;

use crate::failure::Failure;
use crate::terminal;

/// Most findings that are shown.
const MOST_FINDINGS: usize = 20;
/// Most pieces of work that are shown of each kind.
const MOST_WORK: usize = 5;

/// Check records: decisions, one end for everything started, the ledger, tables
///
/// Replays each record, and looks whether every action that starts work has exactly one terminal
/// input, the ledger balances, snapshots are the core at their place, and, in the database of a live
/// run, samples, votes and steps are what the core decided. What is under way where a record ends,
/// as after a kill, is listed and is no error. Scenarios are not taken yet.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Records, as `simulate --record` writes them, or databases of live runs
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut good = true;
    for record in &args.records {
        let (text, holds) = check_one(record)?;
        terminal::data(&text)?;
        good &= holds;
    }
    if good { Ok(()) } else { Err(Failure::Negative) }
}

/// What is said of a record, and whether nothing is wrong with it.
fn check_one(record: &Path) -> Result<(String, bool), Failure> {
    let path = record.display();
    if record.extension().is_some_and(|extension| extension == "toml") {
        let help = "simulate it with --record, and check the record";
        let what = "this is a scenario, and scenarios are not checked yet";
        return Err(Failure::input(format!("{path}: {what}\nhelp: {help}")));
    }
    let unreadable = |error: &dyn std::error::Error| {
        let help = "name a record that `headway simulate --record` or a live run wrote";
        Failure::input(format!("{path}: {error}\nhelp: {help}"))
    };
    let mut text = String::new();
    if store::is_database(record).map_err(|error| Failure::unreadable(record, &error))? {
        let checked = store::check(record).map_err(|error| unreadable(&error))?;
        if checked.iter().all(|(_, report)| report.is_none()) {
            let found = checked.last().map_or(0, |(stretch, _)| stretch.decision_version);
            return Err(unreadable(&StoreError::OtherDecisions { found: found.to_string() }));
        }
        let mut holds = true;
        for (stretch, report) in checked {
            match report {
                Some(report) => holds &= describe(&mut text, record, &report, true),
                None => unverified(&mut text, record, stretch),
            }
        }
        return Ok((text, holds));
    }
    let file = File::open(record).map_err(|error| Failure::unreadable(record, &error))?;
    let reader = Reader::open(BufReader::new(file)).map_err(|error| unreadable(&error))?;
    let report = check(reader).map_err(|error| match error {
        ReplayError::Record(RecordError::Io(error)) => Failure::unreadable(record, &error),
        error => unreadable(&error),
    })?;
    let holds = describe(&mut text, record, &report, false);
    Ok((text, holds))
}

fn unverified(text: &mut String, record: &Path, stretch: Stretch) {
    let Stretch { from, to, decision_version } = stretch;
    let _ = writeln!(
        text,
        "{}: inputs {from} to {}: not checked; decision version {decision_version} decided them, \
         and this build decides as version {DECISION_VERSION}",
        record.display(),
        to.saturating_sub(1),
    );
}

/// Writes a report; whether nothing is wrong. A simulated world may lose completions on purpose, a
/// live run may not.
fn describe(text: &mut String, record: &Path, report: &CheckReport, live: bool) -> bool {
    let CheckReport { replay, ledger, started, in_flight, unanswered, findings } = report;
    let (inputs, end) = (replay.decisions.inputs, replay.end);
    let _ = writeln!(
        text,
        "{}: {inputs} inputs until {end}, {} snapshots\n  samples: {} admitted = {} trained + {} \
         discarded + {} outstanding + {} parked\n  work: {started} started, {} under way at the end",
        record.display(),
        replay.snapshots,
        ledger.admitted,
        ledger.trained,
        ledger.discarded_total(),
        ledger.outstanding(),
        ledger.parked(),
        in_flight.len(),
    );
    list(text, in_flight, "in flight");
    list(text, unanswered, if live { "WITHOUT ITS END" } else { "lost by the simulated world" });
    for finding in findings.iter().take(MOST_FINDINGS) {
        let _ = writeln!(text, "  WRONG: {}", finding.to_string().replace('\n', "\n  "));
    }
    more(text, findings.len(), MOST_FINDINGS);
    let holds = findings.is_empty() && (unanswered.is_empty() || !live);
    let _ = writeln!(text, "{}", if holds { "  nothing is wrong" } else { "  the check failed" });
    holds
}

fn list(text: &mut String, works: &[Unended], what: &str) {
    for Unended { work, since } in works.iter().take(MOST_WORK) {
        let since = since.map_or_else(String::new, |since| format!(", since input {since}"));
        let _ = writeln!(text, "    {what}: {work}{since}");
    }
    more(text, works.len(), MOST_WORK);
}

fn more(text: &mut String, count: usize, shown: usize) {
    if count > shown {
        let _ = writeln!(text, "    and {} more", count - shown);
    }
}

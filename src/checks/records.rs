//! Records: what must hold of every run.

use std::fmt::Write;
use std::fs::File;
use std::path::Path;

use headway_shared::check::{CheckReport, Unended, check_with};
use headway_shared::record::{Reader, RecordError};
use headway_shared::replay::{ReplayError, ReplayReport};
use headway_sim::check::Case;
use serde_json::json;

use super::Checked;
use crate::failure::Failure;
use crate::source;

/// Most findings that are shown.
const MOST_FINDINGS: usize = 20;
/// Most pieces of work that are shown of each kind.
const MOST_WORK: usize = 5;

/// What is said of a record.
pub(crate) fn check(record: &Path) -> Result<Checked, Failure> {
    let (shown, passed) = text_of(record)?;
    let file = record.display().to_string();
    let summary = if passed { "nothing is wrong" } else { "the check failed" }.to_owned();
    let document = json!({ "name": file, "file": file, "passed": passed, "summary": summary });
    let case = Case { name: file.clone(), file, passed, summary, text: shown.clone() };
    Ok(Checked { case, shown, document })
}

fn unreadable(record: &Path, error: &dyn std::error::Error) -> Failure {
    let help = "name a record that `headway simulate --record` or a live run wrote, or a scenario \
                (a file that ends in .toml)";
    Failure::input(format!("{}: {error}\nhelp: {help}", record.display()))
}

/// What is said of a record, and whether nothing is wrong with it.
fn text_of(record: &Path) -> Result<(String, bool), Failure> {
    #[cfg(feature = "live")]
    if let Some(said) = database::check(record)? {
        return Ok(said);
    }
    let mut text = String::new();
    let file = File::open(record).map_err(|error| Failure::unreadable(record, &error))?;
    let reader = Reader::open(file).map_err(|error| unreadable(record, &error))?;
    let report = check_with(reader, &mut source::counter_of(record));
    let report = report.map_err(|error| match error {
        ReplayError::Record(RecordError::Io(error)) => Failure::unreadable(record, &error),
        error => unreadable(record, &error),
    })?;
    let holds = describe(&mut text, record, &report, false);
    Ok((text, holds))
}

/// Live runs.
#[cfg(feature = "live")]
mod database {
    use std::fmt::Write;
    use std::path::Path;

    use headway_runtime::store::{self, StoreError, Stretch};
    use headway_shared::record::DECISION_VERSION;

    use super::{describe, unreadable};
    use crate::failure::Failure;
    use crate::source;

    /// The same of the database of a live run; `None`: it is none.
    pub(super) fn check(record: &Path) -> Result<Option<(String, bool)>, Failure> {
        if !store::is_database(record).map_err(|error| Failure::unreadable(record, &error))? {
            return Ok(None);
        }
        let checked = store::check_with(record, &mut source::counter_of(record));
        let checked = checked.map_err(|error| unreadable(record, &error))?;
        if checked.iter().all(|(_, report)| report.is_none()) {
            let found = checked.last().map_or(0, |(stretch, _)| stretch.decision_version);
            let error = StoreError::OtherDecisions { found: found.to_string() };
            return Err(unreadable(record, &error));
        }
        let (mut text, mut holds) = (String::new(), true);
        for (stretch, report) in checked {
            match report {
                Some(report) => holds &= describe(&mut text, record, &report, true),
                None => unverified(&mut text, record, stretch),
            }
        }
        Ok(Some((text, holds)))
    }

    fn unverified(text: &mut String, record: &Path, stretch: Stretch) {
        let Stretch { from, to, decision_version } = stretch;
        let _ = writeln!(
            text,
            "{}: inputs {from} to {}: not checked; decision version {decision_version} decided \
             them, and this build decides as version {DECISION_VERSION}",
            record.display(),
            to.saturating_sub(1),
        );
    }
}

/// Writes a report; whether nothing is wrong. A simulated world may lose completions on purpose, a
/// live run may not.
fn describe(text: &mut String, record: &Path, report: &CheckReport, live: bool) -> bool {
    let CheckReport { replay, ledger, started, in_flight, unanswered, findings } = report;
    let (inputs, end) = (replay.decisions.inputs, replay.end);
    let _ = writeln!(
        text,
        "{}: {inputs} inputs until {end}, {}\n  samples: {} admitted = {} trained + {} \
         discarded + {} outstanding + {} parked\n  work: {started} started, {} under way at the end",
        record.display(),
        snapshots(replay),
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

/// How many snapshots were compared, and how many could not be.
pub(crate) fn snapshots(replay: &ReplayReport) -> String {
    match (replay.snapshots, replay.uncompared) {
        (compared, 0) => format!("{compared} snapshots"),
        (compared, others) => {
            format!("{compared} snapshots (and {others} of another layout, not compared)")
        }
    }
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

//! The check of a database: see [`headway_shared::check`]; here its tables are compared too.

use std::path::Path;

use headway_shared::check::{CheckReport, Checker};
use headway_shared::config::Config;
use rusqlite::Connection;

use super::facts::Facts;
use super::stretch::{Stretch, first_snapshot, snapshot_behind, stretches};
use super::{StoreError, open_to_read, read};

/// A stretch of a record, and what its check found; `None`: this build does not decide as it was
/// decided there.
pub type Checked = (Stretch, Option<CheckReport>);

/// Checks a record, while a run may be writing to it: every stretch that this build can verify.
///
/// # Errors
/// It is no record that this build can read. What is wrong in it is in the reports.
pub fn check(path: &Path) -> Result<Vec<Checked>, StoreError> {
    check_with(path, &mut || {})
}

/// The same; `each` is called behind every input, for whoever waits.
///
/// # Errors
/// As [`check`].
pub fn check_with(path: &Path, each: &mut dyn FnMut()) -> Result<Vec<Checked>, StoreError> {
    let (connection, config) = open_to_read(path)?;
    // One state of the tables, whatever is written meanwhile.
    let transaction = connection.unchecked_transaction()?;
    let stretches = stretches(&transaction)?;
    let count = stretches.len();
    let check = |(index, stretch): (usize, Stretch)| {
        let last = index + 1 == count;
        let report =
            stretch.is_ours().then(|| check_stretch(&transaction, &config, stretch, last, each));
        Ok((stretch, report.transpose()?))
    };
    stretches.into_iter().enumerate().map(check).collect()
}

fn check_stretch(
    connection: &Connection,
    config: &Config,
    stretch: Stretch,
    last: bool,
    each: &mut dyn FnMut(),
) -> Result<CheckReport, StoreError> {
    let first = match first_snapshot(connection, &stretch) {
        Err(error @ StoreError::Damaged { .. }) => return Ok(lost(config, stretch, &error)),
        first => first?,
    };
    let mut checker = match first {
        None => Checker::new(config.clone()),
        Some(snapshot) => match Checker::restore(&snapshot.core, snapshot.inputs) {
            Ok(checker) => checker,
            Err(error) => return Ok(lost(config, stretch, &error.into())),
        },
    };
    let mut facts = Facts::from(checker.inputs());
    let read = read::inputs_of(connection, checker.inputs()..stretch.to, |stored| {
        let input = stored.input.clone();
        checker.input(stored.at, stored.input, stored.actions);
        each();
        if checker.is_stopped() {
            return Ok(());
        }
        facts.observe(stored.seq, &input, checker.actions(), checker.scheduler());
        if let Some(bytes) = snapshot_behind(connection, &stretch, last, stored.seq)? {
            checker.snapshot(&bytes);
        }
        Ok(())
    });
    match read {
        Err(error @ StoreError::Damaged { .. }) => checker.stop(&error.to_string()),
        other => other?,
    }
    // The tables go on beyond a stretch, and beyond where the decisions differ.
    if last && !checker.is_stopped() {
        for finding in facts.compare(connection, checker.scheduler())? {
            checker.found(finding.input, finding.what);
        }
    }
    Ok(checker.end())
}

/// There is nothing to begin at.
fn lost(config: &Config, stretch: Stretch, error: &StoreError) -> CheckReport {
    let mut checker = Checker::new(config.clone());
    checker.found(Some(stretch.from), error.to_string());
    checker.end()
}

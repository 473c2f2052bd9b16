//! Recorded runs, live and simulated, for the commands that read them.

use std::path::Path;

use headway_shared::record::RecordedRun;
use headway_shared::source::{RunSource, SourceError};

use crate::failure::Failure;

/// Opens the database of a live run, or what `headway simulate --record` wrote.
///
/// # Errors
/// There is no such file, or it is no record that this build can read.
pub(crate) fn open(path: &Path) -> Result<Box<dyn RunSource>, Failure> {
    opened(path, false)
}

/// The same, whatever decision version decided it.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_any(path: &Path) -> Result<Box<dyn RunSource>, Failure> {
    opened(path, true)
}

/// `any`: also of another decision version.
fn opened(path: &Path, any: bool) -> Result<Box<dyn RunSource>, Failure> {
    let unreadable = |error| Failure::unreadable(path, &error);
    #[cfg(feature = "live")]
    if headway_runtime::store::is_database(path).map_err(unreadable)? {
        use headway_runtime::store::RecordedRun;
        let run = if any { RecordedRun::open_any(path) } else { RecordedRun::open(path) };
        return Ok(Box::new(run.map_err(|error| unusable(path, &error))?));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let open = if any { RecordedRun::open_any } else { RecordedRun::open };
    let run = open(&name, bytes).map_err(|error| unusable(path, &error))?;
    Ok(Box::new(run))
}

/// A record that turns out to be wrong while it is read.
pub(crate) fn wrong(path: &Path, error: &SourceError) -> Failure {
    unusable(path, error)
}

fn unusable(path: &Path, error: &dyn std::error::Error) -> Failure {
    let help = "name a record that `headway simulate --record` or a live run wrote; `headway check` \
                says what is wrong with one";
    Failure::input(format!("{}: {error}\nhelp: {help}", path.display()))
}

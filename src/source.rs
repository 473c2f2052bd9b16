//! Recorded runs, live and simulated, for the commands that read them.

use std::fs::File;
use std::path::Path;

use headway_shared::config::Config;
use headway_shared::core::Scheduler;
use headway_shared::digest::Digest;
use headway_shared::input::Input;
use headway_shared::record::{Reader, RecordedRun};
use headway_shared::source::{Reported, RunSource, SourceError};
use headway_shared::time::Time;

use crate::failure::Failure;
use crate::progress::{Bar, Show};

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
        return Ok(watched(run.map_err(|error| unusable(path, &error))?));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let open = if any { RecordedRun::open_any } else { RecordedRun::open };
    Ok(watched(open(&name, bytes).map_err(|error| unusable(path, &error))?))
}

/// A run that shows how far it is read, where there is somebody to see it.
fn watched(run: impl RunSource + 'static) -> Box<dyn RunSource> {
    match Show::now() {
        Show::Nothing => Box::new(run),
        Show::Bar | Show::Lines => Box::new(Watched(run)),
    }
}

/// So many inputs are read between two looks at the clock.
const STRETCH: u64 = 1 << 12;

/// Shows how many of a run's inputs are read, of `all` that there are: to be called with each.
fn counter(all: Option<u64>) -> impl FnMut() {
    let bar = Bar::of(all.and_then(|all| all.try_into().ok()).unwrap_or(0), "inputs");
    let mut read = 0;
    move || {
        read += 1;
        if read % STRETCH == 0 {
            bar.ended(STRETCH);
        }
    }
}

/// The same while a record is verified.
pub(crate) fn counter_of(record: &Path) -> impl FnMut() {
    // To count them takes time, which is spent for those who look on.
    counter(if Show::now() == Show::Nothing { None } else { count(record) })
}

fn count(record: &Path) -> Option<u64> {
    #[cfg(feature = "live")]
    if headway_runtime::store::is_database(record).ok()? {
        return headway_runtime::store::count_verifiable(record).ok();
    }
    Some(Reader::open(File::open(record).ok()?).ok()?.count_inputs())
}

/// Shows how many of a run's inputs are read.
struct Watched<R>(R);

impl<R: RunSource> RunSource for Watched<R> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn config(&self) -> &Config {
        self.0.config()
    }

    fn core(&self) -> Result<Scheduler, SourceError> {
        self.0.core()
    }

    fn inputs(&self, each: &mut dyn FnMut(Time, &Input)) -> Result<(), SourceError> {
        let mut count = counter(self.length());
        self.0.inputs(&mut |at, input| {
            each(at, input);
            count();
        })
    }

    fn decided(
        &self,
        each: &mut dyn FnMut(Time, &Input, Option<Digest>),
    ) -> Result<(), SourceError> {
        let mut count = counter(self.length());
        self.0.decided(&mut |at, input, actions| {
            each(at, input, actions);
            count();
        })
    }

    fn first_input(&self) -> u64 {
        self.0.first_input()
    }

    fn length(&self) -> Option<u64> {
        self.0.length()
    }

    fn decision_version(&self) -> u32 {
        self.0.decision_version()
    }

    fn reported(&self) -> Result<Vec<Reported>, SourceError> {
        self.0.reported()
    }
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

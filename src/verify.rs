//! Whether a recorded run is what this build decides: replayed, and every decision compared.

use std::fs::File;
use std::path::Path;

use headway_shared::record::Reader;
use headway_shared::replay::{ReplayError, replay_with};

use crate::failure::Failure;
use crate::{source, terminal};

/// What can be done with a run that this build cannot verify.
const OTHER_VERSION: &str = "verify it with a build of that decision version; --state, --explain and \
                             --why read it all the same, and say from where on this build decides \
                             otherwise";

/// Replays a record, and says that every decision is the one it holds.
///
/// # Errors
/// It cannot be read or verified, or the core decides otherwise.
pub(crate) fn verify(record: &Path) -> Result<(), Failure> {
    let path = record.display();
    let unreadable = |error| {
        let help = "name a record that `headway simulate --record` or a live run wrote";
        Failure::input(format!("{path}: {error}\nhelp: {help}"))
    };
    #[cfg(feature = "live")]
    if database::replay(record)? {
        return Ok(());
    }
    let file = File::open(record).map_err(|error| Failure::unreadable(record, &error))?;
    let reader = Reader::open(file).map_err(|error| unreadable(error.to_string()))?;
    let (scenario, seed) = (reader.header().scenario.clone(), reader.header().seed);
    let replication = reader.header().replication;
    let replayed = replay_with(reader, &mut source::counter_of(record));
    match replayed {
        Ok(report) => terminal::data(&format!(
            "{scenario}, seed {seed}, replication {replication}: {} inputs until {}, the same \
             decisions (digest {})\n",
            report.decisions.inputs, report.end, report.decisions.digest
        )),
        Err(error @ ReplayError::OtherDecisions { .. }) => {
            Err(Failure::input(format!("{path}: {error}\nhelp: {OTHER_VERSION}")))
        }
        Err(error @ ReplayError::Record(_)) => Err(unreadable(error.to_string())),
        Err(error) => Err(Failure::broken(format!("{path}: {error}"))),
    }
}

/// Live runs.
#[cfg(feature = "live")]
mod database {
    use std::path::Path;

    use headway_runtime::store::{self, StoreError, Stretch};
    use headway_shared::record::DECISION_VERSION;
    use headway_shared::replay::ReplayReport;

    use super::OTHER_VERSION;
    use crate::checks::records::snapshots;
    use crate::failure::Failure;
    use crate::{source, terminal};

    /// The same for the database of a live run; false: it is none.
    pub(super) fn replay(record: &Path) -> Result<bool, Failure> {
        let path = record.display();
        if !store::is_database(record).map_err(|error| Failure::unreadable(record, &error))? {
            return Ok(false);
        }
        let replayed = store::replay_stretches_with(record, &mut source::counter_of(record));
        match replayed {
            Ok(replayed) => {
                let verified = replayed.iter().any(|(_, report)| report.is_some());
                for (stretch, report) in replayed {
                    terminal::data(&replayed_line(record, stretch, report))?;
                }
                let none = || {
                    let what = "no input could be verified";
                    Failure::input(format!("{path}: {what}\nhelp: {OTHER_VERSION}"))
                };
                verified.then_some(true).ok_or_else(none)
            }
            Err(StoreError::Replay(error)) => Err(Failure::broken(format!("{path}: {error}"))),
            Err(error) => {
                let help = "name the database of a run that this build can read";
                Err(Failure::input(format!("{path}: {error}\nhelp: {help}")))
            }
        }
    }

    fn replayed_line(record: &Path, stretch: Stretch, report: Option<ReplayReport>) -> String {
        let path = record.display();
        match report {
            Some(report) => format!(
                "{path}: {} inputs until {}, {}, the same decisions (digest {})\n",
                report.decisions.inputs,
                report.end,
                snapshots(&report),
                report.decisions.digest
            ),
            None => format!(
                "{path}: inputs {} to {}: not verified; decision version {} decided them, and this \
                 build decides as version {DECISION_VERSION}\n",
                stretch.from,
                stretch.to.saturating_sub(1),
                stretch.decision_version,
            ),
        }
    }
}

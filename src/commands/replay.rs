//! `headway replay`

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use headway_shared::record::Reader;
use headway_shared::replay::{ReplayError, replay, travel};
use headway_shared::time::{Span, Time};

use crate::failure::Failure;
use crate::look_back::{Questions, answer, time};
use crate::options::Form;
use crate::{source, terminal, timeline};

/// What can be done with a run that this build cannot verify.
const OTHER_VERSION: &str = "verify it with a build of that decision version; --state, --explain and \
                             --why read it all the same, and say from where on this build decides \
                             otherwise";

/// Feed a recorded run through the core again, compare every decision, and look back
///
/// With a question, the run goes up to --until (else to its end), and the answer is what the core held
/// or decided there. Exit code 1: the core decides otherwise than the record says.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The record, as `simulate --record` writes it, or the database of a live run
    record: PathBuf,
    /// Go up to this instant since the run's start: seconds, or 90s, 5m, 1.5h, 2d
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Span>,
    /// Show versions, the gate with its numbers, queues, and the ledger at that instant
    #[arg(long)]
    state: bool,
    /// Show the life of a sample, a number: its stages, versions, staleness, and what became of it
    #[arg(long, value_name = "SAMPLE")]
    explain: Option<u64>,
    /// Show why a request, a number, was refused, held or started
    #[arg(long, value_name = "REQUEST")]
    why: Option<u64>,
    /// What is written to stdout; JSON holds the state if no question is asked
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
    #[command(flatten)]
    timeline: timeline::Options,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let shown = timeline(args)?;
    verify_or_answer(args)?;
    terminal::beside(&shown, args.format == Form::Table)
}

/// Goes through the run for its timeline; gives it as text, empty where none is wanted.
fn timeline(args: &Args) -> Result<String, Failure> {
    if !args.timeline.is_wanted() {
        return Ok(String::new());
    }
    let run = source::open_any(&args.record)?;
    let wrong = |error| source::wrong(&args.record, &error);
    let mut timeline = args.timeline.begin(&run.core().map_err(wrong)?)?;
    let until = args.until.map(|until| Time::ZERO + until);
    travel(run.as_ref(), until, &mut [&mut timeline]).map_err(wrong)?;
    timeline.finish()
}

fn verify_or_answer(args: &Args) -> Result<(), Failure> {
    let Args { until, state, explain, why, .. } = *args;
    let asked = state || explain.is_some() || why.is_some();
    if asked || until.is_some() || args.format == Form::Json {
        let state = state || (!asked && args.format == Form::Json);
        let questions = Questions { until, state, explain, why };
        return answer(&args.record, &questions, args.format);
    }
    let path = args.record.display();
    let unreadable = |error| {
        let help = "name a record that `headway simulate --record` or a live run wrote";
        Failure::input(format!("{path}: {error}\nhelp: {help}"))
    };
    #[cfg(feature = "live")]
    if database::replay(&args.record)? {
        return Ok(());
    }
    let file =
        File::open(&args.record).map_err(|error| Failure::unreadable(&args.record, &error))?;
    let reader =
        Reader::open(BufReader::new(file)).map_err(|error| unreadable(error.to_string()))?;
    let (scenario, seed) = (reader.header().scenario.clone(), reader.header().seed);
    let replication = reader.header().replication;
    match replay(reader) {
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
    use crate::terminal;

    /// The same for the database of a live run; false: it is none.
    pub(super) fn replay(record: &Path) -> Result<bool, Failure> {
        let path = record.display();
        if !store::is_database(record).map_err(|error| Failure::unreadable(record, &error))? {
            return Ok(false);
        }
        match store::replay_stretches(record) {
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

//! `headway diagnose`

use std::path::{Path, PathBuf};

use headway_sim::diagnose::{self, Evidence, diagnose};
use headway_sim::report::results::Results;

use crate::failure::Failure;
use crate::options::Form;
use crate::{headline, source, terminal};

/// What a folder may hold, the database of a live run first.
const RECORDS: [&str; 2] = ["run.db", "run.record"];

/// Say where staleness comes from, and what is behind ratios that are far from 1
///
/// The parts of staleness, the time between generation and training, the three signs of health, and
/// the cause where there is one: of five troubles, and of ratios that are far from 1 age, mixing,
/// numerics or labels. Each cause comes with the numbers that speak for it and the settings to
/// change. Exit code 1: a cause was found.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The database of a live run, what `simulate --record` wrote, or a folder with either or with
    /// the result of `simulate`
    #[arg(value_name = "RUN|DIR")]
    run: PathBuf,
    /// What is written to stdout
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let evidence = evidence(&args.run)?;
    let diagnosis = diagnose(&evidence);
    terminal::data(&match args.format {
        Form::Table => headline::diagnosis(&evidence, &diagnosis),
        Form::Json => format!("{:#}\n", diagnose::json(&evidence, &diagnosis)),
    })?;
    if diagnosis.is_healthy() { Ok(()) } else { Err(Failure::Negative) }
}

/// What a run shows, or the folder of one.
pub(crate) fn evidence(path: &Path) -> Result<Evidence, Failure> {
    if path.is_dir() { of_folder(path) } else { of_run(path) }
}

fn of_run(path: &Path) -> Result<Evidence, Failure> {
    let run = source::open(path)?;
    Evidence::of_run(&*run).map_err(|error| source::wrong(path, &error))
}

/// The result of `simulate`, with the ages of its record where there is one; else a record.
fn of_folder(folder: &Path) -> Result<Evidence, Failure> {
    let record = RECORDS.map(|name| folder.join(name)).into_iter().find(|path| path.is_file());
    let results = match (Results::read(folder), &record) {
        (Ok(results), _) => results,
        (Err(_), Some(record)) => return of_run(record),
        (Err(error), None) => {
            let help =
                "name a folder that `headway simulate` wrote, or one with the run.db of a live run";
            return Err(Failure::input(format!("{error}\nhelp: {help}")));
        }
    };
    let mut evidence = Evidence::of_results(&results).map_err(|error| {
        let help =
            "diagnose one point: `headway simulate` with its settings, then the folder of that";
        Failure::input(format!("{}: {error}\nhelp: {help}", folder.display()))
    })?;
    if let Some(record) = &record {
        evidence.waits = of_run(record)?.waits;
    }
    Ok(evidence)
}

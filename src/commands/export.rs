//! `headway export`

use std::path::{Path, PathBuf};

use clap::Subcommand;
use headway_sim::export::Steps;
use headway_sim::report::folder::Folder;
use headway_sim::report::tensorboard::FILE_NAME;

use crate::failure::Failure;
use crate::{outcome, source, terminal};

/// What a folder may hold, the database of a live run first.
const RECORDS: [&str; 2] = ["run.db", "run.record"];

/// Write the train steps of a recorded run, live or simulated, for other tools
///
/// Of each step that made a version: its samples, their staleness and age, what was discarded and
/// refused since the step before, queues and replicas, and what the trainer reported.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    format: Format,
}

#[derive(Subcommand)]
enum Format {
    /// An event file for `tensorboard --logdir out/tensorboard`
    Tensorboard {
        #[command(flatten)]
        recorded: Recorded,
        /// Folder for it: TensorBoard calls the run so [default: out/tensorboard/NAME]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// A table, to stdout
    Csv {
        #[command(flatten)]
        recorded: Recorded,
    },
}

#[derive(clap::Args)]
struct Recorded {
    /// The database of a live run, what `simulate --record` wrote, or a folder with either
    #[arg(value_name = "RUN|DIR")]
    run: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.format {
        Format::Csv { recorded } => {
            let (steps, _) = read(&recorded.run)?;
            terminal::data(&steps.table().to_text().map_err(Failure::broken)?)
        }
        Format::Tensorboard { recorded, out } => {
            let (steps, name) = read(&recorded.run)?;
            let to = out.clone().unwrap_or_else(|| Path::new("out/tensorboard").join(name));
            let unwritable = |error| Failure::unwritable(&to, &error);
            let mut folder = Folder::open(&to).map_err(unwritable)?;
            folder.write(FILE_NAME, &steps.event_file()).map_err(unwritable)?;
            let wrote = outcome::commit(folder, &to)?;
            terminal::note(&format!("{} train steps; {wrote}", steps.len()));
            Ok(())
        }
    }
}

/// The steps, and what the run is called: its folder's name, or its file's.
fn read(path: &Path) -> Result<(Steps, PathBuf), Failure> {
    let record = match RECORDS.map(|name| path.join(name)).into_iter().find(|file| file.is_file()) {
        Some(record) => record,
        None if path.is_dir() => {
            let help = "name a folder with a run.db or a run.record (`headway simulate --record`)";
            return Err(Failure::input(format!("{}: no record\nhelp: {help}", path.display())));
        }
        None => path.to_owned(),
    };
    let source = source::open_any(&record)?;
    let steps = Steps::of_run(&*source).map_err(|error| source::wrong(&record, &error))?;
    if steps.is_empty() {
        let help = "`headway diagnose` says what a run without steps waits for";
        return Err(Failure::input(format!("{}: no train step\nhelp: {help}", record.display())));
    }
    let name = path.file_stem().unwrap_or("run".as_ref());
    Ok((steps, PathBuf::from(name)))
}

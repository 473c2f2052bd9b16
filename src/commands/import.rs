//! `headway import`

mod aiconfigurator;
mod azure_llm;
mod metrics;
mod mooncake;
mod openclaw;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use headway_sim::import::{ImportError, System};
use headway_sim::report::folder::Folder;

use crate::failure::Failure;
use crate::terminal;

/// Turn another system's trace, logs or predictions into a table that a scenario uses
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    format: Format,
}

#[derive(Subcommand)]
enum Format {
    AzureLlm(azure_llm::Trace),
    Mooncake(mooncake::Trace),
    Openclaw(openclaw::Records),
    /// Metric logs of verl (JSON lines, CSV of wandb or TensorBoard, printed lines): gives a row per
    /// train step with its times and lengths, for scenarios and calibrate --latency
    Verl(metrics::Logs),
    /// Metric logs of slime (JSON lines, CSV of wandb or TensorBoard, printed lines): gives a row per
    /// train step with its times and lengths, for scenarios and calibrate --latency
    Slime(metrics::Logs),
    /// Metric logs of AReaL (JSON lines, CSV of wandb or TensorBoard): gives a row per train step with
    /// its times, lengths and staleness, for scenarios and calibrate --latency
    Areal(metrics::Logs),
    Aiconfigurator(aiconfigurator::Printed),
}

/// Where the table goes.
#[derive(clap::Args)]
struct Output {
    /// File to write; it is replaced whole or not at all [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.format {
        Format::AzureLlm(trace) => azure_llm::run(trace),
        Format::Mooncake(trace) => mooncake::run(trace),
        Format::Openclaw(records) => openclaw::run(records),
        Format::Verl(logs) => metrics::run(System::Verl, logs),
        Format::Slime(logs) => metrics::run(System::Slime, logs),
        Format::Areal(logs) => metrics::run(System::Areal, logs),
        Format::Aiconfigurator(printed) => aiconfigurator::run(printed),
    }
}

impl Output {
    /// Writes the table. `import` reads `file`, and gives what is said about it at the end.
    fn table(
        &self,
        file: &Path,
        import: impl FnOnce(&mut dyn Write) -> Result<String, ImportError>,
    ) -> Result<(), Failure> {
        let Some(out) = &self.out else {
            let said = import(&mut BufWriter::new(io::stdout().lock()))
                .map_err(|error| failure(file, error, |error| terminal::unwritten(&error)))?;
            terminal::remark(&said);
            return Ok(());
        };
        let wrong = |what: &str| Failure::input(format!("{}: {what}", out.display()));
        let unwritable =
            |error| wrong(&format!("cannot be written: {error}\nhelp: choose another --out FILE"));
        let (Some(name), Some(parent)) = (out.file_name(), out.parent()) else {
            return Err(wrong("names no file\nhelp: write --out table.csv"));
        };
        let parent = if parent == Path::new("") { Path::new(".") } else { parent };
        let mut folder = Folder::open(parent).map_err(unwritable)?;
        let table = folder.create(&name.to_string_lossy()).map_err(unwritable)?;
        let said =
            import(&mut BufWriter::new(table)).map_err(|error| failure(file, error, unwritable))?;
        folder.commit().map_err(unwritable)?;
        terminal::remark(&format!("{said}; wrote {}", out.display()));
        Ok(())
    }
}

fn open(file: &Path) -> Result<BufReader<File>, Failure> {
    let opened = File::open(file).map_err(|error| Failure::unreadable(file, &error))?;
    Ok(BufReader::new(opened))
}

/// What is wrong with the text, where, and what to do about it.
fn failure(
    file: &Path,
    error: ImportError,
    unwritable: impl FnOnce(io::Error) -> Failure,
) -> Failure {
    let file_name = file.display();
    match error {
        ImportError::Read(error) => Failure::unreadable(file, &error),
        ImportError::Write(error) => unwritable(error),
        ImportError::NothingFits => Failure::input(format!(
            "{file_name}: {error}\nhelp: take smaller batches, or more GPUs (--tp-size)"
        )),
        ImportError::Wrong { line, column, problem } => Failure::input(format!(
            "{file_name}:{line}:{column}: {problem}\nhelp: {}",
            problem.help()
        )),
    }
}

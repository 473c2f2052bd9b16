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

use crate::failure::Failure;
use crate::terminal;
use crate::whole_file::WholeFile;

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
            let said = import(&mut BufWriter::new(io::stdout().lock())).map_err(|error| {
                Failure::import(file, error, |error| terminal::unwritten(&error))
            })?;
            terminal::remark(&said);
            return Ok(());
        };
        let to = WholeFile { path: out, option: "--out", example: "table.csv" };
        let unwritable = |error| to.unwritable(&error);
        let (mut folder, name) = to.stage()?;
        let table = folder.create(&name).map_err(unwritable)?;
        let said = import(&mut BufWriter::new(table))
            .map_err(|error| Failure::import(file, error, unwritable))?;
        folder.commit().map_err(unwritable)?;
        terminal::remark(&format!("{said}; wrote {}", out.display()));
        Ok(())
    }
}

fn open(file: &Path) -> Result<BufReader<File>, Failure> {
    let opened = File::open(file).map_err(|error| Failure::unreadable(file, &error))?;
    Ok(BufReader::new(opened))
}

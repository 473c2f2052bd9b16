//! `headway import`

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use headway_sim::import::{ImportError, ImportReport, import_azure_llm};
use headway_sim::report::folder::Folder;
use headway_sim::report::number;

use crate::failure::Failure;
use crate::terminal;

/// Turn another system's trace into a table that a scenario replays
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    format: Format,
}

#[derive(Subcommand)]
enum Format {
    AzureLlm(Trace),
}

/// The Azure LLM inference trace of 2023 (columns TIMESTAMP,ContextTokens,GeneratedTokens): gives
/// arrival_sec,prompt_tokens,output_tokens, a row per request in the order of the file
#[derive(clap::Args)]
struct Trace {
    /// The trace, a CSV file
    file: PathBuf,
    /// File to write; it is replaced whole or not at all [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Format::AzureLlm(Trace { file, out }) = &args.format;
    let trace = File::open(file).map_err(|error| Failure::unreadable(file, &error))?;
    match out {
        Some(out) => {
            let report = to_file(BufReader::new(trace), file, out)?;
            terminal::note(&format!("{}; wrote {}", said(&report), out.display()));
        }
        None => {
            let table = BufWriter::new(io::stdout().lock());
            let report = import_azure_llm(BufReader::new(trace), table)
                .map_err(|error| failure(file, error, |error| terminal::unwritten(&error)))?;
            terminal::note(&said(&report));
        }
    }
    Ok(())
}

fn to_file(trace: BufReader<File>, file: &Path, out: &Path) -> Result<ImportReport, Failure> {
    let wrong = |what: &str| Failure::input(format!("{}: {what}", out.display()));
    let unwritable =
        |error| wrong(&format!("cannot be written: {error}\nhelp: choose another --out FILE"));
    let (Some(name), Some(parent)) = (out.file_name(), out.parent()) else {
        return Err(wrong("names no file\nhelp: write --out trace.csv"));
    };
    let parent = if parent == Path::new("") { Path::new(".") } else { parent };
    let mut folder = Folder::open(parent).map_err(unwritable)?;
    let table = folder.create(&name.to_string_lossy()).map_err(unwritable)?;
    let report = import_azure_llm(trace, BufWriter::new(table))
        .map_err(|error| failure(file, error, unwritable))?;
    folder.commit().map_err(unwritable)?;
    Ok(report)
}

/// What is wrong with the trace, where, and what to do about it.
fn failure(
    file: &Path,
    error: ImportError,
    unwritable: impl FnOnce(io::Error) -> Failure,
) -> Failure {
    match error {
        ImportError::Read(error) => Failure::unreadable(file, &error),
        ImportError::Write(error) => unwritable(error),
        ImportError::Wrong { line, column, problem } => Failure::input(format!(
            "{}:{line}:{column}: {problem}\nhelp: {}",
            file.display(),
            problem.help()
        )),
    }
}

fn said(report: &ImportReport) -> String {
    let ImportReport { rows, prompt_tokens, output_tokens, .. } = *report;
    let mean = |tokens: u64| number::short(Some(tokens as f64 / rows as f64));
    format!(
        "{rows} requests in {} s, with {} prompt and {} generated tokens on average",
        number::short(Some(report.seconds())),
        mean(prompt_tokens),
        mean(output_tokens)
    )
}

//! `headway import`

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
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
    let trace = BufReader::new(trace);
    let Some(out) = out else {
        let table = BufWriter::new(io::stdout().lock());
        let report = import_azure_llm(trace, table).map_err(|error| match error {
            ImportError::Write(error) => terminal::unwritten(&error),
            other => unimported(file, other),
        })?;
        terminal::note(&said(&report));
        return Ok(());
    };
    let report = to_file(trace, file, out)?;
    terminal::note(&format!("{}; wrote {}", said(&report), out.display()));
    Ok(())
}

fn to_file(trace: BufReader<File>, file: &Path, out: &Path) -> Result<ImportReport, Failure> {
    let (Some(name), Some(parent)) = (out.file_name(), out.parent()) else {
        return Err(Failure::input(format!(
            "{}: names no file\nhelp: write --out trace.csv",
            out.display()
        )));
    };
    let parent = if parent == Path::new("") { Path::new(".") } else { parent };
    let unwritable = |error: io::Error| {
        let out = out.display();
        Failure::input(format!(
            "{out}: cannot be written: {error}\nhelp: choose another --out FILE"
        ))
    };
    let mut folder = Folder::open(parent).map_err(unwritable)?;
    let mut table = BufWriter::new(folder.create(&name.to_string_lossy()).map_err(unwritable)?);
    let report = import_azure_llm(trace, &mut table).map_err(|error| match error {
        ImportError::Write(error) => unwritable(error),
        other => unimported(file, other),
    })?;
    table.flush().map_err(unwritable)?;
    drop(table);
    folder.commit().map_err(unwritable)?;
    Ok(report)
}

/// What is wrong with the trace, where, and what to do about it.
fn unimported(file: &Path, error: ImportError) -> Failure {
    match error {
        ImportError::Read(error) => Failure::unreadable(file, &error),
        ImportError::Wrong { line, column, problem } => Failure::input(format!(
            "{}:{line}:{column}: {problem}\nhelp: {}",
            file.display(),
            problem.help()
        )),
        ImportError::Write(error) => terminal::unwritten(&error),
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

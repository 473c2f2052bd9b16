//! `headway import verl`, `slime` and `areal`

use std::path::PathBuf;

use headway_sim::import::{MetricsLog, MetricsReport, System};

use super::{Output, open};
use crate::failure::Failure;

/// Logs of one run.
#[derive(clap::Args)]
pub(super) struct Logs {
    /// Logs of one run
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The columns of the table, such as step_sec,transfer_sec; a step that lacks one has no row
    /// [default: those that half of the steps have]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    #[command(flatten)]
    output: Output,
}

pub(super) fn run(system: System, Logs { files, columns, output }: &Logs) -> Result<(), Failure> {
    let wanted: Vec<&'static str> =
        columns.iter().map(|name| column(system, name)).collect::<Result<_, _>>()?;
    let mut log = MetricsLog::new(system);
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        log.read(open(file)?, &name)
            .map_err(|error| Failure::import(file, error, Failure::broken))?;
    }
    let Some(last) = files.last() else { return Ok(()) };
    output.table(last, |writer| Ok(said(&log.write(&wanted, writer)?)))
}

fn column(system: System, name: &str) -> Result<&'static str, Failure> {
    let columns = system.columns();
    let found = columns.iter().map(|column| column.name).find(|column| *column == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        Failure::input(format!(
            "--columns {name}: {} has no such column\nhelp: write some of {}",
            system.word(),
            names.join(", ")
        ))
    })
}

fn said(report: &MetricsReport) -> String {
    let all = report.rows + report.short;
    let mut said = format!("{} steps with {}", report.rows, report.columns.join(", "));
    if report.short > 0 {
        said += &format!("\n{} steps lack one of them and are left out", report.short);
    }
    for (column, steps) in &report.rare {
        said += &format!("\nleft out: {column}, in {steps} of {all} steps (--columns {column})");
    }
    if !report.unknown.is_empty() {
        said += &format!("\nin no column: {}", report.unknown.join(", "));
    }
    said
}

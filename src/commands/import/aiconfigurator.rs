//! `headway import aiconfigurator`

use std::path::PathBuf;

use headway_sim::import::{Estimates, ImportError, ImportedRates};

use super::{Output, open};
use crate::failure::Failure;

/// What `aiconfigurator cli estimate` printed for a model, GPU and engine, in one file or several,
/// an estimate for each batch size: gives a table of rates, which `decode_table` takes
#[derive(clap::Args)]
pub(super) struct Printed {
    /// What it printed, warnings included: `... --estimate-mode static > FILE 2>&1`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where the numbers come from, for the table [default: the tool and its version]
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
    #[command(flatten)]
    output: Output,
}

pub(super) fn run(Printed { files, source, output }: &Printed) -> Result<(), Failure> {
    let mut estimates = Estimates::default();
    for file in files {
        let unread = |error| Failure::import(file, error, Failure::broken);
        estimates.read(open(file)?).map_err(unread)?;
    }
    let Some(last) = files.last() else { return Ok(()) };
    output.table(last, |table| {
        let rates = estimates.finish(source.as_deref())?;
        table.write_all(rates.csv.as_bytes()).map_err(ImportError::Write)?;
        table.flush().map_err(ImportError::Write)?;
        Ok(said(&rates))
    })
}

fn said(ImportedRates { table, left_out, .. }: &ImportedRates) -> String {
    let batches = table.points.len();
    let largest = table.points.last().map_or(0, |&(batch, _)| batch);
    let about = format!("{batches} batch sizes up to {largest} of {} sequences", table.model);
    match left_out.iter().map(u32::to_string).collect::<Vec<_>>() {
        none if none.is_empty() => about,
        some => format!("{about}; left out, for they do not fit: {}", some.join(", ")),
    }
}

//! `headway import openclaw`

use std::path::PathBuf;

use clap::ValueEnum;
use headway_sim::import::{OpenClawTable, import_openclaw};

use super::{Output, open};
use crate::failure::Failure;

/// A record file of OpenClaw-RL (`OPENCLAW_RECORD_FILE`, JSON lines): gives when sessions began and
/// how many turns they had, or what was between turns
#[derive(clap::Args)]
pub(super) struct Records {
    /// The record file, JSON lines
    file: PathBuf,
    /// Which table: arrival_sec,turns of each session, or between_sec and next_state of each turn
    #[arg(long, value_enum, default_value = "sessions")]
    table: Table,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Table {
    Sessions,
    Turns,
}

pub(super) fn run(Records { file, table, output }: &Records) -> Result<(), Failure> {
    let records = open(file)?;
    let table = match table {
        Table::Sessions => OpenClawTable::Sessions,
        Table::Turns => OpenClawTable::Turns,
    };
    output.table(file, |writer| {
        let report = import_openclaw(records, writer, table)?;
        Ok(format!("{} turns of {} sessions: {} rows", report.turns, report.sessions, report.rows))
    })
}

//! `headway import mooncake`

use std::path::PathBuf;

use headway_sim::import::import_mooncake;

use super::{Output, azure_llm, open};
use crate::failure::Failure;

/// A trace of Mooncake (JSON lines with timestamp, input_length, output_length): gives
/// arrival_sec,prompt_tokens,output_tokens, a row per request in the order of the file
#[derive(clap::Args)]
pub(super) struct Trace {
    /// The trace, JSON lines
    file: PathBuf,
    #[command(flatten)]
    output: Output,
}

pub(super) fn run(Trace { file, output }: &Trace) -> Result<(), Failure> {
    let trace = open(file)?;
    output.table(file, |table| import_mooncake(trace, table).map(|report| azure_llm::said(&report)))
}

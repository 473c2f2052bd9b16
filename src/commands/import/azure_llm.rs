//! `headway import azure-llm`

use std::path::PathBuf;

use headway_sim::import::{ImportReport, import_azure_llm};
use headway_sim::report::number;

use super::{Output, open};
use crate::failure::Failure;

/// The Azure LLM inference trace of 2023 (columns TIMESTAMP,ContextTokens,GeneratedTokens): gives
/// arrival_sec,prompt_tokens,output_tokens, a row per request in the order of the file
#[derive(clap::Args)]
pub(super) struct Trace {
    /// The trace, a CSV file
    file: PathBuf,
    #[command(flatten)]
    output: Output,
}

pub(super) fn run(Trace { file, output }: &Trace) -> Result<(), Failure> {
    let trace = open(file)?;
    output.table(file, |table| import_azure_llm(trace, table).map(|report| said(&report)))
}

pub(super) fn said(report: &ImportReport) -> String {
    let ImportReport { rows, prompt_tokens, output_tokens, .. } = *report;
    let mean = |tokens: u64| number::short(Some(tokens as f64 / rows as f64));
    format!(
        "{rows} requests in {} s, with {} prompt and {} generated tokens on average",
        number::short(Some(report.seconds())),
        mean(prompt_tokens),
        mean(output_tokens)
    )
}

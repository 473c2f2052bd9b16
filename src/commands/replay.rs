//! `headway replay`

use std::path::PathBuf;

use headway_shared::time::Span;

use crate::failure::Failure;
use crate::look_back::{Questions, answer, time};
use crate::options::Form;
use crate::verify::verify;
use crate::{terminal, timeline};

/// Feed a recorded run through the core again, compare every decision, and look back
///
/// With a question, the run goes up to --until (else to its end), and the answer is what the core held
/// or decided there. Exit code 1: the core decides otherwise than the record says.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The record, as `simulate --record` writes it, or the database of a live run
    record: PathBuf,
    /// Go up to this instant since the run's start: seconds, or 90s, 5m, 1.5h, 2d
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Span>,
    /// Show versions, the gate with its numbers, queues, and the ledger at that instant
    #[arg(long)]
    state: bool,
    /// Show the life of a sample, a number: its stages, versions, staleness, and what became of it
    #[arg(long, value_name = "SAMPLE")]
    explain: Option<u64>,
    /// Show why a request, a number, was refused, held or started
    #[arg(long, value_name = "REQUEST")]
    why: Option<u64>,
    /// What is written to stdout; JSON holds the state if no question is asked
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
    #[command(flatten)]
    timeline: timeline::Options,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let shown = args.timeline.of_record(&args.record, args.until)?;
    verify_or_answer(args)?;
    terminal::beside(&shown, args.format == Form::Table)
}

fn verify_or_answer(args: &Args) -> Result<(), Failure> {
    let Args { until, state, explain, why, .. } = *args;
    let asked = state || explain.is_some() || why.is_some();
    if asked || until.is_some() || args.format == Form::Json {
        let state = state || (!asked && args.format == Form::Json);
        let questions = Questions { until, state, explain, why };
        return answer(&args.record, &questions, args.format);
    }
    verify(&args.record)
}

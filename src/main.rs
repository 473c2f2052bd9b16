//! `headway`: predict and control off-policy staleness in asynchronous RL.

mod commands;
mod failure;
mod headline;
mod options;
mod outcome;
mod progress;
mod terminal;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{compare, import, plot, replay, simulate, sweep};

/// Predict and control off-policy staleness in asynchronous RL.
///
/// Data goes to stdout, progress and warnings to stderr. Exit code 0: fine; 1: a run stalled or
/// failed, or a comparison did not hold; 2: the input is wrong.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Simulate(simulate::Args),
    Sweep(sweep::Args),
    Compare(compare::Args),
    Plot(plot::Args),
    Replay(replay::Args),
    Import(import::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Simulate(args) => simulate::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Plot(args) => plot::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Import(args) => import::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            failure.exit_code()
        }
    }
}

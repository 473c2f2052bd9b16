//! `headway`: predict and control off-policy staleness in asynchronous RL.

mod commands;
mod failure;
mod headline;
#[cfg(feature = "torch")]
mod live;
mod options;
mod outcome;
mod progress;
mod steps;
mod terminal;

use std::panic;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{compare, import, plan, plot, replay, simulate, sweep};
use failure::Failure;

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
    Plan(plan::Args),
    Plot(plot::Args),
    Replay(replay::Args),
    Import(import::Args),
    #[cfg(feature = "torch")]
    Run(commands::run::Args),
    #[cfg(feature = "torch")]
    Environment(commands::environment::Args),
}

impl Command {
    fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Simulate(args) => simulate::run(args),
            Self::Sweep(args) => sweep::run(args),
            Self::Compare(args) => compare::run(args),
            Self::Plan(args) => plan::run(args),
            Self::Plot(args) => plot::run(args),
            Self::Replay(args) => replay::run(args),
            Self::Import(args) => import::run(args),
            #[cfg(feature = "torch")]
            Self::Run(args) => commands::run::run(args),
            #[cfg(feature = "torch")]
            Self::Environment(args) => commands::environment::run(args),
        }
    }
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    panic::set_hook(Box::new(terminal::internal_error));
    match panic::catch_unwind(|| command.run()) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        // The hook has said what there is to say.
        Err(_) => ExitCode::FAILURE,
        Ok(Err(failure)) => {
            failure.report();
            failure.exit_code()
        }
    }
}

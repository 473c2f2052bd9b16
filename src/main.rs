//! `headway`: predict and control off-policy staleness in asynchronous RL.

mod checks;
mod commands;
mod described;
mod failure;
mod headline;
mod kept_sweep;
#[cfg(feature = "live")]
mod live;
mod look_back;
mod measured;
mod options;
mod outcome;
mod page;
mod progress;
mod promotion;
mod redrawn;
mod repeat;
mod schemas;
mod shards;
mod sides;
mod source;
mod starter;
mod steps;
mod terminal;
mod timeline;
mod usage;
mod values;
mod verify;
mod whole_file;
mod workloads;

use std::panic;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use commands::{
    calibrate, check, compare, completions, describe, diagnose, export, guard, import, init, man,
    merge, plan, plot, promote, replay, schema, simulate, sweep, torture, tournament, tune,
    validate,
};
#[cfg(feature = "live")]
use commands::{doctor, environment, run};
use failure::Failure;

/// Predict and control off-policy staleness in asynchronous RL.
///
/// Data goes to stdout, progress and warnings to stderr. Exit code 0: fine; 1: a run stalled or
/// failed, a comparison did not hold, or a cause was found; 2: the input is wrong.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    /// Say nothing on stderr but warnings and errors: no progress, and no word of what was written
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Simulate(simulate::Args),
    Sweep(sweep::Args),
    Merge(merge::Args),
    Compare(compare::Args),
    Tune(tune::Args),
    Plan(plan::Args),
    Promote(promote::Args),
    Tournament(tournament::Args),
    Plot(plot::Args),
    Calibrate(calibrate::Args),
    Guard(guard::Args),
    Replay(replay::Args),
    Validate(validate::Args),
    Describe(describe::Args),
    Diagnose(diagnose::Args),
    Check(check::Args),
    Torture(torture::Args),
    Import(import::Args),
    Export(export::Args),
    Init(init::Args),
    Schema(schema::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[cfg(feature = "live")]
    Doctor(doctor::Args),
    #[cfg(feature = "live")]
    Run(run::Args),
    #[cfg(feature = "live")]
    Environment(environment::Args),
}

impl Command {
    fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Simulate(args) => simulate::run(args),
            Self::Sweep(args) => sweep::run(args),
            Self::Merge(args) => merge::run(args),
            Self::Compare(args) => compare::run(args),
            Self::Tune(args) => tune::run(args),
            Self::Plan(args) => plan::run(args),
            Self::Promote(args) => promote::run(args),
            Self::Tournament(args) => tournament::run(args),
            Self::Plot(args) => plot::run(args),
            Self::Calibrate(args) => calibrate::run(args),
            Self::Guard(args) => guard::run(args),
            Self::Replay(args) => replay::run(args),
            Self::Validate(args) => validate::run(args),
            Self::Describe(args) => describe::run(args),
            Self::Diagnose(args) => diagnose::run(args),
            Self::Check(args) => check::run(args),
            Self::Torture(args) => torture::run(args),
            Self::Import(args) => import::run(args),
            Self::Export(args) => export::run(args),
            Self::Init(args) => init::run(args),
            Self::Schema(args) => schema::run(args),
            Self::Completions(args) => completions::run(args),
            Self::Man(args) => man::run(args),
            #[cfg(feature = "live")]
            Self::Doctor(args) => doctor::run(args),
            #[cfg(feature = "live")]
            Self::Run(args) => run::run(args),
            #[cfg(feature = "live")]
            Self::Environment(args) => environment::run(args),
        }
    }
}

/// The command line, for what is made from it.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

fn main() -> ExitCode {
    let Cli { quiet, command } = usage::parse();
    if quiet {
        progress::be_quiet();
    }
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

//! `headway tournament`

use std::path::Path;

use headway_shared::config::{Choice as _, SyncMode};
use headway_sim::tournament::entrant::{ENTRANTS, Entrant};
use headway_sim::tournament::results::TournamentResults;
use headway_sim::tournament::{Task, play};

use crate::failure::Failure;
use crate::options::{Format, Output, Overrides};
use crate::progress::Bar;
use crate::{headline, outcome, repeat, terminal, values, workloads};

/// Play every gate and every sync mode, each with its knob swept, over the same worlds
///
/// What cannot be configured, stalls or fails has a row with the reason; that is a result, and no
/// failure of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A world: mild, heavy, sessions, or a scenario's TOML file; repeatable [default: the three]
    #[arg(long, value_name = "NAME|FILE")]
    workload: Vec<String>,
    /// Who takes part, such as headway,areal,verl [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    gates: Vec<String>,
    /// How weights reach the replicas, such as in_flight,rolling [default: all]
    #[arg(long, value_name = "MODES", value_delimiter = ',')]
    sync_modes: Vec<String>,
    /// Runs of each row, two or more [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    replications: Option<u32>,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let workloads = workloads::load(&args.workload, &args.overrides)?;
    let task = Task {
        workloads: &workloads,
        entrants: &values::chosen("--gates", &args.gates, &entrants())?,
        modes: &values::chosen("--sync-modes", &args.sync_modes, &modes())?,
        replications: args.replications,
        jobs: args.output.threads(),
    };
    let to = args.output.folder("tournament");
    let folder = outcome::folder(&to)?;
    let tournament = play(&task, &Bar::new(0)).map_err(Failure::broken)?;
    let mut results = TournamentResults::of(&tournament, &task);
    results.meta.command = command(args);
    let wrote = outcome::save_tournament(folder, &to, &results)?;
    terminal::data(&match args.output.format {
        Format::Table => headline::tournament(&results),
        Format::Json => format!("{:#}\n", results.document().map_err(Failure::broken)?),
        Format::Csv => results.table.to_text().map_err(Failure::broken)?,
    })?;
    terminal::remark(&wrote);
    Ok(())
}

/// The command that repeats it.
fn command(args: &Args) -> String {
    let names = args.workload.iter().map(|name| repeat::shown(Path::new(name)));
    let mut words = repeat::texts("--workload", &names.collect::<Vec<_>>());
    let lists = [("--gates", &args.gates), ("--sync-modes", &args.sync_modes)];
    let given = lists.into_iter().filter(|(_, names)| !names.is_empty());
    words.extend(given.map(|(option, names)| format!("{option} {}", names.join(","))));
    words.extend(repeat::overrides(&args.overrides));
    words.extend(args.replications.map(|count| format!("--replications {count}")));
    repeat::command("tournament", words)
}

fn entrants() -> Vec<(&'static str, &'static Entrant)> {
    ENTRANTS.iter().map(|entrant| (entrant.name, entrant)).collect()
}

fn modes() -> Vec<(&'static str, SyncMode)> {
    SyncMode::ALL.to_vec()
}

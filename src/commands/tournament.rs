//! `headway tournament`

use std::path::{Path, PathBuf};

use headway_shared::config::{Choice as _, Layers, SyncMode, nearest};
use headway_sim::report::folder::Folder;
use headway_sim::scenario::Scenario;
use headway_sim::tournament::entrant::{ENTRANTS, Entrant};
use headway_sim::tournament::results::TournamentResults;
use headway_sim::tournament::{Task, play};

use crate::failure::Failure;
use crate::options::{self, Format, Output, Overrides};
use crate::progress::Bar;
use crate::{headline, outcome, terminal};

/// The workloads that come with Headway, within the program: they work in any folder.
const WORKLOADS: [(&str, &str); 3] = [
    ("mild", include_str!("../../scenarios/tournament-mild.toml")),
    ("heavy", include_str!("../../scenarios/tournament-heavy.toml")),
    ("sessions", include_str!("../../scenarios/tournament-sessions.toml")),
];

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
    let workloads = workloads(args)?;
    let task = Task {
        workloads: &workloads,
        entrants: &chosen("--gates", &args.gates, &entrants())?,
        modes: &chosen("--sync-modes", &args.sync_modes, &modes())?,
        replications: args.replications,
        jobs: args.output.threads(),
    };
    let to = args.output.folder("tournament");
    let folder = Folder::open(&to).map_err(|error| Failure::unwritable(&to, &error))?;
    let bar = Bar::new(0);
    let tournament = play(&task, &bar).map_err(Failure::broken)?;
    drop(bar);
    let results = TournamentResults::of(&tournament, &task);
    let wrote = outcome::save_tournament(folder, &to, &results)?;
    terminal::data(&match args.output.format {
        Format::Table => headline::tournament(&results),
        Format::Json => format!("{:#}\n", results.document().map_err(Failure::broken)?),
        Format::Csv => results.table.to_text().map_err(Failure::broken)?,
    })?;
    terminal::remark(&wrote);
    Ok(())
}

/// The worlds that were asked for.
fn workloads(args: &Args) -> Result<Vec<Scenario>, Failure> {
    let names: Vec<&str> = match args.workload.is_empty() {
        true => WORKLOADS.iter().map(|(name, _)| *name).collect(),
        false => args.workload.iter().map(String::as_str).collect(),
    };
    let load = |name: &str| match WORKLOADS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => {
            let file = format!("scenarios/tournament-{name}.toml");
            let layers = Layers::new().toml(file, (*text).to_owned());
            options::lay_over(layers, Path::new("."), &args.overrides, &[])
        }
        None => {
            let path = PathBuf::from(name);
            if !path.exists() {
                let known = WORKLOADS.map(|(name, _)| name).join(", ");
                let help = format!("write {known}, or the name of a scenario's file");
                return Err(Failure::input(format!(
                    "no workload and no file `{name}`\nhelp: {help}"
                )));
            }
            options::load(&path, &args.overrides, &[])
        }
    };
    let scenario = |name| load(name).map(|loaded| loaded.scenario);
    let found: Vec<Scenario> = names.into_iter().map(scenario).collect::<Result<_, _>>()?;
    for (place, scenario) in found.iter().enumerate() {
        if found[..place].iter().any(|other| other.name == scenario.name) {
            let message = format!("two workloads are named `{}`", scenario.name);
            return Err(Failure::input(format!("{message}\nhelp: name each of them once")));
        }
    }
    Ok(found)
}

fn entrants() -> Vec<(&'static str, &'static Entrant)> {
    ENTRANTS.iter().map(|entrant| (entrant.name, entrant)).collect()
}

fn modes() -> Vec<(&'static str, SyncMode)> {
    SyncMode::ALL.to_vec()
}

/// Those of `all` that were named, in the order of `all`; every one where none was.
fn chosen<T: Copy>(
    option: &str,
    names: &[String],
    all: &[(&'static str, T)],
) -> Result<Vec<T>, Failure> {
    let known: Vec<&'static str> = all.iter().map(|(name, _)| *name).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let near = nearest(name, &known);
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write some of {}", known.join(", ")),
        };
        return Err(Failure::input(format!("{option}: there is no `{name}`\nhelp: {help}")));
    }
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    Ok(all.iter().filter(|(name, _)| wanted(name)).map(|(_, value)| *value).collect())
}

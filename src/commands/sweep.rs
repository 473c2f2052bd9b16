//! `headway sweep`

use std::io::Write;
use std::path::PathBuf;

use headway_sim::report::folder::Folder;
use headway_sim::report::results::Kind;
use headway_sim::sweep::{Plan, over};

use crate::failure::Failure;
use crate::options::{self, Loaded, Output, Overrides};
use crate::progress::Bar;
use crate::{outcome, terminal};

/// Simulate every point of a grid, replicated and in parallel: table, CSV and plots
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The scenario, a TOML file
    scenario: PathBuf,
    /// What to sweep: KEY=0,1,2,4 or KEY=0..16 or KEY=0..16/4, several make a grid; `cases`
    /// stands for the scenario's named variants [default: the scenario's]
    #[arg(long, value_name = "KEY=VALUES")]
    over: Vec<String>,
    /// Runs of each point [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replications: Option<u32>,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Loaded { scenario, tree } = options::load(&args.scenario, &args.overrides, &[])?;
    let axes = over::parse(&expressions(args, &scenario)?, &tree, &scenario.cases)?;
    let replications = args.replications.unwrap_or(scenario.replications);
    let plan = Plan::new(Kind::Sweep, &scenario, &axes, 0..replications)?;
    outcome::warn(&plan);

    let to = args.output.folder(&scenario.name);
    let folder = Folder::open(&to).map_err(|error| Failure::unwritable(&to, &error))?;
    let bar = Bar::new(plan.runs());
    let mut done = plan
        .run(args.output.threads(), None::<Box<dyn Write + Send>>, &bar)
        .map_err(Failure::broken)?;
    drop(bar);
    // The files come first: whoever closes the pipe early still has them.
    let wrote = outcome::save(folder, &to, &mut done.results)?;
    terminal::data(&outcome::text(&done.results, args.output.format)?)?;
    terminal::note(&wrote);
    outcome::judge(&done, &plan, &args.scenario, &args.overrides)
}

/// What to sweep: as asked, else as the scenario says, else its cases.
fn expressions(
    args: &Args,
    scenario: &headway_sim::scenario::Scenario,
) -> Result<Vec<String>, Failure> {
    if !args.over.is_empty() {
        return Ok(args.over.clone());
    }
    if !scenario.sweep.is_empty() {
        return Ok(scenario.sweep.clone());
    }
    if !scenario.cases.is_empty() {
        return Ok(vec![over::CASES.into()]);
    }
    Err(Failure::input(format!(
        "{}: says nothing to sweep\nhelp: add --over KEY=VALUES, such as --over \
         max_head_off_policyness=0,1,2,4,8",
        args.scenario.display()
    )))
}

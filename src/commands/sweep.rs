//! `headway sweep`

use std::path::PathBuf;

use headway_sim::report::results::Kind;
use headway_sim::scenario::Scenario;
use headway_sim::sweep::journal::{Asked, Header};
use headway_sim::sweep::shard::Shard;
use headway_sim::sweep::{Plan, over};

use crate::failure::Failure;
use crate::kept_sweep::KeptSweep;
use crate::options::{self, Loaded, Output, Overrides};
use crate::{outcome, repeat, shards, terminal};

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
    /// Run one share of it: the K-th of N, counted from 1, into DIR/shard-K-of-N, for `headway
    /// merge`; `auto` takes it from Slurm's array variables or Kubernetes' job index, and N from
    /// HEADWAY_SHARDS where they do not say it
    #[arg(long, value_name = "K/N|auto", conflicts_with = "format")]
    shard: Option<String>,
    /// Go on where this sweep was killed: runs that had ended are not run again
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let shard = args.shard.as_deref().map(shards::wanted).transpose()?;
    let Loaded { scenario, tree } = options::load(&args.scenario, &args.overrides, &[])?;
    let (source, swept) = swept(args, &scenario)?;
    let axes = over::parse_from(&source, &swept, &tree, &scenario.cases)?;
    let replications = args.replications.unwrap_or(scenario.replications);
    let plan = Plan::new(Kind::Sweep, &scenario, &axes, 0..replications)?;
    outcome::warn(&plan);

    let to = args.output.folder(&scenario.name);
    let to = shard.map_or_else(|| to.clone(), |shard| to.join(shard.folder()));
    let header = Header::new(plan.outline(), shard.unwrap_or(Shard::WHOLE), asked(args));
    let begin = if args.resume { KeptSweep::resume } else { KeptSweep::begin };
    let sweep = begin(&to, &header, shard.is_some())?;
    let (folder, runs) = sweep.finish(&plan, header.shard, args.output.threads())?;
    if shard.is_some() {
        return shards::deal(folder, &to, &header, &runs);
    }
    let mut done = header.outline.collect(runs.into_values());
    // The files come first: whoever closes the pipe early still has them.
    let wrote = outcome::save(folder, &to, &mut done.results, repeat::sweep(&header.asked))?;
    terminal::data(&outcome::text(&done.results, args.output.format)?)?;
    terminal::remark(&wrote);
    outcome::judge(&done.trouble, &header.outline, &args.scenario, &args.overrides)
}

/// What to sweep, as asked, else as the scenario says; and what messages call the place.
fn swept(args: &Args, scenario: &Scenario) -> Result<(String, Vec<String>), Failure> {
    if !args.over.is_empty() {
        return Ok((over::OPTION.to_owned(), args.over.clone()));
    }
    let (file, own) = (args.scenario.display(), over::of(scenario));
    if own.is_empty() {
        return Err(Failure::input(format!(
            "{file}: says nothing to sweep\nhelp: add --over KEY=VALUES, such as --over \
             max_head_off_policyness=0,1,2,4,8"
        )));
    }
    Ok((format!("{file}, sweep of [scenario]"), own))
}

/// The command, for whoever has to give it again.
fn asked(args: &Args) -> Asked {
    let (over, replications) = (args.over.clone(), args.replications);
    let scenario = args.scenario.display().to_string();
    Asked { scenario, over, replications, ..Asked::from(&args.overrides) }
}

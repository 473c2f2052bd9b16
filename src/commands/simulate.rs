//! `headway simulate`

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use headway_sim::report::folder::Folder;
use headway_sim::report::results::Kind;
use headway_sim::sweep::Plan;

use crate::failure::Failure;
use crate::options::{self, Loaded, Output, Overrides};
use crate::progress::Bar;
use crate::{outcome, repeat, terminal};

/// The name of the file that `--record` writes.
const RECORD: &str = "run.record";

/// Simulate a scenario as it is: summary, CSV and plots over time
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The scenario, a TOML file
    scenario: PathBuf,
    /// How many runs, which differ in their random numbers alone
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replications: u32,
    /// The number of the first of them, as sweep counts from 0
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    replication: u32,
    /// Record the first run's inputs and decisions (run.record), for `headway replay`
    #[arg(long)]
    record: bool,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Loaded { scenario, .. } = options::load(&args.scenario, &args.overrides, &[])?;
    let replications = args.replication..args.replication + args.replications;
    let plan = Plan::new(Kind::Run, &scenario, &[], replications)?;
    outcome::warn(&plan);

    let to = args.output.folder(&format!("{}/simulate", scenario.name));
    let unwritable = |error| Failure::unwritable(&to, &error);
    let mut folder = Folder::open(&to).map_err(unwritable)?;
    let record: Option<BufWriter<File>> = match args.record {
        true => Some(BufWriter::new(folder.create(RECORD).map_err(unwritable)?)),
        false => None,
    };
    let bar = Bar::new(plan.runs());
    let mut done = plan.run(args.output.threads(), record, &bar).map_err(Failure::broken)?;
    drop(bar);
    // The files come first: whoever closes the pipe early still has them.
    let wrote = outcome::save(folder, &to, &mut done.results, command(args))?;
    terminal::data(&outcome::text(&done.results, args.output.format)?)?;
    terminal::note(&wrote);
    outcome::judge(&done.trouble, &plan.outline(), &args.scenario, &args.overrides)
}

/// The command that repeats it.
fn command(args: &Args) -> String {
    let mut words = vec![repeat::path(&args.scenario)];
    words.extend(repeat::overrides(&args.overrides));
    words.extend(repeat::number("--replications", args.replications, 1));
    words.extend(repeat::number("--replication", args.replication, 0));
    repeat::command("simulate", words)
}

//! `headway plan`

use std::path::PathBuf;

use headway_sim::plan::results::PlanResults;
use headway_sim::plan::{Task, plan};
use headway_sim::sweep::over;

use crate::failure::Failure;
use crate::options::{self, Format, Loaded, Output, Overrides};
use crate::progress::Bar;
use crate::{headline, outcome, repeat, terminal, values};

/// Split GPUs over serving, judge and trainer, and say which loop is the bottleneck.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The scenario, a TOML file
    scenario: PathBuf,
    /// GPUs that there are
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    gpus: u32,
    /// What to try at each split: KEY=0,1,2,4 or KEY=0..16, several make a grid [default: `over`
    /// of the scenario's [plan]]
    #[arg(long, value_name = "KEY=VALUES")]
    over: Vec<String>,
    /// What a split must keep, such as "staleness_head_p99 <= 4"; repeatable, beside those of the
    /// scenario's [plan]
    #[arg(long, value_name = "METRIC<=NUMBER")]
    constraint: Vec<String>,
    /// Simulate every split, not only those around the best
    #[arg(long)]
    exhaustive: bool,
    /// Runs of each split, two or more [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    replications: Option<u32>,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Loaded { scenario, tree } = options::load(&args.scenario, &args.overrides, &[])?;
    let (source, over) = match args.over.is_empty() {
        true => (format!("{}, over of [plan]", args.scenario.display()), &scenario.plan.over),
        false => (over::OPTION.to_owned(), &args.over),
    };
    let axes = over::parse_from(&source, over, &tree, &scenario.cases)?;
    let task = Task {
        scenario: &scenario,
        gpus: args.gpus,
        axes: &axes,
        constraints: &values::constraints(&args.constraint)?,
        replications: args.replications.unwrap_or(scenario.replications.max(2)),
        exhaustive: args.exhaustive,
        jobs: args.output.threads(),
    };
    let planning = plan(&task, &Bar::new(0))?;
    let mut results = PlanResults::of(&planning, &task);
    results.meta.about.get_or_insert_default().command = command(args);

    let to = args.output.folder(&format!("{}/plan-{}", scenario.name, args.gpus));
    let wrote = outcome::save_plan(outcome::folder(&to)?, &to, &results)?;
    terminal::data(&match args.output.format {
        Format::Table => headline::plan(&results),
        Format::Json => format!("{:#}\n", results.document().map_err(Failure::broken)?),
        Format::Csv => results.points.to_text().map_err(Failure::broken)?,
    })?;
    terminal::remark(&wrote);
    outcome::warn_of_plan(&planning);
    // That nothing can be chosen is the answer no.
    if planning.chosen.is_some() { Ok(()) } else { Err(Failure::Negative) }
}

/// The command that repeats it.
fn command(args: &Args) -> String {
    let mut words = vec![repeat::path(&args.scenario), format!("--gpus {}", args.gpus)];
    words.extend(repeat::texts("--over", &args.over));
    words.extend(repeat::texts("--constraint", &args.constraint));
    words.extend(args.exhaustive.then(|| "--exhaustive".to_owned()));
    words.extend(repeat::overrides(&args.overrides));
    words.extend(args.replications.map(|count| format!("--replications {count}")));
    repeat::command("plan", words)
}

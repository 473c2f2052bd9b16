//! `headway compare`

use std::io::Write;
use std::path::{Path, PathBuf};

use headway_sim::compare;
use headway_sim::report::folder::Folder;
use headway_sim::report::json;
use headway_sim::report::results::Kind;
use headway_sim::sweep::{Outcome, Plan};

use crate::failure::Failure;
use crate::options::{self, Format, Output, Overrides};
use crate::progress::Bar;
use crate::{headline, outcome, terminal};

/// Compare two scenarios, or two settings of one, under the same random numbers
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The first scenario, A
    a: PathBuf,
    /// The second scenario, B [default: A, with what --set-b changes]
    b: Option<PathBuf>,
    /// Set a key in A alone; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set_a: Vec<String>,
    /// Set a key in B alone; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set_b: Vec<String>,
    /// Pairs of runs [default: A's replications]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    replications: Option<u32>,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let b = args.b.as_ref().unwrap_or(&args.a);
    if *b == args.a && args.set_a == args.set_b {
        return Err(Failure::input(
            "A and B are the same\nhelp: name two scenarios, or change one: --set-b KEY=VALUE",
        ));
    }
    let first = options::load(&args.a, &args.overrides, &args.set_a)?.scenario;
    let second = options::load(b, &args.overrides, &args.set_b)?.scenario;
    if first.seed != second.seed {
        return Err(Failure::input(format!(
            "A has seed {} and B has seed {}: pairs need the same random numbers\nhelp: give both \
             one seed with --seed N",
            first.seed, second.seed
        )));
    }
    let replications = args.replications.unwrap_or(first.replications.max(2));
    let plans =
        [&first, &second].map(|scenario| Plan::new(Kind::Run, scenario, &[], 0..replications));
    let [plan_a, plan_b] = plans;
    let (plan_a, plan_b) = (plan_a?, plan_b?);
    let bar = Bar::new(plan_a.runs() + plan_b.runs());
    let run = |plan: &Plan| -> Result<Outcome, Failure> {
        let threads = args.output.threads();
        plan.run(threads, None::<Box<dyn Write + Send>>, &bar).map_err(Failure::broken)
    };
    let (done_a, done_b) = (run(&plan_a)?, run(&plan_b)?);
    drop(bar);
    let differences = compare::compare(&done_a.points[0].runs, &done_b.points[0].runs);
    let csv = compare::table(&differences);
    let bytes = csv.to_bytes().map_err(Failure::broken)?;
    terminal::data(&match args.output.format {
        Format::Table => headline::compare(&differences),
        Format::Json => format!("{:#}\n", json::table(&csv)),
        Format::Csv => String::from_utf8(bytes.clone()).map_err(Failure::broken)?,
    })?;

    let to = args.output.folder(&folder_of(&first.name, &second.name));
    let unwritable = |error| Failure::unwritable(&to, &error);
    let mut folder = Folder::open(&to).map_err(unwritable)?;
    folder.write("compare.csv", &bytes).map_err(unwritable)?;
    outcome::commit(folder, &to)?;
    let judge = |done: &Outcome, plan: &Plan, scenario: &Path, more: &[String]| {
        let mut overrides = args.overrides.clone();
        overrides.set.extend_from_slice(more);
        outcome::judge(done, plan, scenario, &overrides)
    };
    judge(&done_a, &plan_a, &args.a, &args.set_a).and(judge(&done_b, &plan_b, b, &args.set_b))
}

/// The folder of a comparison, by the names of both scenarios.
fn folder_of(a: &str, b: &str) -> String {
    if a == b { format!("{a}/compare") } else { format!("{a}-vs-{b}") }
}

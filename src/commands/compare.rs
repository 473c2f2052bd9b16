//! `headway compare`

use std::io::Write;
use std::path::{Path, PathBuf};

use headway_sim::compare;
use headway_sim::report::folder::Folder;
use headway_sim::report::json;
use headway_sim::report::results::Kind;
use headway_sim::scenario::Scenario;
use headway_sim::sweep::{Outcome, Plan};

use crate::failure::Failure;
use crate::options::{self, Format, Loaded, Output, Overrides};
use crate::progress::Bar;
use crate::{headline, outcome, terminal};

/// Compare two scenarios, or two settings of one, under the same random numbers
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The first scenario, A
    a: PathBuf,
    /// The second scenario, B [default: A, with what --set-b changes]
    b: Option<PathBuf>,
    /// Take a case of A's scenario, by its name
    #[arg(long, value_name = "NAME")]
    case_a: Option<String>,
    /// Take a case of B's scenario, by its name
    #[arg(long, value_name = "NAME")]
    case_b: Option<String>,
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

/// One of the two.
struct Side<'a> {
    path: &'a Path,
    /// What is set in it alone.
    set: Vec<String>,
    scenario: Scenario,
}

impl<'a> Side<'a> {
    /// `set` wins over what the case sets.
    fn load(
        args: &Args,
        path: &'a Path,
        case: Option<&str>,
        set: &[String],
    ) -> Result<Self, Failure> {
        let load = |set: &[String]| options::load(path, &args.overrides, set);
        let mut all = match case {
            Some(name) => load(&[])?.scenario.case(name).map_err(Failure::input)?.set.clone(),
            None => Vec::new(),
        };
        all.extend_from_slice(set);
        let Loaded { scenario, .. } = load(&all)?;
        Ok(Self { path, set: all, scenario })
    }

    fn plan(&self, replications: u32) -> Result<Plan, Failure> {
        let plan = Plan::new(Kind::Run, &self.scenario, &[], 0..replications)?;
        outcome::warn(&plan);
        Ok(plan)
    }

    fn judge(&self, args: &Args, plan: &Plan, done: &Outcome) -> Result<(), Failure> {
        let mut overrides = args.overrides.clone();
        overrides.set.extend_from_slice(&self.set);
        outcome::judge(&done.trouble, &plan.outline(), self.path, &overrides)
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let [a, b] = sides(args)?;
    let replications = args.replications.unwrap_or(a.scenario.replications.max(2));
    let (plan_a, plan_b) = (a.plan(replications)?, b.plan(replications)?);
    let bar = Bar::new(plan_a.runs() + plan_b.runs());
    let run = |plan: &Plan| {
        let nothing = None::<Box<dyn Write + Send>>;
        plan.run(args.output.threads(), nothing, &bar).map_err(Failure::broken)
    };
    let (done_a, done_b) = (run(&plan_a)?, run(&plan_b)?);
    drop(bar);

    let differences = compare::compare(&done_a.points[0].runs, &done_b.points[0].runs);
    let calibration = compare::calibration(&a.scenario, &b.scenario);
    let csv = compare::table(&differences, calibration.as_deref());
    let text = csv.to_text().map_err(Failure::broken)?;
    let to = args.output.folder(&folder_of(&a.scenario.name, &b.scenario.name));
    let unwritable = |error| Failure::unwritable(&to, &error);
    let mut folder = Folder::open(&to).map_err(unwritable)?;
    folder.write("compare.csv", text.as_bytes()).map_err(unwritable)?;
    let wrote = outcome::commit(folder, &to)?;
    terminal::data(&match args.output.format {
        Format::Table => headline::compare(&differences, calibration.as_deref()),
        Format::Json => {
            format!("{:#}\n", json::comparison(&a.scenario, &b.scenario, replications, &csv))
        }
        Format::Csv => text,
    })?;
    terminal::remark(&wrote);
    // Both are judged, so that everything that went wrong is said.
    a.judge(args, &plan_a, &done_a).and(b.judge(args, &plan_b, &done_b))
}

/// Reads both scenarios; they must differ, and have one seed.
fn sides(args: &Args) -> Result<[Side<'_>; 2], Failure> {
    let path_b = args.b.as_ref().unwrap_or(&args.a);
    let a = Side::load(args, &args.a, args.case_a.as_deref(), &args.set_a)?;
    let b = Side::load(args, path_b, args.case_b.as_deref(), &args.set_b)?;
    if a.path == b.path && a.set == b.set {
        return Err(Failure::input(
            "A and B are the same\nhelp: name two scenarios, or change one: --set-b KEY=VALUE, or \
             --case-b NAME",
        ));
    }
    let (seed_a, seed_b) = (a.scenario.seed, b.scenario.seed);
    if seed_a != seed_b {
        return Err(Failure::input(format!(
            "A has seed {seed_a} and B has seed {seed_b}: pairs need the same random numbers\n\
             help: give both one seed with --seed N"
        )));
    }
    Ok([a, b])
}

/// The folder of a comparison, by the names of both scenarios.
fn folder_of(a: &str, b: &str) -> String {
    if a == b { format!("{a}/compare") } else { format!("{a}-vs-{b}") }
}

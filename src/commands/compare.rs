//! `headway compare`

use std::io::Write;
use std::path::PathBuf;

use headway_sim::compare;
use headway_sim::report::json;
use headway_sim::sweep::Plan;

use crate::failure::Failure;
use crate::options::{Format, Output, Overrides};
use crate::progress::Bar;
use crate::sides::{self, Wanted};
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

impl Args {
    /// What both sides are asked to be.
    fn wanted(&self) -> [Wanted<'_>; 2] {
        let Self { a, b, case_a, case_b, set_a, set_b, .. } = self;
        let b = b.as_ref().unwrap_or(a);
        [(a, case_a, set_a), (b, case_b, set_b)].map(|(path, case, set)| Wanted {
            path,
            case: case.as_deref(),
            set,
        })
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let [a, b] = sides::load(args.wanted(), &args.overrides)?;
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
    let to = args.output.folder(&sides::name(&a, &b));
    let wrote = outcome::save_comparison(&to, &text)?;
    terminal::data(&match args.output.format {
        Format::Table => headline::compare(&differences, calibration.as_deref()),
        Format::Json => {
            format!("{:#}\n", json::comparison(&a.scenario, &b.scenario, replications, &csv))
        }
        Format::Csv => text,
    })?;
    terminal::remark(&wrote);
    // Both are judged, so that everything that went wrong is said.
    a.judge(&args.overrides, &plan_a, &done_a).and(b.judge(&args.overrides, &plan_b, &done_b))
}

//! `headway validate`

use std::path::PathBuf;

use headway_shared::time::Span;
use headway_sim::scenario::Warmup;
use headway_sim::validate::{Task, validate};

use crate::failure::Failure;
use crate::options::{self, Format, Loaded, Output, Overrides};
use crate::progress::Bar;
use crate::{headline, measured, outcome, repeat, terminal, values};

/// Simulate recorded runs in a calibrated scenario: predicted beside measured
///
/// Each run is simulated under the configuration in its record, for as many train steps as it made.
/// A prediction has the interval of one run (90%), in which fitted numbers are drawn from what
/// `[calibration]` of the scenario says of them. Exit code 1: something is beyond its tolerance.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Records of live runs (databases), or what `simulate --record` wrote; RUN@KEY=VALUE says how the
    /// world of that run is known to differ, such as run.db@world.judge.vote.mean_sec=0.3
    #[arg(required = true, value_name = "RUN[@KEY=VALUE...]")]
    runs: Vec<String>,
    /// The scenario, as `headway calibrate` wrote it
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    /// How the world of all runs differs from the scenario's; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The run that the scenario was fitted to: predictions of ratios are scored against "as in that
    /// run"
    #[arg(long, value_name = "RUN")]
    baseline: Option<PathBuf>,
    /// How far a prediction may be off: a share of what was measured (10%), a distance (0.25),
    /// `interval` or `none`; METRIC may end in a star; repeatable
    #[arg(long, value_name = "METRIC=VALUE")]
    tolerance: Vec<String>,
    /// Train steps that are dropped at the start of each run [default: the scenario's]
    #[arg(long, value_name = "N")]
    warmup_steps: Option<u32>,
    /// Simulations of each run
    #[arg(long, value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(2..=100_000))]
    replications: u32,
    /// Seed of all random streams [default: the scenario's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let overrides = Overrides { set: Vec::new(), config: Vec::new(), seed: args.seed };
    let Loaded { scenario, .. } = options::load(&args.scenario, &overrides, &[])?;
    let tolerances = values::tolerances(&args.tolerance)?;
    let given = args.warmup_steps.map(|steps| Warmup { steps, time: Span::ZERO });
    let warmup = given.unwrap_or(scenario.warmup);
    let runs = measured::runs(&args.runs, &args.set, warmup)?;
    let baseline = args.baseline.as_deref().map(|run| measured::one(run, warmup)).transpose()?;
    let task = Task {
        scenario: &scenario,
        runs: &runs,
        warmup,
        replications: args.replications,
        jobs: args.output.threads(),
        tolerances: &tolerances,
        baseline: baseline.as_ref(),
    };
    let mut validation = validate(&task, &Bar::new(runs.len() * args.replications as usize))?;
    validation.about.get_or_insert_default().command = command(args);

    let to = args.output.folder(&format!("{}/validate", scenario.name));
    let wrote = outcome::save_validation(outcome::folder(&to)?, &to, &validation)?;
    terminal::data(&match args.output.format {
        Format::Table => headline::validation(&validation),
        Format::Json => {
            serde_json::to_string_pretty(&validation.document()).map_err(Failure::broken)? + "\n"
        }
        Format::Csv => validation.csv().to_text().map_err(Failure::broken)?,
    })?;
    terminal::remark(&wrote);
    outcome::warn_of_validation(&validation, &args.scenario);
    if validation.is_good() { Ok(()) } else { Err(Failure::Negative) }
}

/// The command that repeats it.
fn command(args: &Args) -> String {
    let mut words = vec![format!("--scenario {}", repeat::path(&args.scenario))];
    words.extend(args.baseline.iter().map(|run| format!("--baseline {}", repeat::path(run))));
    words.extend(repeat::texts("--set", &args.set));
    words.extend(repeat::texts("--tolerance", &args.tolerance));
    words.extend(args.warmup_steps.map(|steps| format!("--warmup-steps {steps}")));
    words.extend(args.seed.map(|seed| format!("--seed {seed}")));
    words.extend(repeat::number("--replications", args.replications, 16));
    words.extend(args.runs.iter().map(|run| measured::word(run)));
    repeat::command("validate", words)
}

//! `headway tune`

use std::path::PathBuf;

use headway_shared::config::Diagnostics;
use headway_shared::config::tuned::Tuned;
use headway_shared::time::Span;
use headway_sim::tune::aim::Aim;
use headway_sim::tune::results::TuneResults;
use headway_sim::tune::{FEW_REPLICATIONS, Task, space, tune};

use crate::failure::Failure;
use crate::options::{self, Format, Loaded, Output, Overrides};
use crate::progress::Bar;
use crate::{headline, outcome, repeat, terminal};

/// What is maximised where nobody says it.
const MAXIMIZE: &str = "trained_samples_per_hour";

/// Find the best configuration under constraints, to be promoted
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The scenario, a TOML file
    scenario: PathBuf,
    /// The metric to maximise
    #[arg(long, value_name = "METRIC", default_value = MAXIMIZE)]
    maximize: String,
    /// What must be kept, such as 'staleness_head_p99<=4'; repeatable
    #[arg(long, value_name = "METRIC<=NUMBER")]
    subject_to: Vec<String>,
    /// What to search: KEY=0,1,2,4 or KEY=0..16 of the scheduling sections; repeatable [default:
    /// the gate's bound, publish_interval, sync_mode, queue sizes, judge_concurrency and
    /// max_batch_wait_sec around their present values]
    #[arg(long, value_name = "KEY=VALUES")]
    space: Vec<String>,
    /// Runs of whatever may be chosen, two or more; of few, chance hides large differences [default:
    /// the scenario's, at least 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    replications: Option<u32>,
    /// The most runs altogether, but for a few candidates that are run whatever it says [default: a quarter of
    /// the whole grid's, at most 1600]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// Length of a window of the envelope, in seconds [default: about 20 train steps]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    window_sec: Option<u64>,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Loaded { scenario, .. } = options::load(&args.scenario, &args.overrides, &[])?;
    let task = Task {
        scenario: &scenario,
        warnings: Diagnostics::default(),
        aim: &Aim::parse(&scenario, &args.maximize, &args.subject_to)?,
        axes: &space::axes(&scenario, &args.space)?,
        replications: args.replications.unwrap_or(scenario.replications.max(FEW_REPLICATIONS)),
        budget: args.runs,
        window: args.window_sec.map(Span::from_secs),
        jobs: args.output.threads(),
    };
    let tuning = tune(&task, &Bar::new(0))?;
    let mut results = TuneResults::of(&tuning, &task);
    results.meta.about.get_or_insert_default().command = command(args);
    let file = args.scenario.display().to_string();
    let tuned = tuning.tuned(&task, &file, &args.overrides.given());

    let to = args.output.folder(&format!("{}/tune", scenario.name));
    let tuned = tuned.as_ref().map(Tuned::to_toml);
    let wrote = outcome::save_tune(outcome::folder(&to)?, &to, &results, tuned)?;
    terminal::data(&match args.output.format {
        Format::Table => headline::tune(&results),
        Format::Json => format!("{:#}\n", results.document().map_err(Failure::broken)?),
        Format::Csv => results.candidates.to_text().map_err(Failure::broken)?,
    })?;
    terminal::remark(&wrote);
    outcome::warn_of_tune(&tuning);
    // That nothing can be chosen is the answer no.
    if tuning.chosen.is_some() { Ok(()) } else { Err(Failure::Negative) }
}

/// The command that repeats it.
fn command(args: &Args) -> String {
    let mut words = vec![repeat::path(&args.scenario)];
    let maximize = Some(&args.maximize).filter(|metric| *metric != MAXIMIZE);
    words.extend(repeat::texts("--maximize", maximize));
    words.extend(repeat::texts("--subject-to", &args.subject_to));
    words.extend(repeat::texts("--space", &args.space));
    words.extend(repeat::overrides(&args.overrides));
    words.extend(args.replications.map(|count| format!("--replications {count}")));
    words.extend(args.runs.map(|runs| format!("--runs {runs}")));
    words.extend(args.window_sec.map(|seconds| format!("--window-sec {seconds}")));
    repeat::command("tune", words)
}

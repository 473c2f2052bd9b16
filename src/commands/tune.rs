//! `headway tune`

use std::path::{Path, PathBuf};

use headway_shared::config::Diagnostics;
use headway_shared::config::tuned::Tuned;
use headway_shared::time::Span;
use headway_sim::report::folder::Folder;
use headway_sim::tune::aim::Aim;
use headway_sim::tune::results::TuneResults;
use headway_sim::tune::{Task, Tuning, space, tune};

use crate::failure::Failure;
use crate::options::{self, Format, Loaded, Output, Overrides};
use crate::progress::Bar;
use crate::{headline, outcome, repeat, terminal};

/// Find the best configuration under constraints, to be promoted
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The scenario, a TOML file
    scenario: PathBuf,
    /// The metric to maximise
    #[arg(long, value_name = "METRIC", default_value = "trained_samples_per_hour")]
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
    /// The most runs altogether [default: a quarter of the whole grid's, at most 1600]
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

/// Replications where nobody says how many: with fewer, almost everything is as good as everything
/// else, and the least stale of it is slow.
const LEAST: u32 = 8;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Loaded { scenario, .. } = options::load(&args.scenario, &args.overrides, &[])?;
    let aim = Aim::parse(&scenario, &args.maximize, &args.subject_to)?;
    let task = Task {
        scenario: &scenario,
        warnings: Diagnostics::default(),
        aim: &aim,
        axes: &space::axes(&scenario, &args.space)?,
        replications: args.replications.unwrap_or(scenario.replications.max(LEAST)),
        budget: args.runs,
        window: args.window_sec.map(Span::from_secs),
        jobs: args.output.threads(),
    };
    let bar = Bar::new(0);
    let tuning = tune(&task, &bar)?;
    drop(bar);
    let mut results = TuneResults::of(&tuning, &task);
    results.meta.about.get_or_insert_default().command = command(args);
    let tuned = tuning.tuned(&task, &name(&args.scenario), &given(&args.overrides));

    let to = args.output.folder(&format!("{}/tune", scenario.name));
    let folder = Folder::open(&to).map_err(|error| Failure::unwritable(&to, &error))?;
    let wrote = outcome::save_tune(folder, &to, &results, tuned.as_ref().map(Tuned::to_toml))?;
    terminal::data(&match args.output.format {
        Format::Table => headline::tune(&results),
        Format::Json => format!("{:#}\n", results.document().map_err(Failure::broken)?),
        Format::Csv => results.candidates.to_text().map_err(Failure::broken)?,
    })?;
    terminal::note(&wrote);
    judge(&tuning)
}

/// The command that repeats it.
fn command(args: &Args) -> String {
    let mut words = vec![repeat::path(&args.scenario)];
    let default = "trained_samples_per_hour";
    words.extend(repeat::texts(
        "--maximize",
        [&args.maximize].into_iter().filter(|name| *name != default),
    ));
    words.extend(repeat::texts("--subject-to", &args.subject_to));
    words.extend(repeat::texts("--space", &args.space));
    words.extend(repeat::overrides(&args.overrides));
    words.extend(args.replications.map(|count| format!("--replications {count}")));
    words.extend(args.runs.map(|runs| format!("--runs {runs}")));
    words.extend(args.window_sec.map(|seconds| format!("--window-sec {seconds}")));
    repeat::command("tune", words)
}

/// What was laid over the scenario, as it was given.
fn given(overrides: &Overrides) -> Vec<String> {
    let configs = overrides.config.iter().map(|path| format!("--config {}", name(path)));
    let sets = overrides.set.iter().map(|set| format!("--set {set}"));
    let seed = overrides.seed.map(|seed| format!("--seed {seed}"));
    configs.chain(sets).chain(seed).collect()
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

/// Says what is suspicious about the choice; that there is none is the answer no.
fn judge(tuning: &Tuning) -> Result<(), Failure> {
    let Some(chosen) = tuning.chosen else { return Err(Failure::Negative) };
    outcome::warn_of_tune(&tuning.candidates[chosen].planned);
    Ok(())
}

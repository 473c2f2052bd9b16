//! `headway run`

use std::path::PathBuf;

use headway_shared::config::{Config, Layers, Settings, load_live};

use crate::failure::Failure;
use crate::live::TaskName;
use crate::options::read;
use crate::{live, terminal};

/// The engine of this build, in `[policy_serving]` and `[policy_training]`.
const ENGINE: &str = "tch";

/// Serve, judge and train a policy live, with a record of every decision
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The scheduling sections, as a scenario has them
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The judge's endpoint, and what the run is to do
    #[arg(long, value_name = "FILE")]
    settings: PathBuf,
    /// Set a key, such as policy_serving.engine=tch; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The record; a run that ended or was killed goes on where it was
    #[arg(long, value_name = "FILE", default_value = "run.db")]
    pub(crate) record: PathBuf,
    /// Where the policy computes: cpu or cuda:N
    #[arg(long, default_value = "cpu")]
    pub(crate) device: String,
    /// Seed of the weights that a new run begins with
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Judge by a rule, not by the endpoint: a turn is worth 1 if it is its request's
    /// metadata.answer, else 0
    #[arg(long, conflicts_with = "task")]
    pub(crate) exact: bool,
    /// Play sessions of a task in this process, and judge them by the task's own rule
    #[arg(long, value_enum)]
    pub(crate) task: Option<TaskName>,
    /// Sessions of the task at once, at most max_envs [default: a batch and a half]
    #[arg(long, value_name = "N", requires = "task")]
    pub(crate) sessions: Option<u32>,
    /// End in order after so many train steps
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<u64>,
    /// Folder for steps.csv and its plots, written when the run ends
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// How long what runs may take to end once the run is told to
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) shutdown_timeout_sec: u64,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (config, settings) = load(args)?;
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::broken)?;
    runtime.block_on(live::run(args, config, &settings))
}

fn load(args: &Args) -> Result<(Config, Settings), Failure> {
    let name = |path: &PathBuf| path.display().to_string();
    let layers = Layers::new()
        .toml(name(&args.config), read(&args.config)?)
        .json(name(&args.settings), read(&args.settings)?);
    let layers = args.set.iter().fold(layers, Layers::set);
    let (config, settings, warnings) = load_live(&layers)?;
    terminal::diagnose(&warnings);
    let serving = ("policy_serving", &config.policy_serving.engine);
    let training = ("policy_training", &config.policy_training.engine);
    for (section, engine) in [serving, training] {
        if engine != ENGINE {
            return Err(Failure::input(format!(
                "{section}.engine: this build has no engine \"{engine}\"\nhelp: add --set \
                 {section}.engine={ENGINE}, a small policy in this process"
            )));
        }
    }
    Ok((config, settings))
}

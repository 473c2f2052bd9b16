//! `headway run`

use std::path::PathBuf;

use headway_runtime::log::{self, Format, Level};
use headway_runtime::store;

use crate::failure::Failure;
use crate::live::{self, engines};
use crate::options::LiveFiles;

/// What a commit survives.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(crate) enum Durability {
    /// A power failure: each commit waits for the disk
    #[default]
    Power,
    /// The end of this process, by whatever signal; a machine that dies takes what was last with it
    Process,
}

impl From<Durability> for store::Durability {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::Power => Self::Power,
            Durability::Process => Self::Process,
        }
    }
}

/// Serve, judge and train a policy live, with a record of every decision
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    files: LiveFiles,
    /// The record; a run that ended or was killed goes on where it was
    #[arg(long, value_name = "FILE", default_value = "run.db")]
    pub(crate) record: PathBuf,
    /// What an answered turn, a published version and a reported step survive
    #[arg(long, value_enum, default_value_t)]
    pub(crate) durability: Durability,
    /// Where a policy of engine tch computes: cpu or cuda:N
    #[cfg(feature = "torch")]
    #[arg(long, default_value = "cpu")]
    pub(crate) device: String,
    /// Seed of the weights that a new run with engine tch begins with
    #[cfg(feature = "torch")]
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Play sessions of a task in this process, with a policy that knows its symbols
    #[cfg(feature = "torch")]
    #[arg(long, value_enum)]
    pub(crate) task: Option<live::TaskName>,
    /// Sessions of the task at once, at most max_envs [default: a batch and a half]
    #[cfg(feature = "torch")]
    #[arg(long, value_name = "N", requires = "task")]
    pub(crate) sessions: Option<u32>,
    /// End in order after so many train steps
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<u64>,
    /// Folder for steps.csv and its plots, written when the run ends
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Show the run at /dashboard to whoever has the admin token
    #[arg(long)]
    pub(crate) dashboard: bool,
    /// How much is written to stderr: off, error, warn, info, debug or trace [default: the
    /// variable HEADWAY_LOG, else info]
    #[arg(long, value_name = "LEVEL")]
    log: Option<Level>,
    /// Write it as JSON, an object a line
    #[arg(long)]
    log_json: bool,
    /// How long what runs may take to end once the run is told to
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) shutdown_timeout_sec: u64,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let live = args.files.load()?;
    engines::check(&live.config, &args.files.layers()?)?;
    let format = if args.log_json { Format::Json } else { Format::Text };
    log::start(live::log_level(args.log)?, format);
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::broken)?;
    runtime.block_on(live::run(args, live))
}

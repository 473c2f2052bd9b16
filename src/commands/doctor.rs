//! `headway doctor`

use std::env;
use std::path::PathBuf;

use headway_runtime::doctor::{self, Outcome};
use headway_shared::config::{Layers, load_live};

use crate::failure::Failure;
use crate::options::{Form, read};
use crate::{headline, terminal};

/// Check judge, key, address, sync window and log-prob difference of a live run
///
/// It starts nothing. Where a Headway runs at the address of the configuration and
/// HEADWAY_ADMIN_TOKEN holds its token, weights are published once, to see 503 inside the sync
/// window and 200 after it. Exit code 1: a check failed; skipped checks fail nothing.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The scheduling sections, as `headway run` gets them
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The judge's endpoint, and what the run is to do
    #[arg(long, value_name = "FILE")]
    settings: PathBuf,
    /// Set a key, such as policy_serving.port=30001; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// What is written to stdout
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let name = |path: &PathBuf| path.display().to_string();
    let layers = Layers::new()
        .toml(name(&args.config), read(&args.config)?)
        .json(name(&args.settings), read(&args.settings)?);
    let layers = args.set.iter().fold(layers, Layers::set);
    let (config, settings, warnings) = load_live(&layers)?;
    terminal::diagnose(&warnings);
    let variable = |name: &str| env::var(name).ok();
    let findings =
        doctor::examine_and_wait(&config, &settings, variable).map_err(Failure::broken)?;
    terminal::data(&match args.format {
        Form::Table => headline::doctor(&findings),
        Form::Json => doctor::to_json(&findings),
    })?;
    let failed = findings.iter().any(|finding| finding.result == Outcome::Failed);
    if failed { Err(Failure::Negative) } else { Ok(()) }
}

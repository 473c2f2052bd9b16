//! `headway doctor`

use std::env;

use headway_runtime::doctor::{self, Outcome};
use headway_shared::config::Live;

use crate::failure::Failure;
use crate::options::{Form, LiveFiles};
use crate::{headline, terminal};

/// Check judge, key, address, sync window and log-prob difference of a live run
///
/// It starts nothing. Where a Headway runs at the address of the configuration and
/// HEADWAY_ADMIN_TOKEN holds its token, weights are published once, to see 503 inside the sync
/// window and 200 after it. Exit code 1: a check failed; skipped checks fail nothing.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    files: LiveFiles,
    /// What is written to stdout
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Live { config, settings, .. } = args.files.load()?;
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

//! `headway promote`

use std::path::PathBuf;

use crate::failure::Failure;
use crate::promotion::{file, tuned};

/// Hand a tuned configuration to config.toml, or to a live run
///
/// The file is edited in place: comments, order and other keys stay as they are, and the file as it
/// was is kept beside it. [guard] holds the run to what was predicted. Nothing changes where the
/// scenario is no longer the one that was tuned, a constraint does not hold, or a key would be lost.
/// A live run takes it over HEADWAY_ADMIN_TOKEN, and says what changes when.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("where").required(true)))]
pub(crate) struct Args {
    /// What `headway tune` wrote
    #[arg(required_unless_present = "rollback", conflicts_with = "rollback")]
    tuned: Option<PathBuf>,
    /// The configuration of a live run, to be edited in place
    #[arg(long, value_name = "FILE", group = "where")]
    to: Option<PathBuf>,
    /// Where a live run serves, such as http://127.0.0.1:30000
    #[cfg(feature = "live")]
    #[arg(long, value_name = "URL", group = "where")]
    live: Option<String>,
    /// The scenario that was tuned [default: the file that the tuned one names]
    #[arg(long, value_name = "FILE", conflicts_with = "rollback")]
    scenario: Option<PathBuf>,
    /// The settings.json of the live run: are the two files of one mind afterwards?
    #[arg(long, value_name = "FILE", requires = "to")]
    settings: Option<PathBuf>,
    /// The file that holds the admin token [default: the variable HEADWAY_ADMIN_TOKEN]
    #[cfg(feature = "live")]
    #[arg(long, value_name = "FILE", requires = "live")]
    token_file: Option<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Go back to what was there before the last promotion
    #[arg(long)]
    rollback: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let tuned = match &args.tuned {
        Some(path) => Some(tuned::load(path, args.scenario.as_deref())?),
        None => None,
    };
    if let Some(to) = &args.to {
        return match tuned {
            Some(tuned) => file::promote(to, &tuned, args.settings.as_deref(), args.dry_run),
            None => file::roll_back(to, args.settings.as_deref(), args.dry_run),
        };
    }
    #[cfg(feature = "live")]
    if let Some(url) = &args.live {
        let remote = crate::promotion::live::connect(url, args.token_file.as_deref())?;
        return match tuned {
            Some(tuned) => crate::promotion::live::promote(&remote, &tuned, args.dry_run),
            None => crate::promotion::live::roll_back(&remote, args.dry_run),
        };
    }
    Ok(())
}

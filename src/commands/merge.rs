//! `headway merge`

use std::path::{Path, PathBuf};

use headway_sim::sweep::merge::{self, Joined};

use crate::failure::Failure;
use crate::options::Format;
use crate::{outcome, repeat, shards, terminal};

/// Join the shards of a sweep: the same files, byte for byte, as one sweep writes
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folders of `headway sweep --shard`, each once, in any order; a folder that holds them
    /// stands for all of them
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// What is written to stdout
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Folder for CSV, JSON and plots [default: out/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Joined { header, outcome: mut done } =
        merge::join(&args.dirs).map_err(|error| shards::refused(&error))?;
    let to =
        args.out.clone().unwrap_or_else(|| Path::new("out").join(&header.outline.meta.scenario));
    let folder = outcome::folder(&to)?;
    let wrote = outcome::save(folder, &to, &mut done.results, repeat::sweep(&header.asked))?;
    terminal::data(&outcome::text(&done.results, args.format)?)?;
    terminal::remark(&wrote);
    let asked = &header.asked;
    let scenario = Path::new(&asked.scenario);
    outcome::judge(&done.trouble, &header.outline, scenario, &asked.into())
}

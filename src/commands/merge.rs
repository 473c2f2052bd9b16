//! `headway merge`

use std::path::{Path, PathBuf};

use headway_sim::report::folder::Folder;
use headway_sim::sweep::journal::{Header, JournalError};
use headway_sim::sweep::merge::{self, Joined, MergeError};
use headway_sim::sweep::shard::Shard;

use crate::failure::Failure;
use crate::options::Format;
use crate::terminal::{self, quoted};
use crate::{outcome, repeat, shards};

/// Commands that a message lists at most.
const MOST_COMMANDS: usize = 4;

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
        merge::join(&args.dirs).map_err(|error| refused(&error))?;
    let to =
        args.out.clone().unwrap_or_else(|| Path::new("out").join(&header.outline.meta.scenario));
    let folder = Folder::open(&to).map_err(|error| Failure::unwritable(&to, &error))?;
    let wrote = outcome::save(folder, &to, &mut done.results, repeat::sweep(&header.asked))?;
    terminal::data(&outcome::text(&done.results, args.format)?)?;
    terminal::note(&wrote);
    let asked = &header.asked;
    let scenario = Path::new(&asked.scenario);
    outcome::judge(&done.trouble, &header.outline, scenario, &asked.into())
}

/// Why the shards cannot be joined, and what to do.
fn refused(error: &MergeError) -> Failure {
    let help = match error {
        MergeError::Io { .. } => "name folders that exist and that you may read".to_owned(),
        MergeError::WholeResult { .. } => {
            "it needs no merge: leave it out, or name the folders of `headway sweep --shard`"
                .to_owned()
        }
        MergeError::NoShard(_) => "name the folders that `headway sweep --shard` wrote".to_owned(),
        MergeError::Unfinished { at_work: true, .. } => "wait until it is done".to_owned(),
        MergeError::Unfinished { folder, header, .. } => {
            format!("finish it: {}", again(header, header.shard, folder))
        }
        MergeError::Unreadable { path, header: Some(header), .. } => {
            let folder = path.parent().unwrap_or(path);
            format!("run again what is lost: {}", again(header, header.shard, folder))
        }
        MergeError::Unreadable { error: JournalError::OtherBuild { .. }, .. } => {
            "join the shards with the build that ran them, or run all of them with this one"
                .to_owned()
        }
        MergeError::Unreadable { .. } => "run the shard again".to_owned(),
        MergeError::OtherSweep { .. } => {
            "join shards of one sweep: the same scenario, --over, --set, --config, --replications \
             and --seed"
                .to_owned()
        }
        MergeError::OtherDivision { .. } => {
            "join shards of one division, each K of the same N".to_owned()
        }
        MergeError::Twice { .. } => "name each shard once".to_owned(),
        MergeError::Missing { missing, header, folder } => {
            let command = |number: &u32| {
                let shard = Shard::new((*number).into(), header.shard.of().into()).ok()?;
                let sibling = folder.with_file_name(shard.folder());
                Some(format!("\n  {}", again(header, shard, &sibling)))
            };
            let shown: String = missing.iter().take(MOST_COMMANDS).filter_map(command).collect();
            let more = missing.len().saturating_sub(MOST_COMMANDS);
            let rest =
                if more > 0 { format!("\n  and so on with {more} more") } else { String::new() };
            format!("run what is missing:{shown}{rest}")
        }
    };
    Failure::input(format!("{error}\nhelp: {help}"))
}

/// The command that does in `folder` what is left to do of a shard.
fn again(header: &Header, shard: Shard, folder: &Path) -> String {
    let is_named = folder.file_name().is_some_and(|name| *name == *shard.folder());
    let parent = folder.parent().filter(|parent| *parent != Path::new(""));
    let out = match is_named {
        true => parent.unwrap_or(Path::new(".")),
        false => folder,
    };
    let out = format!("--out {}", quoted(&out.display().to_string()));
    let resume = "--resume".to_owned();
    match is_named || shard != Shard::WHOLE {
        true => shards::command(&header.asked, &[format!("--shard {shard}"), resume, out]),
        false => shards::command(&header.asked, &[resume, out]),
    }
}

//! `headway schema`

use std::path::PathBuf;

use headway_sim::report::folder::Folder;

use crate::failure::Failure;
use crate::schemas::Kind;
use crate::{outcome, terminal};

/// Write the JSON schema of a file, with which editors complete and check it
///
/// Of files that people write, and of the JSON files of results, for tools that read them. It says which keys there are, what they mean and what they can hold. Rules between keys it does not
/// know: the commands that read a file report those.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Of which file
    #[arg(value_enum, required_unless_present = "out")]
    kind: Option<Kind>,
    /// Write it (all of them, where none is named) into this folder instead of to stdout
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let text = |kind: &Kind| format!("{:#}\n", kind.schema());
    let Some(out) = &args.out else {
        return terminal::data(&args.kind.iter().map(text).collect::<String>());
    };
    let kinds = args
        .kind
        .map_or_else(|| <Kind as clap::ValueEnum>::value_variants().to_vec(), |kind| vec![kind]);
    let unwritable = |error| Failure::unwritable(out, &error);
    let mut folder = Folder::open(out).map_err(unwritable)?;
    for kind in &kinds {
        folder.write(kind.schema_file(), text(kind).as_bytes()).map_err(unwritable)?;
    }
    terminal::remark(&outcome::commit(folder, out)?);
    Ok(())
}

//! `headway man`

use std::io;
use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;
use headway_sim::report::folder::Folder;

use crate::failure::Failure;
use crate::{outcome, terminal};

/// Write man pages into a folder: headway.1, and one for each command
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder
    dir: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let unwritable = |error: io::Error| Failure::unwritable(&args.dir, &error);
    let mut command = crate::command();
    command.build();
    let mut folder = Folder::open(&args.dir).map_err(unwritable)?;
    write(&mut folder, &command, "headway").map_err(unwritable)?;
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let name = format!("headway-{}", sub.get_name());
        write(&mut folder, sub, &name).map_err(unwritable)?;
    }
    terminal::remark(&outcome::commit(folder, &args.dir)?);
    Ok(())
}

fn write(folder: &mut Folder, command: &Command, name: &str) -> io::Result<()> {
    let mut page = Vec::new();
    Man::new(command.clone().display_name(name.to_owned())).render(&mut page)?;
    folder.write(&format!("{name}.1"), &page)
}

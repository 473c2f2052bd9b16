//! `headway plot`

use std::path::{Path, PathBuf};

use headway_sim::report::folder::Folder;
use headway_sim::report::html;

use crate::failure::Failure;
use crate::{outcome, page, redrawn, terminal};

/// Draw the page and the plots of a result or of a record again
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder of a result, which is drawn from its CSV files alone; or the database of a live run
    /// or what `simulate --record` wrote
    #[arg(value_name = "DIR|RUN")]
    dir: PathBuf,
    /// Folder for the page and the plots [default: the same]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.dir.is_file() {
        let folder = args.dir.parent().filter(|folder| *folder != Path::new(""));
        let to = args.out.as_deref().or(folder).unwrap_or(Path::new("."));
        terminal::note(&page::draw(&args.dir, to)?);
        return Ok(());
    }
    if let Err(error) = args.dir.metadata() {
        return Err(Failure::unreadable(&args.dir, &error));
    }
    let (pictures, page) = redrawn::folder(&args.dir)?;
    let to = args.out.as_ref().unwrap_or(&args.dir);
    let unwritable = |error| Failure::unwritable(to, &error);
    let mut folder = Folder::open(to).map_err(unwritable)?;
    if let Some(page) = page {
        folder.write(html::FILE, page.as_bytes()).map_err(unwritable)?;
    }
    for picture in &pictures {
        outcome::stage(&mut folder, picture).map_err(unwritable)?;
    }
    terminal::remark(&outcome::commit(folder, to)?);
    Ok(())
}

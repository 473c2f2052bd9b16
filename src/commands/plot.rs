//! `headway plot`

use std::path::{Path, PathBuf};

use headway_sim::plan::results::PlanResults;
use headway_sim::report::folder::Folder;
use headway_sim::report::html;
use headway_sim::report::plot::{self, Learned, Picture, PlotError};
use headway_sim::report::results::Results;
use headway_sim::tournament::results::TournamentResults;
use headway_sim::tune::results::TuneResults;

use crate::failure::Failure;
use crate::{outcome, page, steps, terminal};

/// The record of a live run, as `headway run` names it.
const RECORD: &str = "run.db";

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
    let (pictures, page) = drawn(&args.dir)?;
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

/// The plots of a folder, and its page where it can have one.
fn drawn(dir: &Path) -> Result<(Vec<Picture>, Option<String>), Failure> {
    let unreadable = |error| {
        let help = "name a folder that `headway sweep`, `simulate`, `tune`, `plan`, `tournament` or `run` wrote";
        Failure::input(format!("{error}\nhelp: {help}"))
    };
    let broken = |error: PlotError| Failure::broken(error);
    if let Some(kinds) = steps::read(dir)? {
        let pictures = vec![plot::draw_learning(&kinds).map_err(broken)?];
        let page = of_live(dir, &kinds, &pictures)?;
        return Ok((pictures, page));
    }
    if let Some(plan) = PlanResults::read(dir).map_err(unreadable)? {
        let pictures = plot::draw_plan(&plan).map_err(broken)?;
        let page = html::of_plan(&plan, &pictures);
        return Ok((pictures, Some(page)));
    }
    if let Some(tune) = TuneResults::read(dir).map_err(unreadable)? {
        let pictures = plot::draw_tune(&tune).map_err(broken)?;
        let page = html::of_tune(&tune, &pictures);
        return Ok((pictures, Some(page)));
    }
    if let Some(played) = TournamentResults::read(dir).map_err(unreadable)? {
        return Ok((plot::draw_tournament(&played).map_err(broken)?, None));
    }
    let results = Results::read(dir).map_err(unreadable)?;
    let pictures = plot::draw(&results).map_err(broken)?;
    let page = html::of_results(&results, &pictures);
    Ok((pictures, Some(page)))
}

/// The page of a live run whose record lies beside its steps.
fn of_live(dir: &Path, kinds: &[Learned], pictures: &[Picture]) -> Result<Option<String>, Failure> {
    let record = dir.join(RECORD);
    match kinds {
        [Learned { runs, .. }] if runs.len() == 1 && record.is_file() => {
            page::of_record(&record, runs.first(), pictures).map(Some)
        }
        _ => Ok(None),
    }
}

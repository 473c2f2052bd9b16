//! `headway plot`

use std::path::PathBuf;

use headway_sim::plan::results::PlanResults;
use headway_sim::report::folder::Folder;
use headway_sim::report::plot;
use headway_sim::report::results::Results;
use headway_sim::tournament::results::TournamentResults;
use headway_sim::tune::results::TuneResults;

use crate::failure::Failure;
use crate::{outcome, steps, terminal};

/// Draw the plots of a result again, from its CSV files alone
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder of the result
    dir: PathBuf,
    /// Folder for the plots [default: the same]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let unreadable = |error| {
        let help = "name a folder that `headway sweep`, `simulate`, `tune`, `plan`, `tournament` or `run` wrote";
        Failure::input(format!("{error}\nhelp: {help}"))
    };
    let pictures = if let Some(kinds) = steps::read(&args.dir)? {
        plot::draw_learning(&kinds).map(|picture| vec![picture])
    } else if let Some(plan) = PlanResults::read(&args.dir).map_err(unreadable)? {
        plot::draw_plan(&plan)
    } else if let Some(tune) = TuneResults::read(&args.dir).map_err(unreadable)? {
        plot::draw_tune(&tune)
    } else if let Some(played) = TournamentResults::read(&args.dir).map_err(unreadable)? {
        plot::draw_tournament(&played)
    } else {
        plot::draw(&Results::read(&args.dir).map_err(unreadable)?)
    };
    let pictures = pictures.map_err(Failure::broken)?;
    let to = args.out.as_ref().unwrap_or(&args.dir);
    let unwritable = |error| Failure::unwritable(to, &error);
    let mut folder = Folder::open(to).map_err(unwritable)?;
    for picture in &pictures {
        outcome::stage(&mut folder, picture).map_err(unwritable)?;
    }
    terminal::remark(&outcome::commit(folder, to)?);
    Ok(())
}

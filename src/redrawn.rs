//! What the files of a folder show, drawn again.

use std::path::Path;

use headway_sim::plan::results::PlanResults;
use headway_sim::report::html;
use headway_sim::report::plot::{self, Learned, Picture, PlotError};
use headway_sim::report::results::Results;
use headway_sim::tournament::results::TournamentResults;
use headway_sim::tune::results::TuneResults;
use headway_sim::validate::Validation;

use crate::failure::Failure;
use crate::{page, steps};

/// The record of a live run, as `headway run` names it.
const RECORD: &str = "run.db";

/// Plots, and a page where there can be one.
pub(crate) type Drawn = (Vec<Picture>, Option<String>);

/// What a folder shows.
pub(crate) fn folder(dir: &Path) -> Result<Drawn, Failure> {
    let unreadable = |error| {
        let help = "name a folder that `headway sweep`, `simulate`, `tune`, `plan`, `tournament`, \
                    `validate` or `run` wrote";
        Failure::input(format!("{error}\nhelp: {help}"))
    };
    if let Some(kinds) = steps::read(dir)? {
        let pictures = vec![plot::draw_learning(&kinds).map_err(Failure::broken)?];
        let page = of_live(dir, &kinds, &pictures)?;
        return Ok((pictures, page));
    }
    if let Some(plan) = PlanResults::read(dir).map_err(unreadable)? {
        return shown(&plan, plot::draw_plan, html::of_plan);
    }
    if let Some(tune) = TuneResults::read(dir).map_err(unreadable)? {
        return shown(&tune, plot::draw_tune, html::of_tune);
    }
    if let Some(played) = TournamentResults::read(dir).map_err(unreadable)? {
        return shown(&played, plot::draw_tournament, html::of_tournament);
    }
    if let Some(validation) = Validation::read(dir).map_err(unreadable)? {
        return shown(&validation, plot::draw_validation, html::of_validation);
    }
    let results = Results::read(dir).map_err(unreadable)?;
    shown(&results, plot::draw, html::of_results)
}

/// The plots and the page of what a folder holds.
fn shown<R>(
    results: &R,
    draw: fn(&R) -> Result<Vec<Picture>, PlotError>,
    page: fn(&R, &[Picture]) -> String,
) -> Result<Drawn, Failure> {
    let pictures = draw(results).map_err(Failure::broken)?;
    let page = page(results, &pictures);
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

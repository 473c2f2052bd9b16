//! Writing what runs gave, and saying what went wrong in them.

use std::io;
use std::path::Path;

use headway_shared::config::{Diagnostic, Diagnostics};
use headway_sim::calibrate::Calibrated;
use headway_sim::plan::Planning;
use headway_sim::plan::results::PlanResults;
use headway_sim::report::folder::Folder;
use headway_sim::report::html;
use headway_sim::report::json;
use headway_sim::report::plot::{self, Picture};
use headway_sim::report::results::{Kind, Results};
use headway_sim::sweep::{Outline, Plan, Planned, Trouble};
use headway_sim::tournament::results::TournamentResults;
use headway_sim::tune::Tuning;
use headway_sim::tune::results::TuneResults;
use headway_sim::validate::{Compared, Validation};

use crate::failure::Failure;
use crate::headline;
use crate::options::{Format, Overrides};
use crate::terminal::{self, quoted};
use crate::whole_file::WholeFile;

/// A folder for what a command writes.
pub(crate) fn folder(to: &Path) -> Result<Folder, Failure> {
    Folder::open(to).map_err(|error| Failure::unwritable(to, &error))
}

/// Shows on stderr what is suspicious about the points of a plan: once what several of them have.
pub(crate) fn warn(plan: &Plan) {
    warn_of(plan.points());
}

fn warn_of(points: &[Planned]) {
    let mut shown: Vec<&Diagnostic> = Vec::new();
    for item in points.iter().flat_map(|point| &point.warnings.items) {
        if shown.iter().any(|other| is_same(item, other)) {
            continue;
        }
        shown.push(item);
        let has = |point: &&Planned| point.warnings.items.iter().any(|it| is_same(it, item));
        let having: Vec<&Planned> = points.iter().filter(has).collect();
        let word_by_word = |point: &&Planned| point.warnings.items.contains(item);
        // What all have in the same words is about the scenario, whatever is swept.
        if having.len() < points.len() || !having.iter().all(word_by_word) {
            terminal::note(&format!("{}:", places(&having)));
        }
        let sources = having[0].warnings.sources.clone();
        terminal::diagnose(&Diagnostics { sources, items: vec![item.clone()] });
    }
}

/// Whether two warnings differ in nothing but their numbers.
fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    let place = |item: &Diagnostic| (item.origin.source, item.origin.start);
    place(one) == place(other) && words(&one.message).eq(words(&other.message))
}

/// The words of a message, without its numbers.
fn words(message: &str) -> impl Iterator<Item = &str> {
    message.split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty())
}

/// Which points something is said about, the first of them in words.
fn places(points: &[&Planned]) -> String {
    let first = points[0].set.join(", ");
    match points.len() - 1 {
        0 => format!("with {first}"),
        1 => format!("with {first}, and similarly with {}", points[1].set.join(", ")),
        more => format!("with {first}, and similarly at {more} other points"),
    }
}

/// The results as they go to stdout.
pub(crate) fn text(results: &Results, format: Format) -> Result<String, Failure> {
    match format {
        Format::Table => Ok(match results.meta.kind {
            Kind::Sweep => headline::sweep(results),
            Kind::Run => headline::run(results),
        }),
        Format::Json => {
            let document = json::document(results).map_err(Failure::broken)?;
            Ok(format!("{document:#}\n"))
        }
        Format::Csv => results.points.to_text().map_err(Failure::broken),
    }
}

/// Stages the page, the tables and the plots of a result and puts them in their places; says in words
/// where. `command` is the one that repeats it.
pub(crate) fn save(
    mut folder: Folder,
    to: &Path,
    results: &mut Results,
    command: String,
) -> Result<String, Failure> {
    let pictures = plot::draw(results).map_err(Failure::broken)?;
    results.meta.plots = pictures.iter().map(|picture| picture.name.clone()).collect();
    results.meta.about.get_or_insert_default().command = command;
    folder.replaces(Results::own_files(to));
    let page = html::of_results(results, &pictures);
    save_all(folder, to, Some(page), &pictures, results.files())
}

/// Stages the table and plots of a validation and puts them in their places; says in words where.
pub(crate) fn save_validation(
    folder: Folder,
    to: &Path,
    validation: &Validation,
) -> Result<String, Failure> {
    // As it is drawn again from its files.
    let stored = validation.as_stored().map_err(Failure::broken)?;
    let pictures = plot::draw_validation(&stored).map_err(Failure::broken)?;
    let page = html::of_validation(&stored, &pictures);
    save_all(folder, to, Some(page), &pictures, validation.files())
}

/// Stages the tables and plots of a plan and puts them in their places; says in words where.
pub(crate) fn save_plan(
    folder: Folder,
    to: &Path,
    results: &PlanResults,
) -> Result<String, Failure> {
    let pictures = plot::draw_plan(results).map_err(Failure::broken)?;
    let page = html::of_plan(results, &pictures);
    save_all(folder, to, Some(page), &pictures, results.files())
}

/// The same of a tournament.
pub(crate) fn save_tournament(
    folder: Folder,
    to: &Path,
    results: &TournamentResults,
) -> Result<String, Failure> {
    let pictures = plot::draw_tournament(results).map_err(Failure::broken)?;
    let page = html::of_tournament(results, &pictures);
    save_all(folder, to, Some(page), &pictures, results.files())
}

fn save_all(
    mut folder: Folder,
    to: &Path,
    page: Option<String>,
    pictures: &[Picture],
    files: io::Result<Vec<(String, Vec<u8>)>>,
) -> Result<String, Failure> {
    let unwritable = |error: io::Error| Failure::unwritable(to, &error);
    if let Some(page) = page {
        folder.write(html::FILE, page.as_bytes()).map_err(unwritable)?;
    }
    for picture in pictures {
        stage(&mut folder, picture).map_err(unwritable)?;
    }
    for (name, bytes) in files.map_err(unwritable)? {
        folder.write(&name, &bytes).map_err(unwritable)?;
    }
    commit(folder, to)
}

/// Stages the tables, the plot and the tuned file of a tuning and puts them in their places; says
/// in words where. Where nothing was chosen, an earlier tuned file goes.
pub(crate) fn save_tune(
    mut folder: Folder,
    to: &Path,
    results: &TuneResults,
    tuned: Option<String>,
) -> Result<String, Failure> {
    let pictures = plot::draw_tune(results).map_err(Failure::broken)?;
    let page = html::of_tune(results, &pictures);
    folder.replaces(vec![TuneResults::TUNED.into()]);
    let tuned = tuned.map(|text| (TuneResults::TUNED.to_owned(), text.into_bytes()));
    let files = results.files().map(|files| tuned.into_iter().chain(files).collect());
    save_all(folder, to, Some(page), &pictures, files)
}

/// Stages a calibrated scenario and the columns it reads, and puts them in their places; says in words
/// where.
pub(crate) fn save_calibrated(file: &Path, found: &Calibrated) -> Result<String, Failure> {
    let file = WholeFile { path: file, option: "--out", example: "scenario.toml" };
    let unwritable = |error: io::Error| file.unwritable(&error);
    let (mut folder, name) = file.stage()?;
    for (column, bytes) in &found.files {
        folder.write(column, bytes).map_err(unwritable)?;
    }
    folder.write(&name, found.scenario.as_bytes()).map_err(unwritable)?;
    commit(folder, file.folder())
}

/// Stages the table of a comparison and puts it in its place; says in words where.
pub(crate) fn save_comparison(to: &Path, csv: &str) -> Result<String, Failure> {
    let files = vec![("compare.csv".into(), csv.into())];
    save_all(folder(to)?, to, None, &[], Ok(files))
}

/// Says on stderr what is suspicious about the configuration that was chosen.
pub(crate) fn warn_of_tune(tuning: &Tuning) {
    if let Some(chosen) = tuning.chosen {
        warn_of(std::slice::from_ref(&tuning.candidates[chosen].planned));
    }
}

/// Says on stderr what else is to be known of a comparison with runs.
pub(crate) fn warn_of_validation(validation: &Validation, scenario: &Path) {
    if validation.uncertain == 0 {
        terminal::note(&format!(
            "warning: {} has no [calibration]: the intervals hold chance alone, and nothing of what \
             is unknown of its numbers",
            scenario.display()
        ));
    }
    for Compared { name, notes, failed, .. } in &validation.runs {
        for note in notes {
            terminal::note(&format!("warning: {name}: {note}"));
        }
        if let Some((what, count)) = failed {
            let of = validation.replications;
            terminal::note(&format!("error: {name}: {count} of {of} simulations are none: {what}"));
        }
    }
}

/// Says on stderr which layouts were left out of a plan and why, what is suspicious about the
/// chosen split, and which splits cannot run.
pub(crate) fn warn_of_plan(planning: &Planning) {
    for (layout, misfit) in &planning.left_out {
        terminal::note(&format!("{} is left out:", layout.word()));
        terminal::diagnose(&misfit.diagnostics);
    }
    let failed = planning.options.iter().filter(|option| option.failed.is_some());
    for option in failed {
        let what = option.failed.as_deref().unwrap_or_default();
        let words = option.candidate.split.words();
        terminal::note(&format!("warning: {words}: {what}; it cannot be chosen"));
    }
    let Some(chosen) = planning.chosen else { return };
    let planned = &planning.options[chosen].candidate.planned;
    warn_of(std::slice::from_ref(planned));
    if let Some(trouble) = planning.trouble.iter().find(|trouble| trouble.point == chosen) {
        let Trouble { replication, what, .. } = trouble;
        terminal::note(&format!("warning: the choice: replication {replication} {what}"));
    }
}

/// Stages both files of a picture.
pub(crate) fn stage(folder: &mut Folder, picture: &Picture) -> io::Result<()> {
    folder.write(&format!("{}.svg", picture.name), picture.svg.as_bytes())?;
    folder.write(&format!("{}.png", picture.name), &picture.png)
}

/// Puts staged files in their places; says in words where.
pub(crate) fn commit(folder: Folder, to: &Path) -> Result<String, Failure> {
    let pictures = folder.names().iter().filter(|name| name.ends_with(".png")).count();
    let others: Vec<&str> = folder
        .names()
        .iter()
        .filter(|name| !name.ends_with(".png") && !name.ends_with(".svg"))
        .map(String::as_str)
        .collect();
    let mut what = others.join(", ");
    if pictures > 0 {
        let joint = if what.is_empty() { "" } else { ", and " };
        what = format!("{what}{joint}{pictures} plots (SVG, PNG)");
    }
    folder.commit().map_err(|error| Failure::unwritable(to, &error))?;
    Ok(format!("wrote {what} to {}", to.display()))
}

/// Says what went wrong in which run, with the command that repeats it.
///
/// # Errors
/// [`Failure::Negative`] if a run is no result.
pub(crate) fn judge(
    trouble: &[Trouble],
    outline: &Outline,
    scenario: &Path,
    overrides: &Overrides,
) -> Result<(), Failure> {
    let all = trouble;
    let mut said: Vec<&Trouble> = Vec::new();
    let alike = |one: &Trouble, other: &Trouble| {
        one.point == other.point && words(&one.what).eq(words(&other.what))
    };
    for trouble in all {
        if said.iter().any(|other| alike(other, trouble)) {
            continue;
        }
        said.push(trouble);
        let point = &outline.points[trouble.point];
        let severity = if trouble.fatal { "error" } else { "warning" };
        let place = match point.values.is_empty() {
            true => String::new(),
            false => format!("{}: ", point.set.join(", ")),
        };
        let Trouble { replication, what, .. } = trouble;
        let others = all.iter().filter(|other| alike(other, trouble)).count() - 1;
        let others = match others {
            0 => String::new(),
            1 => " (and 1 other replication likewise)".to_owned(),
            more => format!(" (and {more} other replications likewise)"),
        };
        terminal::note(&format!("{severity}: {place}replication {replication} {what}{others}"));
        let command = repeat(scenario, overrides, &point.set, *replication);
        terminal::note(&format!("repeat it: {command}"));
    }
    match all.iter().any(|trouble| trouble.fatal) {
        true => Err(Failure::Negative),
        false => Ok(()),
    }
}

/// The command that repeats one replication of one point.
fn repeat(scenario: &Path, overrides: &Overrides, set: &[String], replication: u32) -> String {
    let mut words = vec!["headway simulate".to_owned(), quoted(&scenario.display().to_string())];
    words.extend(overrides.words(set));
    words.push(format!("--replication {replication}"));
    words.join(" ")
}

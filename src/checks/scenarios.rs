//! Scenarios beside their goldens.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use headway_sim::check::{
    Blessed, Case, Golden, GoldenError, Limits, Outcome, Target, bless_all, check_all,
    runs_to_bless,
};
use headway_sim::report::folder::Folder;
use headway_sim::scenario::Scenario;
use serde_json::json;

use super::Checked;
use crate::commands::check::Args;
use crate::failure::Failure;
use crate::options;
use crate::progress::Bar;
use crate::terminal::{self, quoted};

/// Where scenarios are looked for if none is named.
const SCENARIOS: &str = "scenarios";

/// The scenarios that are checked if none is named.
pub(crate) fn all() -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(SCENARIOS).map_err(|error| {
        let help = "name scenarios or records, or run it where that folder is";
        Failure::input(format!("{SCENARIOS}: cannot be read: {error}\nhelp: {help}"))
    })?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "toml")).collect();
    paths.sort();
    match paths.is_empty() {
        true => {
            let help = "name scenarios or records";
            Err(Failure::input(format!("{SCENARIOS}: holds no scenario\nhelp: {help}")))
        }
        false => Ok(paths),
    }
}

/// Checks scenarios, and accepts what they do if that is asked for.
pub(crate) fn check(paths: &[&PathBuf], args: &Args) -> Result<Vec<Checked>, Failure> {
    let mut targets = Vec::new();
    for path in paths {
        targets.push(target(path, args)?);
    }
    for (place, target) in targets.iter().enumerate() {
        let name = &target.scenario.name;
        let twin = targets[..place].iter().position(|other| other.scenario.name == *name);
        if let Some(twin) = twin.filter(|_| paths.len() > 1) {
            let (one, other) = (paths[twin].display(), paths[place].display());
            let help = "give each scenario a name of its own: its golden is called after it";
            let what = format!("{one} and {other} are both called {name}");
            return Err(Failure::input(format!("{what}\nhelp: {help}")));
        }
    }
    let jobs = args.jobs.map_or(0, usize::from);
    let bar = Bar::new(targets.len());
    let outcomes = check_all(&targets, jobs, &bar).map_err(Failure::broken)?;
    drop(bar);
    if args.bless {
        return bless(paths, &targets, &outcomes, args);
    }
    let all = paths.iter().zip(&targets).zip(&outcomes);
    Ok(all.map(|((path, target), outcome)| checked(path, target, outcome, args)).collect())
}

fn target(path: &Path, args: &Args) -> Result<Target, Failure> {
    let scenario = options::load(path, &args.overrides, &[])?.scenario;
    let golden = match Golden::load(&args.results, &scenario.name) {
        Ok(golden) => Some(golden),
        Err(GoldenError::Missing) => None,
        // It is replaced.
        Err(error) if args.bless && !matches!(error, GoldenError::OtherFormat { .. }) => None,
        Err(error) => {
            let help = format!(
                "restore it from version control, or accept what the scenario does now: {} --bless",
                command(path, args)
            );
            let folder = args.results.display();
            return Err(Failure::input(format!("{folder}: {error}\nhelp: {help}")));
        }
    };
    Ok(Target { scenario, golden })
}

/// The command that checks a scenario.
fn command(path: &Path, args: &Args) -> String {
    let word = |path: &Path| quoted(&path.display().to_string());
    let results = match args.results.as_os_str() == "results/check" {
        true => String::new(),
        false => format!(" --results {}", word(&args.results)),
    };
    format!("headway check {}{results}", word(path))
}

fn checked(path: &Path, target: &Target, outcome: &Outcome, args: &Args) -> Checked {
    let accept = format!("help: if that is meant, accept it: {} --bless\n", command(path, args));
    let (passed, summary, text) = match outcome {
        Outcome::Same => (true, same(target), String::new()),
        Outcome::Missing => {
            let help = format!("help: accept what it does now: {} --bless\n", command(path, args));
            (false, format!("it has no golden in {}", args.results.display()), help)
        }
        Outcome::Panicked(message) => {
            (false, "panicked, which is a bug of Headway".to_owned(), format!("{message}\n"))
        }
        Outcome::Differs(difference) => {
            let summary = difference.summary();
            match args.tolerance.filter(|&tolerance| difference.is_within(tolerance)) {
                Some(tolerance) => {
                    let percent = tolerance * 100.0;
                    (true, format!("{summary}; within the tolerance of {percent}%"), String::new())
                }
                None => (false, summary, difference.text() + &accept),
            }
        }
    };
    let difference = match outcome {
        Outcome::Differs(difference) => difference.json(),
        _ => json!(null),
    };
    finish(path, target, passed, summary, text, &difference)
}

fn finish(
    path: &Path,
    target: &Target,
    passed: bool,
    summary: String,
    text: String,
    difference: &serde_json::Value,
) -> Checked {
    let (name, file) = (target.scenario.name.clone(), path.display().to_string());
    let mut shown = format!("{name}: {summary}\n");
    text.lines().for_each(|line| shown += &format!("  {line}\n"));
    let document = json!({
        "name": name, "file": file, "passed": passed, "summary": summary, "difference": difference,
    });
    Checked { case: Case { name, file, passed, summary, text }, shown, document }
}

fn same(target: &Target) -> String {
    let Some((golden, _)) = &target.golden else { return String::new() };
    let Golden { inputs, digest, max_inputs, .. } = golden;
    let cut = if *max_inputs > 0 { ", its first" } else { "" };
    format!("as accepted ({inputs} inputs{cut}, digest {digest})")
}

/// Accepts what differs or is new.
fn bless(
    paths: &[&PathBuf],
    targets: &[Target],
    outcomes: &[Outcome],
    args: &Args,
) -> Result<Vec<Checked>, Failure> {
    let limits: Vec<Limits> = targets.iter().map(|target| limits(target, args)).collect();
    let is_new = |place: usize| {
        let pinned = args.max_inputs.is_some() || args.log_inputs.is_some();
        pinned || !matches!(outcomes[place], Outcome::Same | Outcome::Panicked(_))
    };
    let places: Vec<usize> = (0..targets.len()).filter(|&place| is_new(place)).collect();
    let scenarios: Vec<(&Scenario, Limits)> =
        places.iter().map(|&place| (&targets[place].scenario, limits[place])).collect();
    let bar = Bar::new(runs_to_bless(&scenarios));
    let jobs = args.jobs.map_or(0, usize::from);
    let blessed = bless_all(&scenarios, jobs, &bar).map_err(Failure::broken)?;
    drop(bar);
    let good: Vec<&Blessed> = blessed.iter().filter_map(|blessed| blessed.as_ref().ok()).collect();
    save(&args.results, &good).map_err(|error| {
        let help = "choose another folder with --results DIR";
        let folder = args.results.display();
        Failure::input(format!("{folder}: cannot be written: {error}\nhelp: {help}"))
    })?;
    let mut blessed = places.iter().zip(&blessed).peekable();
    let mut all = Vec::new();
    for (place, target) in targets.iter().enumerate() {
        let now = blessed.next_if(|(now, _)| **now == place).map(|(_, blessed)| blessed);
        let (passed, summary, text) = match (now, &outcomes[place]) {
            (Some(Err(message)), _) | (None, Outcome::Panicked(message)) => {
                (false, "panicked, which is a bug of Headway".to_owned(), format!("{message}\n"))
            }
            (Some(Ok(_)), Outcome::Differs(difference)) => {
                (true, format!("accepted: {}", difference.summary()), difference.text())
            }
            (Some(Ok(Blessed { golden, .. })), _) => {
                let Golden { inputs, digest, .. } = golden;
                (true, format!("accepted: {inputs} inputs, digest {digest}"), String::new())
            }
            (None, _) => (true, same(target), String::new()),
        };
        all.push(finish(paths[place], target, passed, summary, text, &json!(null)));
    }
    Ok(all)
}

fn limits(target: &Target, args: &Args) -> Limits {
    let pinned = target.golden.as_ref().map(|(golden, _)| golden.max_inputs);
    Limits {
        max_inputs: args.max_inputs.or(pinned).unwrap_or_default(),
        log_inputs: args.log_inputs.unwrap_or(Limits::default().log_inputs),
    }
}

/// Each golden after its log: who is stopped in between leaves a pair that is seen not to belong
/// together.
fn save(results: &Path, blessed: &[&Blessed]) -> io::Result<()> {
    if blessed.is_empty() {
        return Ok(());
    }
    let mut folder = Folder::open(results)?;
    for Blessed { golden, log } in blessed {
        folder.write(&Golden::log_file(&golden.scenario), &log.to_bytes())?;
        folder.write(&Golden::file(&golden.scenario), golden.to_text().as_bytes())?;
    }
    folder.commit()
}

/// Says of which goldens there is no scenario any more.
pub(crate) fn name_orphans(results: &Path, checked: &[Checked]) {
    let Ok(entries) = fs::read_dir(results) else { return };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut orphans: Vec<String> = names
        .filter(|name| {
            let known = |it: &Checked| *name == Golden::file(&it.case.name);
            name.ends_with(".json") && !checked.iter().any(known)
        })
        .collect();
    orphans.sort();
    for orphan in orphans {
        let path = results.join(orphan);
        terminal::note(&format!("warning: {}: there is no such scenario", path.display()));
    }
}

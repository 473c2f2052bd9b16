//! The tuned file, and whether it may be promoted.

use std::fs;
use std::path::{Path, PathBuf};

use headway_shared::config::tuned::Tuned;
use headway_shared::config::{Layers, Table};
use headway_shared::record::DECISION_VERSION;
use headway_sim::plan::constraint::Constraint;
use headway_sim::stats::Estimate;

use super::{file, replace};
use crate::failure::Failure;
use crate::options::{self, Loaded, Overrides};
use crate::terminal;

const AGAIN: &str = "tune again";

/// A tuned file that may be promoted.
pub(crate) struct Promotable {
    /// What messages call it.
    pub(super) name: String,
    pub(super) tuned: Tuned,
    /// Its text, and that of its scenario, as trees: which keys they name.
    pub(super) trees: [Table; 2],
}

/// Reads a tuned file, and looks whether what it says still holds: the scenario is the one that was
/// tuned, the core decides as it did, and the predictions keep the constraints.
pub(crate) fn load(path: &Path, scenario: Option<&Path>) -> Result<Promotable, Failure> {
    let (name, text) = (path.display().to_string(), options::read(path)?);
    let (tuned, warnings) = Tuned::load(&name, &text)?;
    let version = tuned.provenance.decision_version;
    if version != DECISION_VERSION {
        return Err(Failure::input(format!(
            "{name}: it was tuned with decision version {version}, and this Headway decides as \
             version {DECISION_VERSION}: its predictions are of another core\nhelp: {AGAIN} with this \
             build"
        )));
    }
    terminal::diagnose(&warnings);
    let tree = Layers::new().toml(&name, text).merge()?.root;
    let scenario = same_scenario(&name, &tuned, scenario)?;
    keeps_constraints(&name, &tuned)?;
    Ok(Promotable { name, tuned, trees: [tree, scenario] })
}

/// The scenario, with what was laid over it, is still the one that was tuned: its tree.
fn same_scenario(name: &str, tuned: &Tuned, given: Option<&Path>) -> Result<Table, Failure> {
    let from = &tuned.provenance;
    let recorded = PathBuf::from(&from.scenario_file);
    let path = given.unwrap_or(&recorded);
    if given.is_none() && !path.is_file() {
        return Err(Failure::input(format!(
            "{name}: its scenario, {}, is not there\nhelp: run this where `headway tune` was run, or \
             name it with --scenario FILE",
            path.display()
        )));
    }
    let overrides = overrides(name, &from.overrides)?;
    let Loaded { scenario, tree } = options::load(path, &overrides, &[])?;
    let found = scenario.digest();
    if found == from.scenario_digest {
        return Ok(tree);
    }
    if let Some(before) = before_promotion(&overrides) {
        // A promotion has changed what was laid over it, and nothing else has.
        let loaded = options::load(path, &before, &[]);
        if let Ok(Loaded { scenario, tree }) = loaded
            && scenario.digest() == from.scenario_digest
        {
            return Ok(tree);
        }
    }
    let over = match from.overrides.as_slice() {
        [] => String::new(),
        over => format!(" (with {})", over.join(" ")),
    };
    Err(Failure::input(format!(
        "{name}: {}{over} is not the scenario that was tuned: its digest is {found}, and was {}\n\
         help: {AGAIN}, or name the scenario as it was with --scenario FILE",
        path.display(),
        from.scenario_digest
    )))
}

/// The same, with files as they were before the last promotion into them, if there are any.
fn before_promotion(overrides: &Overrides) -> Option<Overrides> {
    let copy = |file: &PathBuf| {
        let kept = fs::canonicalize(file).and_then(|file| replace::kept(&file, file::BEFORE));
        kept.ok().flatten().map(|(_, copy)| copy)
    };
    let copies: Vec<Option<PathBuf>> = overrides.config.iter().map(copy).collect();
    if copies.iter().all(Option::is_none) {
        return None;
    }
    let files = overrides.config.iter().zip(copies);
    let config = files.map(|(file, copy)| copy.unwrap_or_else(|| file.clone())).collect();
    Some(Overrides { config, ..overrides.clone() })
}

/// What was laid over the scenario, as it is written in the file.
fn overrides(name: &str, texts: &[String]) -> Result<Overrides, Failure> {
    let mut overrides = Overrides { set: Vec::new(), config: Vec::new(), seed: None };
    for text in texts {
        match text.split_once(' ') {
            Some(("--set", value)) => overrides.set.push(value.to_owned()),
            Some(("--config", value)) => overrides.config.push(value.into()),
            Some(("--seed", value)) if value.parse::<u64>().is_ok() => {
                overrides.seed = value.parse().ok();
            }
            _ => {
                return Err(Failure::input(format!(
                    "{name}: `overrides` holds {text:?}, which is no --set, --config or --seed\n\
                     help: {AGAIN}, and hand on the file as it is written"
                )));
            }
        }
    }
    Ok(overrides)
}

/// What was predicted keeps what had to be kept.
fn keeps_constraints(name: &str, tuned: &Tuned) -> Result<(), Failure> {
    let mut broken = Vec::new();
    for text in &tuned.provenance.subject_to {
        let constraint = Constraint::parse(text).map_err(|error| {
            Failure::input(format!("{name}: `subject_to`: {error}\nhelp: {}", error.help()))
        })?;
        let predicted =
            tuned.predicted.iter().find(|(metric, ..)| metric.name == constraint.metric);
        let estimate = predicted.map(|&(_, mean, half_width)| Estimate {
            mean,
            half_width: Some(half_width),
            count: tuned.provenance.replications,
        });
        if !constraint.is_kept(estimate) {
            let said = predicted
                .map_or("nothing".to_owned(), |(_, mean, half)| format!("{mean} ± {half}"));
            broken.push(format!("{name}: {text} does not hold: it predicts {said}"));
        } else if constraint.is_unsure(estimate) {
            terminal::note(&format!("{name}: {text} is predicted, but not surely"));
        }
    }
    if broken.is_empty() {
        return Ok(());
    }
    broken.push(format!("help: {AGAIN}, with a space in which a configuration keeps it"));
    Err(Failure::broken(broken.join("\n")))
}

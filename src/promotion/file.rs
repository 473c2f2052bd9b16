//! Into a file, and back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use headway_shared::config::edit::changes;
use headway_shared::config::{Layers, load_live};

use super::tuned::Promotable;
use super::{difference, plan, replace};
use crate::failure::Failure;
use crate::{options, terminal};

/// The copies of what promotions have replaced.
pub(super) const BEFORE: &str = "before-promote";
/// The copies of what rollbacks have replaced.
const UNDONE: &str = "before-rollback";

/// A configuration on disk.
struct Target {
    /// What messages call it: as it was given.
    name: String,
    /// The file itself, where a link was given.
    file: PathBuf,
    text: String,
}

impl Target {
    fn read(path: &Path) -> Result<Self, Failure> {
        let file = fs::canonicalize(path).map_err(|error| Failure::unreadable(path, &error))?;
        Ok(Self { name: path.display().to_string(), text: options::read(&file)?, file })
    }

    fn unwritable(&self, error: &io::Error) -> Failure {
        let folder = self.file.parent().unwrap_or(Path::new(".")).display();
        Failure::input(format!(
            "{}: cannot be replaced: {error}; it is as it was\nhelp: the file and its folder, \
             {folder}, must be yours to write to",
            self.name
        ))
    }

    /// Puts a text into its place, and keeps the one that was there.
    fn replace(&self, text: &str, kind: &str) -> Result<PathBuf, Failure> {
        let (copy, is_new) =
            replace::keep(&self.file, &self.text, kind).map_err(|error| self.unwritable(&error))?;
        replace::replace(&self.file, &self.text, text).map_err(|error| {
            if is_new {
                let _ = fs::remove_file(&copy);
            }
            self.unwritable(&error)
        })?;
        Ok(copy)
    }
}

/// Edits a configuration in place.
pub(crate) fn promote(
    path: &Path,
    from: &Promotable,
    settings: Option<&Path>,
    dry_run: bool,
) -> Result<(), Failure> {
    let target = Target::read(path)?;
    let promotion = plan::promote(&target.name, &target.text, from)?;
    agrees(&target.name, &promotion.text, settings)?;
    if promotion.text == target.text {
        terminal::note(&format!("{}: it is what was tuned; nothing is written", target.name));
        return Ok(());
    }
    let name = &target.name;
    let head = difference::head(name, promotion.changes.len());
    let lines = difference::lines(name, &target.text, &promotion.text);
    terminal::data(&(head + &difference::keys(&promotion.changes) + &lines))?;
    if dry_run {
        terminal::note("nothing is written: --dry-run");
        return Ok(());
    }
    let copy = target.replace(&promotion.text, BEFORE)?;
    terminal::note(&format!(
        "{name} is promoted; as it was it is {}, and --rollback brings it back",
        copy.display()
    ));
    terminal::note(
        "a run started from it has all of this from its start; one that runs takes it by \
                    --live",
    );
    Ok(())
}

/// Brings back what was there before the last promotion.
pub(crate) fn roll_back(
    path: &Path,
    settings: Option<&Path>,
    dry_run: bool,
) -> Result<(), Failure> {
    let target = Target::read(path)?;
    let name = &target.name;
    let kept = replace::kept(&target.file, BEFORE).map_err(|error| target.unwritable(&error))?;
    let Some((_, copy)) = kept else {
        return Err(Failure::input(format!(
            "{name}: there is nothing to go back to: no {name}.{BEFORE} is beside it\nhelp: name the \
             file that was promoted"
        )));
    };
    let before = options::read(&copy)?;
    let (now, _) = plan::read(name, &target.text).unwrap_or_default();
    let (then, _) = plan::read(&copy.display().to_string(), &before)?;
    agrees(&copy.display().to_string(), &before, settings)?;
    let lines = difference::lines(name, &target.text, &before).replace(", promoted", ", as it was");
    let changes = changes(&now, &then);
    let head =
        if changes.is_empty() { String::new() } else { difference::head(name, changes.len()) };
    terminal::data(&(head + &difference::keys(&changes) + &lines))?;
    if dry_run {
        terminal::note("nothing is written: --dry-run");
        return Ok(());
    }
    if before != target.text {
        let undone = target.replace(&before, UNDONE)?;
        let undone = undone.display();
        terminal::note(&format!("{name} is as it was before; what was undone is {undone}"));
    } else {
        terminal::note(&format!("{name} is as it was before already"));
    }
    // Its text is in its old place: the next rollback goes one further back.
    fs::remove_file(&copy).map_err(|error| target.unwritable(&error))
}

/// The two files of a live run are of one mind.
fn agrees(name: &str, text: &str, settings: Option<&Path>) -> Result<(), Failure> {
    let Some(settings) = settings else { return Ok(()) };
    let layers = Layers::new().toml(name, text);
    let layers = layers.json(settings.display().to_string(), options::read(settings)?);
    let live = load_live(&layers)?;
    terminal::diagnose(&live.warnings);
    Ok(())
}

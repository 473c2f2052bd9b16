//! Recorded runs, measured to be compared with simulations of them.

use std::path::Path;

use headway_sim::scenario::Warmup;
use headway_sim::validate::{MeasureError, Measured, Run, measure};

use crate::failure::Failure;
use crate::terminal::quoted;
use crate::{repeat, source};

/// Measures runs, each given as `RUN@KEY=VALUE...`; `set` holds in the worlds of all.
pub(crate) fn runs(given: &[String], set: &[String], warmup: Warmup) -> Result<Vec<Run>, Failure> {
    let parts: Vec<(&Path, Vec<String>)> = given.iter().map(|run| parts(run)).collect();
    let names = names(&parts.iter().map(|(path, _)| *path).collect::<Vec<_>>());
    let run = |((path, own), name): ((&Path, Vec<String>), String)| {
        let measured = Measured { name, ..one(path, warmup)? };
        Ok(Run { measured, set: set.iter().cloned().chain(own).collect() })
    };
    parts.into_iter().zip(names).map(run).collect()
}

/// A run as a word of a command that says nothing of this machine.
pub(crate) fn word(run: &str) -> String {
    let (path, set) = parts(run);
    let words: Vec<String> = std::iter::once(repeat::shown(path)).chain(set).collect();
    quoted(&words.join("@"))
}

/// Measures the run in a file.
pub(crate) fn one(path: &Path, warmup: Warmup) -> Result<Measured, Failure> {
    let run = source::open(path)?;
    measure(run.as_ref(), warmup).map_err(|error| match error {
        MeasureError::Source(error) => source::wrong(path, &error),
        error @ MeasureError::Short { .. } => Failure::input(format!(
            "{}: {error}\nhelp: compare a longer run, or drop less: --warmup-steps N",
            path.display()
        )),
    })
}

/// The file of a run, and what was said of its world: what follows an `@` and has an `=`.
fn parts(run: &str) -> (&Path, Vec<String>) {
    let (mut path, mut set) = (run, Vec::new());
    while let Some((before, assignment)) = path.rsplit_once('@') {
        if !assignment.contains('=') {
            break;
        }
        path = before;
        set.insert(0, assignment.to_owned());
    }
    (Path::new(path), set)
}

/// What runs are called: by their file; by their folder, where the file has the name that every
/// record has; by the whole path, where two would be called alike.
fn names(paths: &[&Path]) -> Vec<String> {
    let name = |path: &&Path| {
        let stem = path.file_stem().unwrap_or_default();
        let folder = path.parent().and_then(Path::file_name);
        folder.filter(|_| stem == "run").unwrap_or(stem).to_string_lossy().into_owned()
    };
    let all: Vec<String> = paths.iter().map(name).collect();
    let alone = |name: &String| all.iter().filter(|other| *other == name).count() == 1;
    let unique = |(path, name): (&&Path, &String)| match alone(name) {
        true => name.clone(),
        false => path.display().to_string(),
    };
    paths.iter().zip(&all).map(unique).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_run_is_set_in_its_world_alone() {
        assert_eq!(parts("runs/a.db"), (Path::new("runs/a.db"), Vec::new()));
        let (path, set) =
            parts("a@b/run.db@world.judge.vote.mean_sec=0.3@world.serving.replicas=2");
        assert_eq!(path, Path::new("a@b/run.db"));
        assert_eq!(set, ["world.judge.vote.mean_sec=0.3", "world.serving.replicas=2"]);
    }

    #[test]
    fn runs_are_called_by_what_tells_them_apart() {
        let of =
            |paths: &[&str]| names(&paths.iter().map(|path| Path::new(*path)).collect::<Vec<_>>());
        assert_eq!(of(&["runs/eta-0/run.db", "eta-1.db"]), ["eta-0", "eta-1"]);
        assert_eq!(of(&["a/x/run.db", "b/x/run.db"]), ["a/x/run.db", "b/x/run.db"]);
        assert_eq!(of(&["run.db"]), ["run"]);
    }
}

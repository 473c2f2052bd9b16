//! `headway validate`

use std::path::{Path, PathBuf};

use headway_shared::time::Span;
use headway_sim::report::about::About;
use headway_sim::report::folder::Folder;
use headway_sim::scenario::Warmup;
use headway_sim::validate::{
    Compared, MeasureError, Measured, Run, Task, Tolerances, Validation, measure, validate,
};

use crate::failure::Failure;
use crate::options::{self, Format, Loaded, Output, Overrides};
use crate::progress::Bar;
use crate::{headline, outcome, repeat, source, terminal};

/// Simulate recorded runs in a calibrated scenario: predicted beside measured
///
/// Each run is simulated under the configuration in its record, for as many train steps as it made.
/// A prediction has the interval of one run (90%), in which fitted numbers are drawn from what
/// `[calibration]` of the scenario says of them. Exit code 1: something is beyond its tolerance.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Records of live runs (databases), or what `simulate --record` wrote; RUN@KEY=VALUE says how the
    /// world of that run is known to differ, such as run.db@world.judge.vote.mean_sec=0.3
    #[arg(required = true, value_name = "RUN[@KEY=VALUE...]")]
    runs: Vec<String>,
    /// The scenario, as `headway calibrate` wrote it
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    /// How the world of all runs differs from the scenario's; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The run that the scenario was fitted to: predictions of ratios are scored against "as in that
    /// run"
    #[arg(long, value_name = "RUN")]
    baseline: Option<PathBuf>,
    /// How far a prediction may be off: a share of what was measured (10%), a distance (0.25),
    /// `interval` or `none`; METRIC may end in a star; repeatable
    #[arg(long, value_name = "METRIC=VALUE")]
    tolerance: Vec<String>,
    /// Train steps that are dropped at the start of each run [default: the scenario's]
    #[arg(long, value_name = "N")]
    warmup_steps: Option<u32>,
    /// Simulations of each run
    #[arg(long, value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(2..=100_000))]
    replications: u32,
    /// Seed of all random streams [default: the scenario's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let overrides = Overrides { set: Vec::new(), config: Vec::new(), seed: args.seed };
    let Loaded { scenario, .. } = options::load(&args.scenario, &overrides, &[])?;
    let tolerances = tolerances(&args.tolerance)?;
    let warmup = match args.warmup_steps {
        Some(steps) => Warmup { steps, time: Span::ZERO },
        None => scenario.warmup,
    };
    let paths: Vec<(&Path, Vec<String>)> = args.runs.iter().map(|run| parts(run)).collect();
    let names = names(&paths.iter().map(|(path, _)| *path).collect::<Vec<_>>());
    let mut runs = Vec::new();
    for ((path, own), name) in paths.iter().zip(names) {
        let measured = Measured { name, ..measured(path, warmup)? };
        let set = args.set.iter().chain(own).cloned().collect();
        runs.push(Run { measured, set });
    }
    let baseline = args.baseline.as_deref().map(|path| measured(path, warmup)).transpose()?;
    let task = Task {
        scenario: &scenario,
        runs: &runs,
        warmup,
        replications: args.replications,
        jobs: args.output.threads(),
        tolerances: &tolerances,
        baseline: baseline.as_ref(),
    };
    let bar = Bar::new(runs.len() * args.replications as usize);
    let validation = validate(&task, &bar)?;
    drop(bar);

    let to = args.output.folder(&format!("{}/validate", scenario.name));
    let folder = Folder::open(&to).map_err(|error| Failure::unwritable(&to, &error))?;
    let about = About { command: command(args), ..About::of(&scenario) };
    let wrote = outcome::save_validation(folder, &to, &validation, &about)?;
    terminal::data(&match args.output.format {
        Format::Table => headline::validation(&validation),
        Format::Json => format!("{:#}\n", validation.document()),
        Format::Csv => validation.csv().to_text().map_err(Failure::broken)?,
    })?;
    terminal::note(&wrote);
    warn(&validation, &args.scenario);
    if validation.is_good() { Ok(()) } else { Err(Failure::Negative) }
}

/// The command that repeats it.
fn command(args: &Args) -> String {
    let named = |run: &String| {
        let (path, set) = parts(run);
        let name = repeat::shown(path);
        std::iter::once(name).chain(set).collect::<Vec<_>>().join("@")
    };
    let mut words = vec![format!("--scenario {}", repeat::path(&args.scenario))];
    words.extend(args.baseline.iter().map(|run| format!("--baseline {}", repeat::path(run))));
    words.extend(repeat::texts("--set", &args.set));
    words.extend(repeat::texts("--tolerance", &args.tolerance));
    words.extend(args.warmup_steps.map(|steps| format!("--warmup-steps {steps}")));
    words.extend(args.seed.map(|seed| format!("--seed {seed}")));
    words.extend(repeat::number("--replications", args.replications, 16));
    words.extend(args.runs.iter().map(|run| terminal::quoted(&named(run))));
    repeat::command("validate", words)
}

/// Says on stderr what else is to be known of the comparison.
fn warn(validation: &Validation, scenario: &Path) {
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

/// Measures the run in a file.
fn measured(path: &Path, warmup: Warmup) -> Result<Measured, Failure> {
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

/// Reads what is given with `--tolerance`.
fn tolerances(texts: &[String]) -> Result<Tolerances, Failure> {
    let mut tolerances = Tolerances::default();
    for text in texts {
        tolerances.set(text).map_err(|error| {
            Failure::input(format!("--tolerance: {error}\nhelp: {}", error.help()))
        })?;
    }
    Ok(tolerances)
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

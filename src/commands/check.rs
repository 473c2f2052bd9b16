//! `headway check`

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use headway_sim::check::{github, junit};
use headway_sim::report::folder::Folder;
use serde_json::{Value, json};

use crate::checks::{Checked, records, scenarios};
use crate::failure::Failure;
use crate::options::Overrides;
use crate::terminal;

/// Where scenarios are looked for if none is named.
const SCENARIOS: &str = "scenarios";

/// Check scenarios against what was accepted of them, and records for what must hold
///
/// A scenario is run at its seed, and compared with its golden in --results: every decision, every
/// metric. The first decision that differs is shown with the state around it, then the metrics that
/// moved, and whether beyond noise: what another replication could differ by. A record is replayed: every
/// action that starts work has one terminal input, the ledger balances, snapshots are the core at their
/// place, and the tables of a live run are what the core decided; what is under way where it ends is
/// listed and is no error. Exit code 1: something differs, is wrong, or has no golden.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenarios, records of `simulate --record`, and databases of live runs [default: every scenario
    /// in the folder scenarios]
    #[arg(value_name = "SCENARIO|RECORD")]
    targets: Vec<PathBuf>,
    /// Folder of the goldens
    #[arg(long, value_name = "DIR", default_value = "results/check")]
    pub(crate) results: PathBuf,
    /// Accept what scenarios do now: say what changed, and write it down
    #[arg(long, conflicts_with_all = ["set", "config", "seed"])]
    pub(crate) bless: bool,
    /// How far metrics may move, and then decisions may differ: a share of what was accepted, or,
    /// of metrics that are shares, of the whole
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) tolerance: Option<f64>,
    /// With --bless: end the run after so many inputs [default: at its end]
    #[arg(long, value_name = "N", requires = "bless")]
    pub(crate) max_inputs: Option<u64>,
    /// With --bless: keep the actions of so many inputs [default: 40000]
    #[arg(long, value_name = "N", requires = "bless")]
    pub(crate) log_inputs: Option<u64>,
    /// Write a report in JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// What is written to stdout
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Threads; results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
}

/// How a check is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines, to read
    Table,
    /// One JSON document
    Json,
    /// The same lines, and annotations of a GitHub workflow
    Github,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let targets = match args.targets.is_empty() {
        true => all_scenarios()?,
        false => args.targets.clone(),
    };
    let is_scenario = |path: &&PathBuf| path.extension().is_some_and(|it| it == "toml");
    let (toml, other): (Vec<&PathBuf>, Vec<&PathBuf>) = targets.iter().partition(is_scenario);
    let mut checked = scenarios::check(&toml, args)?;
    if args.targets.is_empty() {
        scenarios::name_orphans(&args.results, &checked);
    }
    for record in other {
        checked.push(records::check(record)?);
    }
    report(args, &checked, toml.len())?;
    let good = checked.iter().all(|checked| checked.case.passed);
    if good { Ok(()) } else { Err(Failure::Negative) }
}

fn report(args: &Args, checked: &[Checked], scenarios: usize) -> Result<(), Failure> {
    let cases: Vec<_> = checked.iter().map(|checked| checked.case.clone()).collect();
    if let Some(file) = &args.junit {
        write(file, junit(&cases).as_bytes())?;
    }
    let mut text = match args.format {
        Format::Json => {
            let documents: Vec<&Value> = checked.iter().map(|checked| &checked.document).collect();
            format!("{:#}\n", json!({ "kind": "check", "cases": documents }))
        }
        Format::Table | Format::Github => {
            checked.iter().map(|checked| checked.shown.as_str()).collect()
        }
    };
    let failed = cases.iter().filter(|case| !case.passed).count();
    if args.format != Format::Json && scenarios > 1 {
        let (good, count) = (cases.len() - failed, cases.len());
        text += &format!("{good} of {count} as they should be\n");
    }
    if args.format == Format::Github {
        text += &github(&cases);
    }
    terminal::data(&text)
}

/// Writes a file whole or not at all.
fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut staged = Folder::open(folder.unwrap_or(Path::new(".")));
    let written = staged.as_mut().map_or(Ok(()), |staged| staged.write(&name, bytes));
    let written = staged.and_then(|staged| written.and_then(|()| staged.commit()));
    written.map_err(|error| {
        let help = "name another file with --junit FILE";
        Failure::input(format!("{}: cannot be written: {error}\nhelp: {help}", file.display()))
    })
}

fn all_scenarios() -> Result<Vec<PathBuf>, Failure> {
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

fn share(text: &str) -> Result<f64, String> {
    let parsed = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    match parsed {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a share such as 0.02 or 2%, from 0 to 1".to_owned()),
    }
}

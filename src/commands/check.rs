//! `headway check`

use std::path::PathBuf;

use crate::checks::{self, Format, records, scenarios};
use crate::failure::Failure;
use crate::options::Overrides;
use crate::terminal;
use crate::values::share;

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

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let targets = match args.targets.is_empty() {
        true => scenarios::all()?,
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
    if let Some(file) = &args.junit {
        checks::save_junit(file, &checked)?;
    }
    terminal::data(&checks::report(&checked, args.format, toml.len() > 1))?;
    let good = checked.iter().all(|checked| checked.case.passed);
    if good { Ok(()) } else { Err(Failure::Negative) }
}

//! `headway calibrate`

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use headway_sim::calibrate::measured::measure;
use headway_sim::calibrate::{Choice, Options, calibrate};

use crate::failure::Failure;
use crate::options::Format;
use crate::{headline, outcome, source, terminal, values};

/// Fit a scenario to a recorded run or to measured columns: latencies, rates, drift
///
/// Writes a scenario that says what each number was fitted to and how sure it is, with the columns
/// of measured values that no law fits beside it; shows a row for each. What a record does not show
/// is named on stderr.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The database of a live run, or a record of `simulate --record`
    #[arg(required_unless_present = "latency")]
    record: Option<PathBuf>,
    /// Measured values of a latency, instead of the record's, such as judge=log.csv:seconds;
    /// repeatable
    #[arg(long, value_name = "NAME=FILE:COLUMN")]
    latency: Vec<String>,
    /// Where sessions come from
    #[arg(long, value_enum, default_value_t = Clients::Seen)]
    clients: Clients,
    /// Train steps that are dropped at the start [default: a tenth, at most 10]
    #[arg(long, value_name = "N")]
    warmup_steps: Option<u32>,
    /// The scenario's name: small letters, digits, dashes [default: from the record's name]
    #[arg(long)]
    name: Option<String>,
    /// The scenario to write; columns go beside it [default: out/NAME/scenario.toml]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What is written to stdout
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Where sessions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Clients {
    /// A fixed population or independent arrivals, as the number of live sessions varies
    Seen,
    /// A fixed population, each of which begins its next session after a pause
    Users,
    /// Independent arrivals
    Poisson,
    /// The times at which they came
    Replay,
}

impl From<Clients> for Choice {
    fn from(clients: Clients) -> Self {
        match clients {
            Clients::Seen => Self::Seen,
            Clients::Users => Self::Users,
            Clients::Poisson => Self::Poisson,
            Clients::Replay => Self::Replay,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let columns = values::latencies(&args.latency)?;
    let name = values::name(args.name.as_deref(), args.record.as_deref())?;
    let (warmup_steps, clients) = (args.warmup_steps, args.clients.into());
    let options = Options { warmup_steps, clients, columns, name };
    let measured = args.record.as_ref().map(|path| {
        let run = source::open(path)?;
        let measured = measure(&*run).map_err(|error| source::wrong(path, &error))?;
        Ok::<_, Failure>((run.name(), measured))
    });
    let measured = measured.transpose()?;
    let record = measured.as_ref().map(|(name, measured)| (name.as_str(), measured));
    let found = calibrate(record, &options).map_err(|error| match &args.record {
        Some(path) => Failure::input(format!("{}: {error}", path.display())),
        None => Failure::input(error),
    })?;
    let default = Path::new("out").join(&options.name).join("scenario.toml");
    let wrote = outcome::save_calibrated(args.out.as_ref().unwrap_or(&default), &found)?;
    terminal::data(&headline::calibrated(&found, args.format)?)?;
    found.notes.iter().for_each(|note| terminal::note(&format!("note: {note}")));
    terminal::remark(&wrote);
    Ok(())
}

//! `headway calibrate`

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use headway_sim::calibrate::column::{Latency, column};
use headway_sim::calibrate::measured::measure;
use headway_sim::calibrate::{Calibrated, Choice, Measurements, Options, calibrate};
use headway_sim::report::folder::Folder;
use headway_sim::scenario::{is_name, is_name_letter};

use crate::failure::Failure;
use crate::options::{self, Format};
use crate::{headline, outcome, source, terminal};

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

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let columns: Vec<Measurements> =
        args.latency.iter().map(|text| measurements(text)).collect::<Result<_, _>>()?;
    let name = name(args)?;
    let options = Options {
        warmup_steps: args.warmup_steps,
        clients: match args.clients {
            Clients::Seen => Choice::Seen,
            Clients::Users => Choice::Users,
            Clients::Poisson => Choice::Poisson,
            Clients::Replay => Choice::Replay,
        },
        columns,
        name,
    };
    let measured = match &args.record {
        None => None,
        Some(path) => {
            let run = source::open(path)?;
            let measured = measure(&*run).map_err(|error| source::wrong(path, &error))?;
            Some((run.name(), measured))
        }
    };
    let record = measured.as_ref().map(|(name, measured)| (name.as_str(), measured));
    let place =
        args.record.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()));
    let found =
        calibrate(record, &options).map_err(|error| Failure::input(format!("{place}{error}")))?;
    let wrote = save(args, &options.name, &found)?;
    terminal::data(&headline::calibrated(&found, args.format)?)?;
    found.notes.iter().for_each(|note| terminal::note(&format!("note: {note}")));
    terminal::remark(&wrote);
    Ok(())
}

/// `judge=log.csv:seconds`
fn measurements(text: &str) -> Result<Measurements, Failure> {
    let wrong = |what: &str| {
        let help = "write NAME=FILE:COLUMN, such as judge=log.csv:seconds";
        Failure::input(format!("--latency {text}: {what}\nhelp: {help}"))
    };
    let (name, place) = text.split_once('=').ok_or_else(|| wrong("it has no `=`"))?;
    let (file, of) = place.rsplit_once(':').ok_or_else(|| wrong("it names no column"))?;
    let latency = Latency::find(name)
        .map_err(|error| Failure::input(format!("--latency {text}: {error}")))?;
    let values = column(file, &options::read(Path::new(file))?, of, latency.unit)?;
    let base = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
    Ok(Measurements { latency, from: format!("{base}:{of}"), values })
}

/// The scenario's name.
fn name(args: &Args) -> Result<String, Failure> {
    if let Some(name) = &args.name {
        return match is_name(name) {
            true => Ok(name.clone()),
            false => Err(Failure::input(format!(
                "--name {name}: it is no name of a scenario\n\
                 help: write small letters, digits and dashes"
            ))),
        };
    }
    let stem = args.record.as_ref().and_then(|path| path.file_stem());
    let stem = stem.map_or_else(|| "columns".into(), |stem| stem.to_string_lossy().to_lowercase());
    let name: String =
        stem.chars().map(|letter| if is_name_letter(letter) { letter } else { '-' }).collect();
    Ok(format!("{}-calibrated", name.trim_matches('-')))
}

/// Writes the scenario and its columns, all or none; says where.
fn save(args: &Args, name: &str, found: &Calibrated) -> Result<String, Failure> {
    let default = Path::new("out").join(name).join("scenario.toml");
    let out = args.out.as_ref().unwrap_or(&default);
    let wrong = |what: &str| Failure::input(format!("{}: {what}", out.display()));
    let (Some(file), Some(parent)) = (out.file_name(), out.parent()) else {
        return Err(wrong("names no file\nhelp: write --out scenario.toml"));
    };
    let parent = if parent == Path::new("") { Path::new(".") } else { parent };
    let unwritable = |error: std::io::Error| {
        wrong(&format!("cannot be written: {error}\nhelp: choose another --out FILE"))
    };
    let mut folder = Folder::open(parent).map_err(unwritable)?;
    for (column, bytes) in &found.files {
        folder.write(column, bytes).map_err(unwritable)?;
    }
    folder.write(&file.to_string_lossy(), found.scenario.as_bytes()).map_err(unwritable)?;
    outcome::commit(folder, parent)
}

//! `headway guard`

use std::path::{Path, PathBuf};

use headway_shared::config::tuned::Tuned;
use headway_shared::config::{GuardSettings, Layers, OnDeviation, load_guarded};
use headway_sim::guarded::{csv, hold, json};

use crate::failure::Failure;
use crate::options::{self, Format};
use crate::{headline, source, terminal};

/// Hold a recorded run to an envelope: what would its guard have said?
///
/// The run is cut into windows as the guard of a live run cuts it, and each metric of the envelope is
/// looked at in every window, and over all of them. Try an envelope on runs that were well before
/// `on_deviation = "rollback"` acts on one. Exit code 1: the run left the envelope.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What `headway tune` wrote, or a configuration with a section `guard`
    #[arg(value_name = "TUNED|CONFIG")]
    envelope: PathBuf,
    /// The database of a live run, or what `simulate --record` wrote
    run: PathBuf,
    /// Windows in a row that a metric may not be outside [default: as the file says, else 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    patience: Option<u32>,
    /// What is written to stdout
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut settings = settings(&args.envelope)?;
    settings.patience = args.patience.unwrap_or(settings.patience);
    let run = source::open(&args.run)?;
    let held = hold(&*run, &settings).map_err(|error| source::wrong(&args.run, &error))?;
    if held.found.judged == 0 {
        let window = settings.envelope.window;
        return Err(Failure::input(format!(
            "{}: it is shorter than the {} in which it settles and one window of {window}\n\
             help: name a longer run, or an envelope with a smaller `window_sec`",
            args.run.display(),
            settings.settle
        )));
    }
    terminal::data(&match args.format {
        Format::Table => headline::guarded(&run.name(), &held),
        Format::Csv => csv(&held).to_text().map_err(Failure::broken)?,
        Format::Json => format!("{:#}\n", json(&run.name(), &held)),
    })?;
    if held.found.deviations == 0 { Ok(()) } else { Err(Failure::Negative) }
}

/// The envelope of a tuned file, or of a configuration.
fn settings(path: &Path) -> Result<GuardSettings, Failure> {
    let (name, text) = (path.display().to_string(), options::read(path)?);
    let layers = Layers::new().toml(&name, &text);
    let tree = layers.merge()?.root;
    if tree.get("tuned").is_some() {
        let (tuned, warnings) = Tuned::load(&name, &text)?;
        terminal::diagnose(&warnings);
        let (settle, on_deviation) = (tuned.envelope.window, OnDeviation::Log);
        let envelope = tuned.envelope;
        return Ok(GuardSettings { on_deviation, patience: 2, settle, envelope, previous: None });
    }
    let mut found = None;
    if tree.get("guard").is_some() {
        let (_, guard, warnings) = load_guarded(&layers, true)?;
        terminal::diagnose(&warnings);
        found = guard;
    }
    found.ok_or_else(|| {
        let help = "name the tuned.toml of `headway tune`, or a configuration that was promoted";
        Failure::input(format!("{name}: it has neither [tuned] nor [guard]\nhelp: {help}"))
    })
}

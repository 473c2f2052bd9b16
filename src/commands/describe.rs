//! `headway describe`

use std::path::{Path, PathBuf};

use headway_shared::config::keys::keys;
use headway_shared::config::{Config, Layers, Settings, load_guarded, load_live};
use headway_shared::describe::overview::{self, Place};

use crate::commands::diagnose;
use crate::failure::Failure;
use crate::options::{self, Overrides};
use crate::{headline, terminal};

/// Show the loops, queues, distributions, versions and weights of a configuration as tables
///
/// What people draw up by hand: for every queue who writes and reads it, its size and what happens
/// when it is full; for every distribution where its parameters come from, how often they change,
/// who reads them, and how late; each place where a version is written or read; how weights travel.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// config.toml of a live run (its settings.json with --config), or a scenario
    config: PathBuf,
    /// Lay another file over it, such as settings.json; repeatable, the last one wins
    #[arg(long = "config", visible_alias = "settings", value_name = "FILE")]
    over: Vec<PathBuf>,
    /// Set a key, such as batch_size=32; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Put in what was measured in a run: its database, its record, or a folder of `simulate`
    #[arg(long, value_name = "RUN|DIR")]
    run: Option<PathBuf>,
    /// What is written to stdout
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
}

/// How the tables are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Tables, to read
    Table,
    /// Markdown, for a page
    Markdown,
    /// One JSON document
    Json,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Described { config, settings, simulated } = load(args)?;
    let evidence = args.run.as_deref().map(diagnose::evidence).transpose()?;
    let place = if simulated { Place::Simulated } else { Place::Live(settings.as_ref()) };
    let tables = overview::overview(&config, place);
    if let (Some(path), Some(ran)) =
        (&args.run, evidence.as_ref().and_then(|run| run.config.as_ref()))
    {
        note_differences(path, &config, ran);
    }
    let measured = evidence.as_ref();
    terminal::data(&match args.format {
        Form::Table => headline::described(&tables, measured),
        Form::Markdown => headline::described_in_markdown(&tables, measured),
        Form::Json => format!("{:#}\n", headline::described_as_json(&tables, measured)),
    })
}

struct Described {
    config: Config,
    settings: Option<Settings>,
    simulated: bool,
}

fn load(args: &Args) -> Result<Described, Failure> {
    let name = |path: &Path| path.display().to_string();
    let mut layers = Layers::new().toml(name(&args.config), options::read(&args.config)?);
    let tree = layers.merge()?.root;
    if ["scenario", "world"].iter().any(|section| tree.get(section).is_some()) {
        let overrides = Overrides { set: args.set.clone(), config: args.over.clone(), seed: None };
        let scenario = options::load(&args.config, &overrides, &[])?.scenario;
        return Ok(Described { config: scenario.config, settings: None, simulated: true });
    }
    let is_json = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
    for path in &args.over {
        let (name, text) = (name(path), options::read(path)?);
        layers = if is_json(path) { layers.json(name, text) } else { layers.toml(name, text) };
    }
    layers = args.set.iter().fold(layers, Layers::set);
    let (config, settings, warnings) = match args.over.iter().any(|path| is_json(path)) {
        true => {
            let live = load_live(&layers)?;
            (live.config, Some(live.settings), live.warnings)
        }
        false => {
            let (config, _, warnings) = load_guarded(&layers, true)?;
            (config, None, warnings)
        }
    };
    terminal::diagnose(&warnings);
    Ok(Described { config, settings, simulated: false })
}

/// Says where the run was configured otherwise than what is described.
fn note_differences(run: &Path, config: &Config, ran: &Config) {
    let other = |key: &&headway_shared::config::keys::Key| {
        key.describe(config).value != key.describe(ran).value
    };
    let keys: Vec<String> = keys().iter().filter(other).map(|key| key.path()).collect();
    if !keys.is_empty() {
        let (run, keys) = (run.display(), keys.join(", "));
        terminal::note(&format!("warning: {run} ran under another configuration: {keys}"));
    }
}

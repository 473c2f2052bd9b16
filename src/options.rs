//! Options that several commands have.

use std::fs;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use clap::ValueEnum;
use headway_shared::config::{Layers, Table};
#[cfg(feature = "live")]
use headway_shared::config::{Live, load_live};
use headway_sim::scenario::Scenario;
use headway_sim::sweep::journal::Asked;

use crate::failure::Failure;
#[cfg(feature = "live")]
use crate::terminal;
use crate::terminal::quoted;

/// What is laid over a scenario.
#[derive(clap::Args, Clone)]
pub(crate) struct Overrides {
    /// Set a key, such as max_head_off_policyness=4 or world.serving.replicas=2; repeatable, the
    /// last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Lay live files over the scenario, config.toml and settings.json: what would my present
    /// settings do? Repeatable, the last one wins
    #[arg(long, visible_alias = "settings", value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// Seed of all random streams [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

impl Overrides {
    /// As a command has them, with more to set.
    pub(crate) fn words(&self, more: &[String]) -> Vec<String> {
        self.each(more).map(|(option, value)| format!("{option} {}", quoted(&value))).collect()
    }

    /// As a file keeps them: no shell reads them.
    pub(crate) fn given(&self) -> Vec<String> {
        self.each(&[]).map(|(option, value)| format!("{option} {value}")).collect()
    }

    fn each<'a>(&'a self, more: &'a [String]) -> impl Iterator<Item = (&'static str, String)> + 'a {
        let Self { set, config, seed } = self;
        let config = config.iter().map(|path| ("--config", path.display().to_string()));
        let set = set.iter().chain(more).map(|set| ("--set", set.clone()));
        let seed = seed.iter().map(|seed| ("--seed", seed.to_string()));
        config.chain(set).chain(seed)
    }
}

impl From<&Asked> for Overrides {
    fn from(asked: &Asked) -> Self {
        Self {
            set: asked.set.clone(),
            config: asked.config.iter().map(PathBuf::from).collect(),
            seed: asked.seed,
        }
    }
}

impl From<&Overrides> for Asked {
    fn from(Overrides { set, config, seed }: &Overrides) -> Self {
        let config = config.iter().map(|path| path.display().to_string()).collect();
        Self { set: set.clone(), config, seed: *seed, ..Self::default() }
    }
}

/// How data is written to stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The headline metrics, to read
    Table,
    /// Everything, as one JSON document
    Json,
    /// Everything, as CSV
    Csv,
}

/// How a report is written to stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A table, to read
    Table,
    /// One JSON document
    Json,
}

/// Where results go, and how they are made.
#[derive(clap::Args, Clone)]
pub(crate) struct Output {
    /// What is written to stdout
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// Folder for CSV, JSON and plots [default: out/NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Threads; results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub(crate) jobs: Option<u16>,
}

impl Output {
    /// The folder to write to.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| Path::new("out").join(name))
    }

    /// Threads; 0: one per core.
    pub(crate) fn threads(&self) -> usize {
        self.jobs.map_or(0, usize::from)
    }
}

/// The two files of a live run.
#[cfg(feature = "live")]
#[derive(clap::Args)]
pub(crate) struct LiveFiles {
    /// The scheduling sections, as a scenario has them
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The judge's endpoint, and what the run is to do
    #[arg(long, value_name = "FILE")]
    settings: PathBuf,
    /// Set a key, such as policy_serving.port=30001; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

#[cfg(feature = "live")]
impl LiveFiles {
    /// Their texts.
    pub(crate) fn layers(&self) -> Result<Layers, Failure> {
        let name = |path: &Path| path.display().to_string();
        let layers = Layers::new()
            .toml(name(&self.config), read(&self.config)?)
            .json(name(&self.settings), read(&self.settings)?);
        Ok(self.set.iter().fold(layers, Layers::set))
    }

    /// What they say; what is suspicious about them is said.
    pub(crate) fn load(&self) -> Result<Live, Failure> {
        let live = load_live(&self.layers()?)?;
        terminal::diagnose(&live.warnings);
        Ok(live)
    }
}

/// A scenario and the tree it was read from.
pub(crate) struct Loaded {
    pub(crate) scenario: Scenario,
    pub(crate) tree: Table,
}

/// Reads a scenario with what is laid over it. What is suspicious about it is said of each point of
/// its [`Plan`](headway_sim::sweep::Plan).
pub(crate) fn load(path: &Path, overrides: &Overrides, more: &[String]) -> Result<Loaded, Failure> {
    let layers = Layers::new().toml(path.display().to_string(), read(path)?);
    lay_over(layers, path.parent().unwrap_or(Path::new(".")), overrides, more)
}

/// The same of a scenario whose text is at hand; paths in it start from `base`.
pub(crate) fn lay_over(
    layers: Layers,
    base: &Path,
    overrides: &Overrides,
    more: &[String],
) -> Result<Loaded, Failure> {
    let layers = over(layers, &overrides.config)?;
    let seed = overrides.seed.map(|seed| format!("scenario.seed={seed}"));
    let layers = overrides.set.iter().chain(more).chain(&seed).fold(layers, Layers::set);
    let tree = layers.merge()?.root;
    let (scenario, _) = Scenario::load(&layers, base)?;
    Ok(Loaded { scenario, tree })
}

/// Lays files over others: `settings.json` and its like, else TOML.
pub(crate) fn over(mut layers: Layers, files: &[PathBuf]) -> Result<Layers, Failure> {
    for file in files {
        let (name, text) = (file.display().to_string(), read(file)?);
        layers = if is_json(file) { layers.json(name, text) } else { layers.toml(name, text) };
    }
    Ok(layers)
}

/// Whether a file is JSON, by its name.
pub(crate) fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

/// Reads a file of text.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let bytes = fs::read(path).map_err(|error| Failure::unreadable(path, &error))?;
    String::from_utf8(bytes).map_err(|error| not_text(path, &error))
}

/// A file of bytes where text is wanted: what it is instead, or where it ends to be UTF-8.
fn not_text(path: &Path, error: &FromUtf8Error) -> Failure {
    let (name, bytes) = (path.display(), error.as_bytes());
    let records: [&[u8]; 2] = [b"SQLite format 3\0", b"HEADWAY\n"];
    if records.iter().any(|magic| bytes.starts_with(magic)) {
        let help = "name a file of text; `headway replay` and `headway diagnose` read records";
        return Failure::input(format!("{name}: this is the record of a run\nhelp: {help}"));
    }
    let before = &bytes[..error.utf8_error().valid_up_to()];
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let column = 1 + String::from_utf8_lossy(&before[start..]).chars().count();
    let byte = bytes.get(before.len()).copied().unwrap_or_default();
    Failure::input(format!(
        "{name}:{line}:{column}: not UTF-8 text: byte 0x{byte:02X}\nhelp: save the file as UTF-8"
    ))
}

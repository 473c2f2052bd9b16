//! The configuration that `headway describe` is about.

use std::path::{Path, PathBuf};

use headway_shared::config::keys::{Key, keys};
use headway_shared::config::{Config, Layers, Settings, load_guarded, load_live};
use headway_shared::describe::overview::Place;

use crate::failure::Failure;
use crate::options::{self, Overrides};
use crate::terminal;

/// Of a live run, or of a scenario.
pub(crate) struct Described {
    pub(crate) config: Config,
    settings: Option<Settings>,
    simulated: bool,
}

impl Described {
    /// Reads it, with what is laid over it, and says what is suspicious about it.
    pub(crate) fn load(path: &Path, over: &[PathBuf], set: &[String]) -> Result<Self, Failure> {
        let text = options::read(path)?;
        let layers = Layers::new().toml(path.display().to_string(), text);
        let tree = layers.merge()?.root;
        if ["scenario", "world"].iter().any(|section| tree.get(section).is_some()) {
            let overrides = Overrides { set: set.to_vec(), config: over.to_vec(), seed: None };
            let config = options::load(path, &overrides, &[])?.scenario.config;
            return Ok(Self { config, settings: None, simulated: true });
        }
        let layers = set.iter().fold(options::over(layers, over)?, Layers::set);
        let (config, settings, warnings) = if over.iter().any(|path| options::is_json(path)) {
            let live = load_live(&layers)?;
            (live.config, Some(live.settings), live.warnings)
        } else {
            let (config, _, warnings) = load_guarded(&layers, true)?;
            (config, None, warnings)
        };
        terminal::diagnose(&warnings);
        Ok(Self { config, settings, simulated: false })
    }

    /// Where it is run.
    pub(crate) fn place(&self) -> Place<'_> {
        if self.simulated { Place::Simulated } else { Place::Live(self.settings.as_ref()) }
    }

    /// Says where a run was configured otherwise: `ran`.
    pub(crate) fn note_differences(&self, run: &Path, ran: &Config) {
        let differs = |key: &&Key| key.describe(&self.config).value != key.describe(ran).value;
        let keys: Vec<String> = keys().iter().filter(differs).map(Key::path).collect();
        if !keys.is_empty() {
            let (run, keys) = (run.display(), keys.join(", "));
            terminal::note(&format!("warning: {run} ran under another configuration: {keys}"));
        }
    }
}

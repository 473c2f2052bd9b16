//! The tasks that are built in.

#[cfg(feature = "torch")]
use std::sync::Arc;

use clap::ValueEnum;
use headway_runtime::environment::{Host, Lookup, Options};
#[cfg(feature = "torch")]
use headway_runtime::tokenizer::{Symbols, Tokenizer};
use headway_shared::config::{Config, SampleUnit};

use super::api_key;
use crate::failure::Failure;

/// A task that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskName {
    /// Ask a tool for a key, answer with its value
    Lookup,
}

impl TaskName {
    /// Who plays it as a run of this configuration wants it; the rest is in `options`.
    pub(crate) fn host(self, config: &Config, options: Options) -> Result<Host, Failure> {
        let Self::Lookup = self;
        let training = &config.policy_training;
        let task = Lookup::new(options.seed);
        let options = Options {
            api_key: api_key(),
            group_size: training.group_size,
            group_per_turn: training.sample_unit == SampleUnit::Turn,
            ..options
        };
        Host::new(task, options, config.environment_hosting.clone()).map_err(Failure::broken)
    }

    /// The tokenizer that suits it.
    #[cfg(feature = "torch")]
    pub(crate) fn tokenizer(self) -> (Arc<dyn Tokenizer>, u32) {
        let Self::Lookup = self;
        let symbols = Symbols::new(Lookup::SYMBOLS);
        let vocabulary = symbols.vocabulary();
        (Arc::new(symbols), vocabulary)
    }
}

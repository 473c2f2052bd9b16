//! The tasks that are built in.

#[cfg(feature = "torch")]
use std::sync::Arc;

use clap::ValueEnum;
#[cfg(feature = "torch")]
use headway_runtime::environment::Lookup;
#[cfg(feature = "torch")]
use headway_runtime::tokenizer::{Symbols, Tokenizer};

/// A task that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskName {
    /// Ask a tool for a key, answer with its value
    Lookup,
}

#[cfg(feature = "torch")]
impl TaskName {
    /// The tokenizer that suits it.
    pub(crate) fn tokenizer(self) -> (Arc<dyn Tokenizer>, u32) {
        let Self::Lookup = self;
        let symbols = Symbols::new(Lookup::SYMBOLS);
        let vocabulary = symbols.vocabulary();
        (Arc::new(symbols), vocabulary)
    }
}

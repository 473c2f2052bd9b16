//! How fast replicas generate, without measurements of one's own: tables of the throughput r(b) of
//! a model on a GPU, under an engine and a degree of parallelism, by name or from a CSV file.
//!
//! A table belongs to one replica and one length of prompts and answers: r(b) is what `b` sequences
//! get together, and falls where contexts are longer. docs/scenarios.md says how the shipped
//! tables were made and what they leave out.
//!
//! ```
//! use headway_sim::rates;
//!
//! let table = rates::find("qwen3-32b-h200-vllm-tp4").unwrap();
//! assert_eq!(table.gpus_per_replica, Some(4));
//! assert!(table.law().rate(1) > table.law().rate(64));
//! assert!(rates::names().any(|name| name == "qwen3-8b-h100-sglang-tp1"));
//! ```

mod shipped;
mod table;

use headway_shared::config::nearest;

use crate::world::replica::DecodeLaw;

pub use table::{COLUMNS, RatesError};

/// How fast one replica generates.
#[derive(Clone, Debug, PartialEq)]
pub struct RateTable {
    /// The model, such as `Qwen/Qwen3-32B`; empty where the table does not say.
    pub model: String,
    /// The GPU and how it is built in, such as `h200_sxm`; empty where the table does not say.
    pub system: String,
    /// The engine, such as `vllm`; empty where the table does not say.
    pub engine: String,
    /// The engine's version; empty where the table does not say.
    pub engine_version: String,
    /// GPUs of the replica, over all kinds of parallelism; `None` where the table does not say.
    pub gpus_per_replica: Option<u32>,
    /// Tokens of the prompts that it holds for; `None` where the table does not say.
    pub input_tokens: Option<u32>,
    /// Tokens of the answers that it holds for; `None` where the table does not say.
    pub output_tokens: Option<u32>,
    /// Where the numbers come from; empty where the table does not say.
    pub source: String,
    /// The points of r(b): sequences that decode together, growing, and the tokens/s of all of
    /// them; at least one.
    pub points: Vec<(u32, f64)>,
    /// How fast prompts are read, one at a time, in tokens/s; `None` where the table does not say.
    pub prefill_tokens_per_sec: Option<f64>,
    law: DecodeLaw,
}

impl RateTable {
    /// Reads a table from the text of a CSV file.
    ///
    /// Its columns are found by their names, of which it needs `batch` and `tokens_per_sec`; of the
    /// other [`COLUMNS`] it may have any, and more that nobody reads. What says of what the table
    /// is must be the same in every row; `prefill_tokens_per_sec` is taken from the first.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn read(text: &str) -> Result<Self, RatesError> {
        table::read(text)
    }

    /// The throughput as a replica takes it.
    #[must_use]
    pub const fn law(&self) -> &DecodeLaw {
        &self.law
    }
}

/// The names of the tables that come with Headway, in order: `MODEL-GPU-ENGINE-tpGPUS`.
pub fn names() -> impl Iterator<Item = &'static str> {
    shipped::TABLES.iter().map(|(name, _)| *name)
}

/// The table of that name that comes with Headway.
///
/// # Errors
/// There is none of that name.
pub fn find(name: &str) -> Result<RateTable, NoRates> {
    let unknown = || NoRates::Unknown { name: name.to_owned() };
    let (_, text) = shipped::TABLES.iter().find(|(known, _)| *known == name).ok_or_else(unknown)?;
    Ok(RateTable::read(text)?)
}

/// No table comes with Headway under this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRates {
    /// None has it.
    #[error("no table of rates is called `{name}`")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The one that has it is broken; tests read them all.
    #[error(transparent)]
    Broken(#[from] RatesError),
}

impl NoRates {
    /// What to write instead.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Unknown { name } => {
                let known: Vec<&str> = names().collect();
                let near = nearest(name, &known);
                let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
                format!("{near}The tables are {}", known.join(", "))
            }
            Self::Broken(error) => error.help.clone(),
        }
    }
}

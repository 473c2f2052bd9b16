//! The configuration: the sections that a scenario and a live run share.
//!
//! [`Config`] is the canonical form: whole numbers, spans and enums, every key present. It is what
//! the core reads, what a record's header holds, and what a reconfiguration carries.
//!
//! Texts become a configuration in three steps: [`Layers`] merges TOML, JSON and `--set` into one
//! tree of [`Node`]s that know where they were written; a [`Reader`] takes typed values out of it;
//! [`check`] applies the rules between keys. Every finding is a [`Diagnostic`] with its place.

mod adaptive;
mod asked;
mod bound;
mod check;
mod choices;
mod diagnostic;
pub mod edit;
mod envelope;
mod explain;
mod guard;
mod judging;
pub mod keys;
mod layers;
mod near;
mod node;
mod parse;
mod reader;
mod remedy;
pub mod schema;
mod sections;
mod settings;
mod syntax;
mod text;
pub mod tuned;

pub use adaptive::Adaptive;
pub use asked::{Asked, Shape};
pub use check::{AdaptiveProblem, MAX_VOTES, Problem, QueueName, check};
pub use choices::*;
pub use diagnostic::{
    Diagnostic, Diagnostics, Findings, Origin, Position, Severity, SourceId, Sources, Syntax,
};
pub use envelope::{Envelope, Range};
pub use guard::GuardSettings;
pub use layers::{Document, Layers};
pub use near::nearest;
pub use node::{Entry, Node, Table, Value};
pub use parse::{check_sections, load_config, parse_sections};
pub use reader::Reader;
pub use sections::*;
pub use settings::{
    Api, Dtype, Judge, Live, Logging, ScoreForm, Serving, Settings, has_settings, is_url,
    load_guarded, load_live, parse_settings,
};

#[cfg(test)]
mod tests;

//! The live runtime of Headway: a thin driver around the scheduling core of
//! [`headway_shared`].
//!
//! The runtime decides nothing. Whatever it needs decided, the core decides; this crate turns the
//! core's actions into I/O and the outcomes of that I/O into inputs.
//!
//! | module | holds |
//! |---|---|
//! | [`driver`] | the task that owns the core, recovery, shutdown |
//! | [`store`] | the record: a SQLite database, and its replay |
//! | [`gateway`] | the OpenAI-compatible HTTP server in front of it |
//! | [`judge`] | a rule, and any OpenAI-compatible endpoint |
//! | [`environment`] | sessions of a task, played against a gateway |
//! | [`engine`], [`trainer`] | what a serving engine and a trainer receive and send |
//! | `model` | the policy in libtorch (feature `torch`) |
//! | [`trajectory`] | what a sample consists of, and the sequences it is trained as |
//! | [`tokenizer`] | text to token ids and back |
//! | [`secret`] | keys and tokens, never shown |
//! | [`operator`] | an operator of a run elsewhere: the admin API's client |
//! | [`doctor`] | what a live run needs, looked at before and while it runs |
//! | [`signals`] | what SIGTERM and SIGINT do |
//! | [`log`] | lines on stderr about what the run does |
//! | [`clock`] | the only clock: nanoseconds since the run's start |

pub mod clock;
pub mod doctor;
pub mod driver;
pub mod engine;
pub mod environment;
pub mod gateway;
mod http;
mod json;
pub mod judge;
pub mod log;
#[cfg(feature = "torch")]
pub mod model;
pub mod operator;
pub mod secret;
pub mod signals;
pub mod store;
pub mod tokenizer;
pub mod trainer;
pub mod trajectory;
mod utf8;

pub use headway_shared as shared;

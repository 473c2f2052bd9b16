//! The live runtime of Headway: a thin driver around the scheduling core of
//! [`headway_shared`].
//!
//! The runtime decides nothing. Whatever it needs decided, the core decides; this crate turns the
//! core's actions into I/O and the outcomes of that I/O into inputs.
//!
//! | module | holds |
//! |---|---|
//! | [`clock`] | the only clock: nanoseconds since the run's start |
//! | [`engine`], [`trainer`] | what a serving engine and a trainer receive and send |
//! | `model` | the policy in libtorch (feature `torch`) |
//! | [`tokenizer`] | text to token ids and back |

pub mod clock;
pub mod engine;
#[cfg(feature = "torch")]
pub mod model;
pub mod tokenizer;
pub mod trainer;

pub use headway_shared as shared;

//! One module per subcommand.

pub(crate) mod compare;
#[cfg(feature = "torch")]
pub(crate) mod environment;
pub(crate) mod import;
pub(crate) mod plan;
pub(crate) mod plot;
pub(crate) mod replay;
#[cfg(feature = "torch")]
pub(crate) mod run;
pub(crate) mod simulate;
pub(crate) mod sweep;

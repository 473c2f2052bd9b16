//! One module per subcommand.

pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod diagnose;
#[cfg(feature = "live")]
pub(crate) mod doctor;
#[cfg(feature = "live")]
pub(crate) mod environment;
pub(crate) mod export;
pub(crate) mod guard;
pub(crate) mod import;
pub(crate) mod merge;
pub(crate) mod plan;
pub(crate) mod plot;
pub(crate) mod promote;
pub(crate) mod replay;
#[cfg(feature = "live")]
pub(crate) mod run;
pub(crate) mod simulate;
pub(crate) mod sweep;
pub(crate) mod torture;
pub(crate) mod tournament;
pub(crate) mod tune;
pub(crate) mod validate;

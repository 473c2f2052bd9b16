//! One module per subcommand.

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod import;
pub(crate) mod plan;
pub(crate) mod plot;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod simulate;
pub(crate) mod sweep;

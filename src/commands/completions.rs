//! `headway completions`

use clap_complete::Shell;

use crate::failure::Failure;
use crate::terminal;

/// Write completions for a shell to stdout
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "headway", &mut script);
    terminal::data(&String::from_utf8_lossy(&script))
}

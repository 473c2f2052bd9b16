//! `headway init`

use std::path::PathBuf;

use headway_sim::scenario::is_name;

use crate::failure::Failure;
use crate::starter::{self, Answers, Asker};
use crate::terminal;

/// Write a commented configuration (config.toml, settings.json) and a scenario of it
///
/// Asks what it needs to know where it is called on a terminal; options answer instead. Beside the
/// files lie their JSON schemas, with which editors complete and check them.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder to write to
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Write the scenario of this config.toml, and nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "engine", "engine_url", "judge_url",
          "judge_model", "judge_key_env", "rule", "eta", "batch_size", "group_size"])]
    from: Option<PathBuf>,
    /// The scenario's name: small letters, digits, dashes
    #[arg(long, value_name = "NAME", default_value = "my-run")]
    name: String,
    #[command(flatten)]
    answers: Answers,
    /// Replace files that are there
    #[arg(long)]
    force: bool,
    /// Ask nothing: defaults for what no option says
    #[arg(long, short)]
    yes: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if !is_name(&args.name) {
        let help = "write small letters, digits and dashes: results go to a folder of that name";
        return Err(Failure::input(format!(
            "{:?} is no name of a scenario\nhelp: {help}",
            args.name
        )));
    }
    let files = match &args.from {
        Some(config) => starter::files_from(config, &args.name)?,
        None => starter::files(&args.answers.wish(&mut Asker::new(args.yes))?, &args.name)?,
    };
    terminal::remark(&starter::write(&args.dir, files, args.force)?);
    let scenario = terminal::quoted(&args.dir.join("scenario.toml").display().to_string());
    terminal::remark(&format!("try it: headway simulate {scenario}"));
    Ok(())
}

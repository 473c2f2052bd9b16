//! `headway describe`

use std::path::PathBuf;

use headway_shared::describe::overview;

use crate::commands::diagnose;
use crate::described::Described;
use crate::failure::Failure;
use crate::{headline, terminal};

/// Show the loops, queues, distributions, versions and weights of a configuration as tables
///
/// What people draw up by hand: for every queue who writes and reads it, its size and what happens
/// when it is full; for every distribution where its parameters come from, how often they change,
/// who reads them, and how late; each place where a version is written or read; how weights travel.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// config.toml of a live run (its settings.json with --config), or a scenario
    config: PathBuf,
    /// Lay another file over it, such as settings.json; repeatable, the last one wins
    #[arg(long = "config", visible_alias = "settings", value_name = "FILE")]
    over: Vec<PathBuf>,
    /// Set a key, such as batch_size=32; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Put in what was measured in a run: its database, its record, or a folder of `simulate`
    #[arg(long, value_name = "RUN|DIR")]
    run: Option<PathBuf>,
    /// What is written to stdout
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
}

/// How the tables are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Tables, to read
    Table,
    /// Markdown, for a page
    Markdown,
    /// One JSON document
    Json,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let described = Described::load(&args.config, &args.over, &args.set)?;
    let evidence = args.run.as_deref().map(diagnose::evidence).transpose()?;
    let tables = overview::overview(&described.config, described.place());
    let measured = evidence.as_ref();
    if let (Some(run), Some(ran)) = (&args.run, measured.and_then(|run| run.config.as_ref())) {
        described.note_differences(run, ran);
    }
    terminal::data(&match args.format {
        Form::Table => headline::described(&tables, measured),
        Form::Markdown => headline::described_in_markdown(&tables, measured),
        Form::Json => format!("{:#}\n", headline::described_as_json(&tables, measured)),
    })
}

//! `headway environment`

use std::path::PathBuf;

use headway_runtime::environment::Options;
use headway_shared::config::{Layers, load_config};

use crate::failure::Failure;
use crate::live::TaskName;
use crate::options::read;
use crate::terminal;
use crate::values::url;

/// Play sessions of a task against a gateway, as a process of its own
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The gateway, such as <http://127.0.0.1:30000>; its key is in HEADWAY_API_KEY
    #[arg(value_parser = url)]
    url: String,
    /// The run's configuration: the size of groups, and the section environment_hosting
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Set a key of the configuration; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// What is played; the run has to have the same --task
    #[arg(long, value_enum, default_value_t = TaskName::Lookup)]
    task: TaskName,
    /// Sessions at once, at most max_envs
    #[arg(long, value_name = "N", default_value_t = 16)]
    sessions: u32,
    /// Sessions in all [default: until it is stopped]
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// The first prompt: one that no session of the run had before
    #[arg(long, value_name = "N", default_value_t = 0)]
    first_prompt: u64,
    /// Seed of the task and of the policy's samples
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let layers = Layers::new().toml(args.config.display().to_string(), read(&args.config)?);
    let (config, warnings) = load_config(&args.set.iter().fold(layers, Layers::set))?;
    terminal::diagnose(&warnings);
    let options = Options {
        base_url: args.url.clone(),
        sessions: args.sessions,
        limit: args.limit,
        first_prompt: args.first_prompt,
        seed: args.seed,
        ..Options::default()
    };
    let host = args.task.host(&config, options)?;
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::broken)?;
    runtime.block_on(host.run(async { drop(tokio::signal::ctrl_c().await) }));
    terminal::note(&host.counts().to_string());
    Ok(())
}

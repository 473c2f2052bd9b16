//! A task that this process plays itself, so that one command hosts everything.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use headway_runtime::environment::{Host, Lookup, Options};
use headway_runtime::judge::{Judge, Share};
use headway_runtime::secret::Secret;
use headway_runtime::store;
use headway_runtime::tokenizer::{Symbols, Tokenizer};
use headway_shared::config::{Config, SampleUnit};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::commands::run::Args;
use crate::failure::Failure;

/// The tasks that are built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskName {
    /// Ask a tool for a key, answer with its value
    Lookup,
}

impl TaskName {
    /// The tokenizer that suits it.
    pub(crate) fn tokenizer(self) -> (Arc<dyn Tokenizer>, u32) {
        let Self::Lookup = self;
        let symbols = Symbols::new(Lookup::SYMBOLS);
        let vocabulary = symbols.vocabulary();
        (Arc::new(symbols), vocabulary)
    }

    /// What judges it.
    pub(crate) fn judge(self) -> Arc<dyn Judge> {
        let Self::Lookup = self;
        Arc::new(Share)
    }
}

/// Sessions that are being played.
pub(crate) struct Playing {
    host: Host,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

/// Begins to play the task of `--task`, if there is one.
pub(crate) fn play(
    args: &Args,
    config: &Config,
    address: SocketAddr,
    key: Option<Secret>,
) -> Result<Option<Playing>, Failure> {
    let Some(TaskName::Lookup) = args.task else { return Ok(None) };
    let training = &config.policy_training;
    // As many as make a batch of each turn's groups, and half as many again.
    let batch = training.batch_size.saturating_mul(training.group_size);
    let options = Options {
        base_url: format!("http://{}", reachable(address)),
        api_key: key,
        sessions: args.sessions.unwrap_or_else(|| batch.saturating_mul(3) / 2),
        group_size: training.group_size,
        group_per_turn: training.sample_unit == SampleUnit::Turn,
        first_prompt: first_prompt(&args.record)?,
        seed: args.seed,
        ..Options::default()
    };
    let host = Host::new(Lookup::new(args.seed), options, config.environment_hosting.clone());
    let host = host.map_err(Failure::broken)?;
    let (stop, stopped) = oneshot::channel();
    let player = host.clone();
    let running = tokio::spawn(async move { player.run(async { drop(stopped.await) }).await });
    Ok(Some(Playing { host, stop, running }))
}

/// No name of a session may come twice, also where the run goes on after a restart.
fn first_prompt(record: &Path) -> Result<u64, Failure> {
    store::count_sessions(record).map_err(Failure::broken)
}

/// An address that listens on every interface is reached by this one.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let local: std::net::IpAddr = match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        address.set_ip(local);
    }
    address
}

impl Playing {
    /// Ends all sessions, and says what happened in them.
    pub(crate) async fn stop(self) -> String {
        drop(self.stop);
        let _ = self.running.await;
        self.host.counts().to_string()
    }
}

//! A task that this process plays itself, so that one command hosts everything.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use headway_runtime::environment::{Host, Options};
use headway_runtime::store;
use headway_shared::config::Config;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::commands::run::Args;
use crate::failure::Failure;

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
) -> Result<Option<Playing>, Failure> {
    let Some(task) = args.task else { return Ok(None) };
    let training = &config.policy_training;
    // As many as make a batch of each turn's groups, and half as many again.
    let batch = training.batch_size.saturating_mul(training.group_size);
    let options = Options {
        base_url: format!("http://{}", reachable(address)),
        sessions: args.sessions.unwrap_or_else(|| batch.saturating_mul(3) / 2),
        // No name of a session may come twice, also where the run goes on after a restart.
        first_prompt: store::count_sessions(&args.record).map_err(Failure::broken)?,
        seed: args.seed,
        ..Options::default()
    };
    let host = task.host(config, options)?;
    let (stop, stopped) = oneshot::channel();
    let player = host.clone();
    let running = tokio::spawn(async move { player.run(async { drop(stopped.await) }).await });
    Ok(Some(Playing { host, stop, running }))
}

/// An address that listens on every interface is reached by this one.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
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

//! A live run.

mod policy;
#[cfg(feature = "torch")]
mod torch;

use std::env;

use headway_runtime::driver::{self, DriverHandle, Parts, Recovery};
use headway_runtime::gateway;
use headway_runtime::judge;
use headway_runtime::log;
use headway_runtime::secret::{ADMIN_TOKEN, API_KEY, Secret};
use headway_shared::config::{Config, Settings};
use headway_shared::time::Span;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::commands::run::Args;
use crate::failure::Failure;
use policy::Policy;

/// Runs until the run ends, or is told to by SIGTERM or SIGINT.
pub(crate) async fn run(args: &Args, config: Config, settings: &Settings) -> Result<(), Failure> {
    let variable = |name: &str| env::var(name).ok();
    let judge = judge::of(&config, settings, variable).map_err(Failure::input)?;
    let (host, port) = (config.policy_serving.host.clone(), config.policy_serving.port);
    let listening = gateway::listen(&host, port).await;
    let (listener, address) = listening.map_err(|error| {
        Failure::input(format!(
            "{host}:{port}: {error}\nhelp: choose another with --set policy_serving.port=PORT"
        ))
    })?;
    let unusable = |error: &dyn std::error::Error| {
        let help = "name another record with --record FILE";
        Failure::input(format!("{}: {error}\nhelp: {help}", args.record.display()))
    };
    let host = Host::of(&config, settings).await?;
    let recovery = Recovery::open(&args.record, config).map_err(|error| unusable(&error))?;
    if let Some(taken) = recovery.taken_over() {
        log::line(&format!("{}: {taken}", args.record.display()));
    }
    let Policy { tokenizer, engines, trainer, training, max_tokens } =
        host.policy(args, settings, &recovery)?;
    let parts = Parts { tokenizer: tokenizer.clone(), judge, engines, trainer };
    let options = driver::Options {
        submission_enabled: settings.serving.submission_enabled,
        log_logprob_diff: settings.logging.log_rollout_logprob_diff,
        ..driver::Options::default()
    };
    let started = driver::start(recovery, parts, options).await;
    let (mut driver, run) = started.map_err(|error| unusable(&error))?;
    let options = gateway::Options {
        api_key: secret(API_KEY),
        admin_token: secret(ADMIN_TOKEN),
        training,
        max_tokens,
        ..gateway::Options::default()
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let router = gateway::router(driver.clone(), tokenizer, options);
    let served = tokio::spawn(gateway::serve(listener, router, async { drop(stopped.await) }));
    log::line(&format!("serving at http://{address}/v1, recording to {}", args.record.display()));
    until_told(&mut driver).await.map_err(Failure::broken)?;
    driver.shut_down(Span::from_secs(args.shutdown_timeout_sec)).await;
    let ended = run.await.map_err(Failure::broken)?;
    drop(stop);
    let _ = served.await;
    let status = driver.status();
    log::line(&format!(
        "ended after {}: {} steps, {} samples trained, {} inputs recorded",
        status.now, status.ledger.steps, status.ledger.trained, status.committed
    ));
    ended.map_err(Failure::broken)
}

fn secret(variable: &str) -> Option<Secret> {
    env::var(variable).ok().and_then(|text| Secret::new(&text))
}

/// Who serves and trains the policy.
enum Host {
    /// This process.
    #[cfg(feature = "torch")]
    Inside,
    Outside(Box<policy::Outside>),
}

impl Host {
    /// What the configuration names; the command has refused what there is not.
    async fn of(config: &Config, settings: &Settings) -> Result<Self, Failure> {
        #[cfg(feature = "torch")]
        if config.policy_serving.engine == crate::commands::run::TCH {
            return Ok(Self::Inside);
        }
        let _ = config;
        Ok(Self::Outside(Box::new(policy::outside(settings).await?)))
    }

    fn policy(
        self,
        args: &Args,
        settings: &Settings,
        recovery: &Recovery,
    ) -> Result<Policy, Failure> {
        match self {
            #[cfg(feature = "torch")]
            Self::Inside => torch::inside(args, recovery),
            Self::Outside(outside) => outside.policy(args, settings, recovery),
        }
    }
}

/// Until a signal comes, or the run cannot go on.
async fn until_told(driver: &mut DriverHandle) -> std::io::Result<()> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        _ = driver.until(|status| status.error.is_some()) => {}
    }
    Ok(())
}

//! A live run.

pub(crate) mod engines;
#[cfg(feature = "torch")]
mod playing;
mod policy;
mod progress;
mod task;
#[cfg(feature = "torch")]
mod torch;

use std::env;
use std::time::Duration;

use headway_runtime::driver::{self, DriverError, Parts, Recovery, Status};
use headway_runtime::engine::ServerKind;
use headway_runtime::gateway;
use headway_runtime::judge;
use headway_runtime::log::{self, Level};
use headway_runtime::secret::{ADMIN_TOKEN, API_KEY, Secret};
use headway_runtime::signals::Signals;
use headway_shared::config::{Config, Live, Settings};
use headway_shared::time::Span;

use crate::commands::run::Args;
use crate::failure::Failure;
use crate::steps;
use policy::Policy;

pub(crate) use task::TaskName;

/// How long clients may take to read their last answers once the run has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// How long requests may wait for the first replica, before they are told that there is none.
const FIRST_REPLICA: Duration = Duration::from_secs(5);

/// How much is logged, where no option says it.
const LOG: &str = "HEADWAY_LOG";

/// How much is logged: as an option says, else as the variable does.
pub(crate) fn log_level(option: Option<Level>) -> Result<Level, Failure> {
    match (option, env::var(LOG)) {
        (Some(level), _) => Ok(level),
        (None, Err(_)) => Ok(Level::default()),
        (None, Ok(text)) => text.parse().map_err(|help| {
            Failure::input(format!("the variable {LOG} is no level\nhelp: {help}"))
        }),
    }
}

/// Runs until the run ends, or is told to by SIGTERM or SIGINT.
pub(crate) async fn run(args: &Args, live: Live) -> Result<(), Failure> {
    let Live { config, settings, guard, .. } = live;
    let settings = &settings;
    let variable = |name: &str| env::var(name).ok();
    let judge = judge::of(&config, settings, variable).map_err(Failure::input)?;
    let (admin_token, dashboard) = operators(args)?;
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
    let recovery =
        Recovery::open(&args.record, config.clone()).map_err(|error| unusable(&error))?;
    if let Some(taken) = recovery.taken_over() {
        log::line(&format!("{}: {taken}", args.record.display()));
    }
    let Policy { tokenizer, engines, trainer, training, max_tokens } =
        host.policy(args, settings, &recovery)?;
    let parts = Parts { tokenizer: tokenizer.clone(), judge, engines, trainer };
    let options = driver::Options {
        submission_enabled: settings.serving.submission_enabled,
        durability: args.durability.into(),
        log_logprob_diff: settings.logging.log_rollout_logprob_diff,
        guard,
        ..driver::Options::default()
    };
    let started = driver::start(recovery, parts, options).await;
    let (mut driver, run) = started.map_err(|error| match error {
        DriverError::TrainerDown => Failure::broken(error),
        error => unusable(&error),
    })?;
    let options = gateway::Options {
        api_key: api_key(),
        admin_token,
        training,
        dashboard,
        max_tokens,
        temperature: settings.training.temperature,
        ..gateway::Options::default()
    };
    let mut signals = Signals::catch().map_err(Failure::broken)?;
    // Who asks before anything serves would be sent away for a minute. Until then connections wait.
    let begun = driver.until(|status| status.gauges.replicas_up > 0 || status.error.is_some());
    drop(tokio::time::timeout(FIRST_REPLICA, begun).await);
    let router = gateway::router(driver.clone(), tokenizer, options);
    let served = gateway::Serving::start(listener, router);
    log::line(&format!("serving at http://{address}/v1, recording to {}", args.record.display()));
    if args.dashboard {
        log::line(&format!("the dashboard is at http://{address}/dashboard"));
    }
    #[cfg(feature = "torch")]
    let playing = playing::play(args, &config, address)?;
    let shown = tokio::spawn(progress::show(driver.clone(), args.record.clone(), args.steps));
    let enough = |status: &Status| args.steps.is_some_and(|steps| status.ledger.steps >= steps);
    signals.until_told(&driver, enough).await;
    shown.abort();
    #[cfg(feature = "torch")]
    if let Some(playing) = playing {
        log::line(&playing.stop().await);
    }
    let within = Span::from_secs(args.shutdown_timeout_sec);
    let ended = signals.end(driver.clone(), run, within).await.map_err(Failure::broken)?;
    served.close(LAST_ANSWERS).await;
    let status = driver.status();
    log::line(&format!(
        "ended after {}: {} steps, {} samples trained, {} inputs recorded",
        status.now, status.ledger.steps, status.ledger.trained, status.committed
    ));
    if let Some(out) = &args.out {
        log::line(&steps::write(&args.record, out)?);
    }
    ended.map_err(Failure::broken)
}

/// What operators need, and what they see.
fn operators(args: &Args) -> Result<(Option<Secret>, Option<gateway::Dashboard>), Failure> {
    let token = secret(ADMIN_TOKEN);
    if args.dashboard && token.is_none() {
        return Err(Failure::input(format!(
            "--dashboard shows the run to whoever has the admin token, and {ADMIN_TOKEN} is not set\n\
             help: export {ADMIN_TOKEN}=$(openssl rand -hex 16)"
        )));
    }
    Ok((token, args.dashboard.then(|| gateway::Dashboard::new(args.record.clone()))))
}

/// The key that the gateway of this machine wants, if it wants one.
pub(crate) fn api_key() -> Option<Secret> {
    secret(API_KEY)
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
        if config.policy_serving.engine == engines::TCH {
            return Ok(Self::Inside);
        }
        let kind = ServerKind::of(&config.policy_serving.engine);
        let kind =
            kind.ok_or_else(|| Failure::input("policy_serving.engine is not in this build"))?;
        Ok(Self::Outside(Box::new(policy::outside(kind, config, settings).await?)))
    }

    fn policy(
        self,
        args: &Args,
        settings: &Settings,
        recovery: &Recovery,
    ) -> Result<Policy, Failure> {
        match self {
            #[cfg(feature = "torch")]
            Self::Inside => torch::inside(args, settings, recovery),
            Self::Outside(outside) => outside.policy(args, settings, recovery),
        }
    }
}

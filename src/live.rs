//! A live run of a small policy in this process.

mod progress;
mod task;

use std::env;
use std::path::Path;
use std::sync::Arc;

use headway_runtime::driver::{self, DriverHandle, Parts, Recovery};
use headway_runtime::engine::tch::TchEngine;
use headway_runtime::gateway;
use headway_runtime::judge::{Endpoint, Judge, Rule};
use headway_runtime::model::{self, Shape};
use headway_runtime::secret::Secret;
use headway_runtime::shared::version::DeployVersion;
use headway_runtime::tokenizer::{Bytes, Tokenizer};
use headway_runtime::trainer::tch::TchTrainer;
use headway_runtime::{engine, trainer};
use headway_shared::config::{Config, Settings};
use headway_shared::id::ReplicaId;
use headway_shared::time::Span;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::commands::run::Args;
use crate::failure::Failure;
use crate::{steps, terminal};

pub(crate) use task::TaskName;

/// The longest conversation of the policy, in tokens; one of them is a byte.
const POSITIONS: i64 = 512;
/// The longest answer.
const MOST_TOKENS: u32 = 128;
/// Turns that are generated at once.
const SLOTS: usize = 64;
/// Commands that may wait for the engine: more than requests can be under way.
const COMMAND_ROOM: usize = 4096;
/// Requests need the key that this variable holds, if it is set.
const API_KEY: &str = "HEADWAY_API_KEY";
/// The admin API needs the token that this variable holds; not set: there is none.
const ADMIN_TOKEN: &str = "HEADWAY_ADMIN_TOKEN";

/// Runs until the run ends, or is told to by SIGTERM or SIGINT.
pub(crate) async fn run(args: &Args, config: Config, settings: &Settings) -> Result<(), Failure> {
    let judge = judge(args, settings)?;
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
    let recovery =
        Recovery::open(&args.record, config.clone()).map_err(|error| unusable(&error))?;
    let (tokenizer, vocabulary) = tokenizer(args);
    let parts = parts(args, judge, tokenizer.clone(), vocabulary, &recovery)?;
    let options = driver::Options {
        submission_enabled: settings.serving.submission_enabled,
        ..driver::Options::default()
    };
    let started = driver::start(recovery, parts, options).await;
    let (mut driver, run) = started.map_err(|error| unusable(&error))?;
    let options = gateway::Options {
        api_key: api_key(),
        admin_token: secret(ADMIN_TOKEN),
        max_tokens: MOST_TOKENS,
        ..gateway::Options::default()
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let router = gateway::router(driver.clone(), tokenizer, options);
    let served = tokio::spawn(gateway::serve(listener, router, async { drop(stopped.await) }));
    terminal::note(&format!(
        "serving at http://{address}/v1, recording to {}",
        args.record.display()
    ));
    let playing = task::play(args, &config, address, api_key())?;
    let shown = tokio::spawn(progress::show(driver.clone(), args.record.clone(), args.steps));
    until_told(&mut driver, args.steps).await.map_err(Failure::broken)?;
    shown.abort();
    if let Some(playing) = playing {
        terminal::note(&playing.stop().await);
    }
    driver.shut_down(Span::from_secs(args.shutdown_timeout_sec)).await;
    let ended = run.await.map_err(Failure::broken)?;
    drop(stop);
    let _ = served.await;
    let status = driver.status();
    terminal::note(&format!(
        "ended after {}: {} steps, {} samples trained, {} inputs recorded",
        status.now, status.ledger.steps, status.ledger.trained, status.committed
    ));
    if let Some(out) = &args.out {
        terminal::note(&steps::write(&args.record, out)?);
    }
    ended.map_err(Failure::broken)
}

/// The key that the gateway of this machine wants, if it wants one.
pub(crate) fn api_key() -> Option<Secret> {
    secret(API_KEY)
}

fn secret(variable: &str) -> Option<Secret> {
    env::var(variable).ok().and_then(|text| Secret::new(&text))
}

fn judge(args: &Args, settings: &Settings) -> Result<Arc<dyn Judge>, Failure> {
    if let Some(task) = args.task {
        return Ok(task.judge());
    }
    if args.exact {
        return Ok(Arc::new(Rule::exact()));
    }
    let variable = |name: &str| env::var(name).ok();
    let endpoint = Endpoint::new(&settings.api, &settings.judge, variable);
    Ok(Arc::new(endpoint.map_err(Failure::input)?))
}

/// Text to token ids and back, and how many ids there are.
fn tokenizer(args: &Args) -> (Arc<dyn Tokenizer>, u32) {
    args.task.map_or_else(|| (Arc::new(Bytes) as _, Bytes::VOCABULARY), TaskName::tokenizer)
}

/// The policy, from the newest checkpoint beside the record.
fn parts(
    args: &Args,
    judge: Arc<dyn Judge>,
    tokenizer: Arc<dyn Tokenizer>,
    vocabulary: u32,
    recovery: &Recovery,
) -> Result<Parts, Failure> {
    let device = model::device(&args.device).map_err(Failure::input)?;
    model::one_thread();
    let shape = Shape::tiny(i64::from(vocabulary), POSITIONS);
    let fresh = Arc::new(shape.random(args.seed));
    let version = DeployVersion::new(0);
    let serving = TchEngine::new(shape.clone(), device, SLOTS, fresh.clone(), version);
    let learning = TchTrainer {
        checkpoints: Some(beside(&args.record, ".checkpoints")),
        ..TchTrainer::new(shape, device, fresh)
    };
    let clock = recovery.clock();
    let link = engine::spawn(ReplicaId(0), clock, COMMAND_ROOM, serving);
    let trainer = trainer::spawn(clock, learning).map_err(Failure::broken)?;
    let engines = vec![link.map_err(Failure::broken)?];
    Ok(Parts { tokenizer, judge, engines, trainer })
}

fn beside(record: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = record.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Until a signal comes, enough steps are made, or the run cannot go on.
async fn until_told(driver: &mut DriverHandle, steps: Option<u64>) -> std::io::Result<()> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        _ = driver.until(|status| {
            let enough = steps.is_some_and(|steps| status.ledger.steps >= steps);
            enough || status.error.is_some()
        }) => {}
    }
    Ok(())
}

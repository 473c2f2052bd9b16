//! A live run of a small policy in this process.

use std::env;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use headway_runtime::driver::{self, Parts, Recovery};
use headway_runtime::engine::tch::TchEngine;
use headway_runtime::gateway;
use headway_runtime::judge;
use headway_runtime::model::{self, Shape};
use headway_runtime::secret::Secret;
use headway_runtime::shared::version::DeployVersion;
use headway_runtime::signals::Signals;
use headway_runtime::tokenizer::Bytes;
use headway_runtime::trainer::tch::TchTrainer;
use headway_runtime::{engine, trainer};
use headway_shared::config::{Config, Settings};
use headway_shared::id::ReplicaId;
use headway_shared::time::Span;

use crate::commands::run::Args;
use crate::failure::Failure;
use crate::terminal;

/// The longest conversation of the policy, in tokens; one of them is a byte.
const POSITIONS: i64 = 512;
/// The longest answer.
const MOST_TOKENS: u32 = 128;
/// Turns that are generated at once.
const SLOTS: usize = 64;
/// Commands that may wait for the engine: more than requests can be under way.
const COMMAND_ROOM: usize = 4096;
/// How long clients may take to read their last answers once the run has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// Requests need the key that this variable holds, if it is set.
const API_KEY: &str = "HEADWAY_API_KEY";
/// The admin API needs the token that this variable holds; not set: there is none.
const ADMIN_TOKEN: &str = "HEADWAY_ADMIN_TOKEN";

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
    let recovery = Recovery::open(&args.record, config).map_err(|error| unusable(&error))?;
    if let Some(taken) = recovery.taken_over() {
        terminal::note(&format!("{}: {taken}", args.record.display()));
    }
    let parts = parts(args, judge, &recovery)?;
    let options = driver::Options {
        submission_enabled: settings.serving.submission_enabled,
        log_logprob_diff: settings.logging.log_rollout_logprob_diff,
        ..driver::Options::default()
    };
    let started = driver::start(recovery, parts, options).await;
    let (driver, run) = started.map_err(|error| unusable(&error))?;
    let options = gateway::Options {
        api_key: secret(API_KEY),
        admin_token: secret(ADMIN_TOKEN),
        max_tokens: MOST_TOKENS,
        ..gateway::Options::default()
    };
    let signals = Signals::catch().map_err(Failure::broken)?;
    let router = gateway::router(driver.clone(), Arc::new(Bytes), options);
    let served = gateway::Serving::start(listener, router);
    terminal::note(&format!(
        "serving at http://{address}/v1, recording to {}",
        args.record.display()
    ));
    let within = Span::from_secs(args.shutdown_timeout_sec);
    let ended = signals.wait(driver.clone(), run, within).await.map_err(Failure::broken)?;
    served.close(LAST_ANSWERS).await;
    let status = driver.status();
    terminal::note(&format!(
        "ended after {}: {} steps, {} samples trained, {} inputs recorded",
        status.now, status.ledger.steps, status.ledger.trained, status.committed
    ));
    ended.map_err(Failure::broken)
}

fn secret(variable: &str) -> Option<Secret> {
    env::var(variable).ok().and_then(|text| Secret::new(&text))
}

/// The policy, from the newest checkpoint beside the record.
fn parts(args: &Args, judge: Arc<dyn judge::Judge>, recovery: &Recovery) -> Result<Parts, Failure> {
    let device = model::device(&args.device).map_err(Failure::input)?;
    let shape = Shape::tiny(i64::from(Bytes::VOCABULARY), POSITIONS);
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
    Ok(Parts { tokenizer: Arc::new(Bytes), judge, engines, trainer })
}

fn beside(record: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = record.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

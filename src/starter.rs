//! What `headway init` writes.

mod answers;
mod ask;
mod scenario;

use std::path::Path;

use headway_shared::config::keys::commented_toml;
use headway_shared::config::{Config, Correction, JudgeNeeds, Layers, load_guarded, load_live};
use headway_shared::rule::Rule;
use serde_json::{Value, json};

pub(crate) use answers::Answers;
pub(crate) use ask::Asker;
use scenario::{in_sessions, scenario};

use crate::failure::Failure;
use crate::{options, outcome, schemas, terminal};

/// Who asks the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Agents and people, in sessions: a turn is judged by what followed it
    Agents,
    /// Tasks with answers that can be checked, in groups: batch RL
    Tasks,
}

impl Kind {
    pub(crate) const CHOICES: [(&str, Self); 2] = [
        ("agents and people, in sessions; a turn is judged by what followed it", Self::Agents),
        ("tasks whose answers can be checked, in groups (batch RL)", Self::Tasks),
    ];
}

/// What serves and trains the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Engine {
    /// SGLang serves, a trainer outside pulls its batches
    Sglang,
    /// Both in Headway's own process (a build with the feature torch)
    Tch,
}

impl Engine {
    pub(crate) const CHOICES: [(&str, Self); 2] = [
        ("SGLang serves it, a trainer outside pulls batches", Self::Sglang),
        ("both happen in Headway's own process, with libtorch", Self::Tch),
    ];
}

/// An endpoint that judges.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    pub(crate) model: String,
    pub(crate) key_env: String,
}

/// What is wished for.
pub(crate) struct Wish {
    pub(crate) kind: Kind,
    pub(crate) engine: Engine,
    pub(crate) engine_urls: Vec<String>,
    /// `None`: the rule judges.
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) rule: String,
    pub(crate) eta: u32,
    pub(crate) batch_size: u32,
    pub(crate) group_size: u32,
}

/// The keys that are written; the others stand there as comments.
const GIVEN: [&str; 19] = [
    "policy_serving.engine",
    "policy_serving.host",
    "policy_serving.port",
    "policy_serving.sync_mode",
    "policy_serving.pause_timeout_sec",
    "reward_judging.mode",
    "reward_judging.judge_concurrency",
    "reward_judging.judge_timeout_sec",
    "reward_judging.fire_on_turn_end",
    "reward_judging.judge_needs",
    "policy_training.engine",
    "policy_training.max_head_off_policyness",
    "policy_training.stale_filter_steps",
    "policy_training.batch_size",
    "policy_training.group_size",
    "policy_training.correction",
    "queue.max_size",
    "queue.queue_type",
    "queue.drop_policy",
];

/// A file to write: its name, and its text.
type File = (&'static str, String);

/// The three files.
///
/// # Errors
/// What was wished for is no configuration.
pub(crate) fn files(wish: &Wish, name: &str) -> Result<Vec<File>, Failure> {
    let config = config(wish);
    let mut given = GIVEN.to_vec();
    if wish.endpoint.is_none() {
        given.push("reward_judging.rule");
    }
    let toml = format!("{CONFIG}{}", commented_toml(&config, &given));
    let settings = format!("{:#}\n", settings(wish));
    // Whatever was answered must load.
    load_live(&Layers::new().toml("config.toml", &toml).json("settings.json", &settings))?;
    let in_sessions = wish.kind == Kind::Agents && wish.group_size == 1;
    let scenario = scenario(&config, name, in_sessions);
    Ok(vec![("config.toml", toml), ("settings.json", settings), ("scenario.toml", scenario)])
}

/// The scenario of a configuration that is there.
pub(crate) fn files_from(config: &Path, name: &str) -> Result<Vec<File>, Failure> {
    let layers = Layers::new().toml(config.display().to_string(), options::read(config)?);
    let (config, _, warnings) = load_guarded(&layers, true)?;
    terminal::diagnose(&warnings);
    Ok(vec![("scenario.toml", scenario(&config, name, in_sessions(&config)))])
}

/// Writes files and their schemas into a folder; says in words where. What is there is replaced by
/// `force` alone: a user may have written it.
pub(crate) fn write(dir: &Path, mut files: Vec<File>, force: bool) -> Result<String, Failure> {
    let paths = files.iter().map(|(name, _)| dir.join(name));
    let there = paths.filter(|path| path.exists() && !force);
    let there: Vec<String> = there.map(|path| path.display().to_string()).collect();
    match there.as_slice() {
        [] => {}
        [one] => return Err(Failure::input(format!("{one}: is there already\nhelp: {AGAIN}"))),
        several => {
            let several = several.join(", ");
            return Err(Failure::input(format!("{several}: are there already\nhelp: {AGAIN}")));
        }
    }
    let schemas: Vec<File> = schemas::beside(files.iter().map(|(name, _)| *name)).collect();
    files.extend(schemas);
    let mut folder = outcome::folder(dir)?;
    for (name, text) in &files {
        folder.write(name, text.as_bytes()).map_err(|error| Failure::unwritable(dir, &error))?;
    }
    outcome::commit(folder, dir)
}

const AGAIN: &str = "name another folder, or replace them with --force; `--from config.toml` writes the \
                     scenario of a configuration that is there";

/// The top of `config.toml`.
const CONFIG: &str = "\
#:schema ./config.schema.json
# The scheduling sections of a live run: headway run --config config.toml --settings settings.json
# What stands behind a # is the default. `headway describe config.toml --config settings.json` shows
# what comes of it, and `headway simulate scenario.toml --config config.toml` what it would do.

";

fn config(wish: &Wish) -> Config {
    let mut config = Config::default();
    let (serves, trains) = match wish.engine {
        Engine::Sglang => ("sglang", "megatron"),
        Engine::Tch => ("tch", "tch"),
    };
    config.policy_serving.engine = serves.to_owned();
    config.policy_training.engine = trains.to_owned();
    if wish.endpoint.is_none() {
        config.reward_judging.rule.clone_from(&wish.rule);
    }
    // A rule over the answer alone waits for nothing.
    let by_answer = Rule::read(&config.reward_judging.rule)
        .is_ok_and(|rule| wish.endpoint.is_none() && !rule.reads_next_state());
    if wish.kind == Kind::Tasks || by_answer {
        config.reward_judging.judge_needs = JudgeNeeds::Turn;
    }
    let training = &mut config.policy_training;
    training.max_head_off_policyness = wish.eta;
    training.stale_filter_steps = Some(wish.eta.max(2) * 4);
    (training.batch_size, training.group_size) = (wish.batch_size, wish.group_size);
    training.min_group_size = wish.group_size;
    training.correction = Correction::PpoClip;
    let batch = wish.batch_size.saturating_mul(wish.group_size);
    let size = batch.saturating_mul(wish.eta.saturating_add(2)).max(512);
    (config.queue.rollout.max_size, config.queue.output.max_size) = (size, size);
    config
}

fn settings(wish: &Wish) -> Value {
    let mut settings = json!({ "$schema": "./settings.schema.json" });
    if let Some(Endpoint { url, key_env, .. }) = &wish.endpoint {
        settings["api"] = json!({ "base_url": url, "api_key_env": key_env, "timeout_sec": 60 });
    }
    settings["serving"] = json!({ "submission_enabled": true, "pause_on_weight_sync": true });
    if !wish.engine_urls.is_empty() {
        settings["serving"]["engine_urls"] = json!(wish.engine_urls);
    }
    if let Some(Endpoint { model, .. }) = &wish.endpoint {
        settings["judge"] = json!({ "model": model, "temperature": 0.0, "max_tokens": 512 });
    }
    settings["logging"] = json!({ "log_rollout_logprob_diff": true });
    settings
}

//! The policy of a live run: what serves it, what trains it, and how it spells.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use headway_runtime::driver::Recovery;
use headway_runtime::engine::sglang::{SglangEngine, served_model};
use headway_runtime::engine::{self, EngineLink};
use headway_runtime::gateway::Training;
use headway_runtime::secret::Secret;
use headway_runtime::shared::version::DeployVersion;
use headway_runtime::tokenizer::{HuggingFace, Tokenizer};
use headway_runtime::trainer::external::ExternalTrainer;
use headway_runtime::trainer::{self, TrainerLink};
use headway_shared::config::Settings;
use headway_shared::id::ReplicaId;

use crate::commands::run::Args;
use crate::failure::Failure;

/// Commands that may wait for an engine: more than requests can be under way.
pub(super) const COMMAND_ROOM: usize = 4096;
/// External trainers need the token that this variable holds; not set: the key of `api_key_env`.
const TRAINER_TOKEN: &str = "HEADWAY_TRAINER_TOKEN";
/// The longest answer.
const MOST_TOKENS: u32 = 32_768;

/// See the [module](self).
pub(super) struct Policy {
    pub(super) tokenizer: Arc<dyn Tokenizer>,
    pub(super) engines: Vec<EngineLink>,
    pub(super) trainer: TrainerLink,
    pub(super) training: Option<Training>,
    pub(super) max_tokens: u32,
}

/// Engines and a trainer outside this process: SGLang, and whatever pulls batches over HTTP. What
/// can be wrong with them is known before the record is opened.
pub(super) struct Outside {
    tokenizer: HuggingFace,
    key: Option<Secret>,
    token: Secret,
}

/// Looks for what is outside.
pub(super) async fn outside(settings: &Settings) -> Result<Outside, Failure> {
    let key = super::secret(&settings.api.api_key_env);
    let token = super::secret(TRAINER_TOKEN).or_else(|| key.clone()).ok_or_else(|| {
        Failure::input(format!(
            "neither {TRAINER_TOKEN} nor {} is set, so that nobody may train: export the token of \
             the external trainer in one of them",
            settings.api.api_key_env
        ))
    })?;
    let tokenizer = tokenizer(settings, key.clone()).await?;
    Ok(Outside { tokenizer, key, token })
}

impl Outside {
    /// Starts what speaks with them.
    pub(super) fn policy(
        self,
        args: &Args,
        settings: &Settings,
        recovery: &Recovery,
    ) -> Result<Policy, Failure> {
        let Self { tokenizer, key, token } = self;
        let book = beside(&args.record, ".trainer.json");
        let made = ExternalTrainer::new(book, settings.training.lease);
        let (external, desk) = made.map_err(Failure::input)?;
        let clock = recovery.clock();
        let trainer = trainer::spawn(clock, external).map_err(Failure::broken)?;
        let newest = DeployVersion::new(recovery.learner().number());
        let urls = settings.serving.engine_urls.iter().enumerate();
        let engines = urls.map(|(index, url)| {
            let replica = ReplicaId(u32::try_from(index).unwrap_or(u32::MAX));
            let engine = SglangEngine::new(url, key.clone(), newest);
            engine::spawn(replica, clock, COMMAND_ROOM, engine).map_err(Failure::broken)
        });
        Ok(Policy {
            tokenizer: Arc::new(tokenizer),
            engines: engines.collect::<Result<_, _>>()?,
            trainer,
            training: Some(Training { desk, token }),
            max_tokens: MOST_TOKENS,
        })
    }
}

/// The tokenizer of the model that is served.
async fn tokenizer(settings: &Settings, key: Option<Secret>) -> Result<HuggingFace, Failure> {
    let directory = match (&settings.serving.model_path, settings.serving.engine_urls.first()) {
        (Some(path), _) => PathBuf::from(path),
        (None, Some(url)) => {
            let served = served_model(url, key).await.map_err(|error| {
                Failure::input(format!(
                    "{error}\nhelp: start the engine first, name it in serving.engine_urls, or \
                     name the model's directory: --set serving.model_path=DIR"
                ))
            })?;
            PathBuf::from(served)
        }
        (None, None) => return Err(Failure::input("serving.engine_urls names no engine")),
    };
    HuggingFace::load(&directory).map_err(|error| {
        Failure::input(format!(
            "{error}\nhelp: name the directory of the served model with --set \
             serving.model_path=DIR"
        ))
    })
}

pub(super) fn beside(record: &Path, suffix: &str) -> PathBuf {
    let mut name = record.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

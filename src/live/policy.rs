//! The policy of a live run: what serves it, what trains it, and how it spells.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use headway_runtime::driver::Recovery;
use headway_runtime::engine::{self, EngineLink, RemoteEngine, ServerKind};
use headway_runtime::gateway::Training;
use headway_runtime::secret::Secret;
use headway_runtime::shared::version::DeployVersion;
use headway_runtime::tokenizer::{HuggingFace, Tokenizer};
use headway_runtime::trainer::external::ExternalTrainer;
use headway_runtime::trainer::{self, TrainerLink};
use headway_shared::config::{Config, Settings};
use headway_shared::id::ReplicaId;

use super::engines;
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

/// Engines outside this process, and what trains for them. What can be wrong with them is known before
/// the record is opened.
pub(super) struct Outside {
    kind: ServerKind,
    tokenizer: HuggingFace,
    key: Option<Secret>,
    trainer: Learning,
}

/// What trains.
enum Learning {
    /// Whoever pulls batches over HTTP with this token.
    External(Secret),
    /// This process.
    #[cfg(feature = "torch")]
    Tch(Box<super::torch::Model>),
}

/// Looks for what is outside.
pub(super) async fn outside(
    kind: ServerKind,
    config: &Config,
    settings: &Settings,
) -> Result<Outside, Failure> {
    let key = super::secret(&settings.api.api_key_env);
    let external = external(config, settings, key.as_ref())?;
    let directory = directory(kind, settings, key.clone()).await?;
    let tokenizer = tokenizer(&directory)?;
    let trainer = match external {
        Some(token) => Learning::External(token),
        #[cfg(feature = "torch")]
        None => Learning::Tch(Box::new(super::torch::Model::open(&directory, settings)?)),
        #[cfg(not(feature = "torch"))]
        None => return Err(Failure::input("policy_training.engine is not in this build")),
    };
    Ok(Outside { kind, tokenizer, key, trainer })
}

/// The token of an external trainer, if there is one.
fn external(
    config: &Config,
    settings: &Settings,
    key: Option<&Secret>,
) -> Result<Option<Secret>, Failure> {
    if config.policy_training.engine == engines::TCH {
        return Ok(None);
    }
    let token = super::secret(TRAINER_TOKEN).or_else(|| key.cloned());
    token.map(Some).ok_or_else(|| {
        Failure::input(format!(
            "neither {TRAINER_TOKEN} nor {} is set, so that nobody may train: export the token of \
             the external trainer in one of them",
            settings.api.api_key_env
        ))
    })
}

impl Outside {
    /// Starts what speaks with them.
    pub(super) fn policy(
        self,
        args: &Args,
        settings: &Settings,
        recovery: &Recovery,
    ) -> Result<Policy, Failure> {
        let Self { kind, tokenizer, key, trainer } = self;
        let (trainer, training) = trainer.start(args, settings, recovery)?;
        let clock = recovery.clock();
        let newest = DeployVersion::new(recovery.learner().number());
        let urls = settings.serving.engine_urls.iter().enumerate();
        let engines = urls.map(|(index, url)| {
            let replica = ReplicaId(u32::try_from(index).unwrap_or(u32::MAX));
            let engine = RemoteEngine::new(kind, url, key.clone(), newest);
            engine::spawn(replica, clock, COMMAND_ROOM, engine).map_err(Failure::broken)
        });
        Ok(Policy {
            tokenizer: Arc::new(tokenizer),
            engines: engines.collect::<Result<_, _>>()?,
            trainer,
            training,
            max_tokens: MOST_TOKENS,
        })
    }
}

impl Learning {
    fn start(
        self,
        args: &Args,
        settings: &Settings,
        recovery: &Recovery,
    ) -> Result<(TrainerLink, Option<Training>), Failure> {
        match self {
            Self::External(token) => {
                let book = beside(&args.record, ".trainer.json");
                if recovery.learner().number() > 0 && !book.exists() {
                    return Err(Failure::input(format!(
                        "{}: there is no such file: it remembers which step the external trainer has done\n\
                         help: put back the one that belongs to this record, or begin another with --record FILE",
                        book.display()
                    )));
                }
                let made = ExternalTrainer::new(book, settings.training.lease);
                let (external, desk) = made.map_err(Failure::input)?;
                let link = trainer::spawn(recovery.clock(), external).map_err(Failure::broken)?;
                Ok((link, Some(Training { desk, token })))
            }
            #[cfg(feature = "torch")]
            Self::Tch(model) => Ok((model.trainer_for_others(args, recovery)?, None)),
        }
    }
}

/// The directory of the model that is served.
async fn directory(
    kind: ServerKind,
    settings: &Settings,
    key: Option<Secret>,
) -> Result<PathBuf, Failure> {
    match (&settings.serving.model_path, settings.serving.engine_urls.first()) {
        (Some(path), _) => Ok(PathBuf::from(path)),
        (None, Some(url)) => {
            let served = kind.served_model(url, key).await.map_err(|error| {
                Failure::input(format!(
                    "{error}\nhelp: start the engine first, name it in serving.engine_urls, or \
                     name the model's directory: --set serving.model_path=DIR"
                ))
            })?;
            Ok(PathBuf::from(served))
        }
        (None, None) => Err(Failure::input("serving.engine_urls names no engine")),
    }
}

/// The tokenizer of the model that is served.
pub(super) fn tokenizer(directory: &Path) -> Result<HuggingFace, Failure> {
    HuggingFace::load(directory).map_err(|error| {
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

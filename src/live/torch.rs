//! A policy in this process, on libtorch: a small one of its own, or a checkpoint.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use headway_runtime::driver::Recovery;
use headway_runtime::engine::Weights;
use headway_runtime::engine::tch::TchEngine;
use headway_runtime::model::{self, HuggingFaceModel, Shape};
use headway_runtime::shared::version::DeployVersion;
use headway_runtime::tokenizer::{Bytes, Tokenizer};
use headway_runtime::trainer::TrainerLink;
use headway_runtime::trainer::tch::{AdamW, Exports, MAX_SNAPSHOTS, TchTrainer};
use headway_runtime::{engine, trainer};
use headway_shared::config::{Dtype, Settings};
use headway_shared::id::ReplicaId;

use super::policy::{COMMAND_ROOM, Policy, beside, tokenizer};
use super::task::TaskName;
use crate::commands::run::Args;
use crate::failure::Failure;

/// The longest conversation of the small policy, in tokens; one of them is a byte.
const POSITIONS: i64 = 512;
/// Its longest answer.
const MOST_TOKENS: u32 = 128;
/// Turns that are generated at once.
const SLOTS: usize = 64;
/// So many numbers may all earlier parameters be that a trainer keeps: 4 bytes each.
const SNAPSHOT_NUMBERS: i64 = 1 << 29;

/// What a checkpoint that has learnt something is trained with.
const LEARNING_RATE: f64 = 1e-6;

/// A checkpoint that can be trained.
pub(super) struct Model {
    model: HuggingFaceModel,
    weights: Arc<Weights>,
    learning_rate: f64,
    temperature: f64,
}

impl Model {
    /// Reads a model's directory.
    pub(super) fn open(directory: &Path, settings: &Settings) -> Result<Self, Failure> {
        let wrong = |error: model::ModelError| {
            Failure::input(format!(
                "{error}\nhelp: serving.model_path names the directory of a checkpoint of the \
                 families Llama, Qwen2 or Qwen3, as transformers writes it"
            ))
        };
        let longest = settings.serving.max_model_len;
        let model = HuggingFaceModel::open(directory, longest).map_err(wrong)?;
        let weights = Arc::new(model.weights().map_err(wrong)?);
        let learning_rate = settings.training.learning_rate.unwrap_or(LEARNING_RATE);
        Ok(Self { model, weights, learning_rate, temperature: settings.training.temperature })
    }

    fn trainer(&self, args: &Args) -> Result<TchTrainer, Failure> {
        let device = model::device(&args.device).map_err(Failure::input)?;
        let shape = self.model.shape().clone();
        let room = usize::try_from(SNAPSHOT_NUMBERS / shape.parameters().max(1)).unwrap_or(1);
        Ok(TchTrainer {
            checkpoints: Some(beside(&args.record, ".checkpoints")),
            snapshots: room.clamp(1, MAX_SNAPSHOTS),
            optimizer: AdamW { learning_rate: self.learning_rate, ..AdamW::default() },
            temperature: self.temperature,
            ..TchTrainer::new(shape, device, self.weights.clone())
        })
    }

    /// Starts a trainer for engines of other processes, which read what it writes.
    pub(super) fn trainer_for_others(
        self,
        args: &Args,
        recovery: &Recovery,
    ) -> Result<TrainerLink, Failure> {
        let folder: PathBuf = beside(&args.record, ".weights");
        let folder = std::path::absolute(folder).map_err(Failure::broken)?;
        let learning = self.trainer(args)?;
        let exports = Some(Exports { model: self.model, folder });
        let learning = TchTrainer { exports, ..learning };
        trainer::spawn(recovery.clock(), learning).map_err(Failure::broken)
    }
}

/// What a policy begins as.
struct Start {
    tokenizer: Arc<dyn Tokenizer>,
    shape: Shape,
    weights: Arc<Weights>,
    trainer: TchTrainer,
    kind: model::Kind,
    max_tokens: u32,
}

/// The checkpoint of the settings, or a small policy with random weights.
fn begin(args: &Args, settings: &Settings) -> Result<Start, Failure> {
    if let Some(directory) = &settings.serving.model_path {
        let directory = Path::new(directory);
        let tokenizer: Arc<dyn Tokenizer> = Arc::new(tokenizer(directory)?);
        let model = Model::open(directory, settings)?;
        let kind = match settings.serving.dtype {
            Dtype::Float32 => model::Kind::Float,
            Dtype::Bfloat16 => model::Kind::BFloat16,
        };
        let trainer = model.trainer(args)?;
        let (shape, weights) = (model.model.shape().clone(), model.weights);
        let max_tokens = settings.serving.max_model_len;
        return Ok(Start { tokenizer, shape, weights, trainer, kind, max_tokens });
    }
    let device = model::device(&args.device).map_err(Failure::input)?;
    let own = || (Arc::new(Bytes) as Arc<dyn Tokenizer>, Bytes::VOCABULARY);
    let (tokenizer, vocabulary) = args.task.map_or_else(own, TaskName::tokenizer);
    let shape = Shape::tiny(i64::from(vocabulary), POSITIONS);
    let weights = Arc::new(shape.random(args.seed));
    let own = AdamW::default();
    let learning_rate = settings.training.learning_rate.unwrap_or(own.learning_rate);
    let trainer = TchTrainer {
        checkpoints: Some(beside(&args.record, ".checkpoints")),
        optimizer: AdamW { learning_rate, ..own },
        temperature: settings.training.temperature,
        ..TchTrainer::new(shape.clone(), device, weights.clone())
    };
    let kind = model::Kind::Float;
    Ok(Start { tokenizer, shape, weights, trainer, kind, max_tokens: MOST_TOKENS })
}

/// The policy, from the newest checkpoint beside the record.
pub(super) fn inside(
    args: &Args,
    settings: &Settings,
    recovery: &Recovery,
) -> Result<Policy, Failure> {
    model::one_thread();
    let Start { tokenizer, shape, weights, trainer, kind, max_tokens } = begin(args, settings)?;
    let serving = TchEngine::new(shape, trainer.device, SLOTS, weights, DeployVersion::new(0));
    let clock = recovery.clock();
    let link = engine::spawn(ReplicaId(0), clock, COMMAND_ROOM, serving.in_kind(kind));
    let trainer = trainer::spawn(clock, trainer).map_err(Failure::broken)?;
    let engines = vec![link.map_err(Failure::broken)?];
    Ok(Policy { tokenizer, engines, trainer, training: None, max_tokens })
}

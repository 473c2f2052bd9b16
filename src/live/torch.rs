//! A small policy in this process, on libtorch.

use std::sync::Arc;

use headway_runtime::driver::Recovery;
use headway_runtime::engine::tch::TchEngine;
use headway_runtime::model::{self, Shape};
use headway_runtime::shared::version::DeployVersion;
use headway_runtime::tokenizer::{Bytes, Tokenizer};
use headway_runtime::trainer::tch::TchTrainer;
use headway_runtime::{engine, trainer};
use headway_shared::id::ReplicaId;

use super::policy::{COMMAND_ROOM, Policy, beside};
use super::task::TaskName;
use crate::commands::run::Args;
use crate::failure::Failure;

/// The longest conversation of the policy, in tokens; one of them is a byte.
const POSITIONS: i64 = 512;
/// The longest answer.
const MOST_TOKENS: u32 = 128;
/// Turns that are generated at once.
const SLOTS: usize = 64;

/// Text to token ids and back, and how many ids there are.
fn tokenizer(args: &Args) -> (Arc<dyn Tokenizer>, u32) {
    args.task.map_or_else(|| (Arc::new(Bytes) as _, Bytes::VOCABULARY), TaskName::tokenizer)
}

/// The policy, from the newest checkpoint beside the record.
pub(super) fn inside(args: &Args, recovery: &Recovery) -> Result<Policy, Failure> {
    let device = model::device(&args.device).map_err(Failure::input)?;
    model::one_thread();
    let (tokenizer, vocabulary) = tokenizer(args);
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
    Ok(Policy { tokenizer, engines, trainer, training: None, max_tokens: MOST_TOKENS })
}

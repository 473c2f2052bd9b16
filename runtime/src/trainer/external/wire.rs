//! A step as JSON.

use headway_shared::config::Choice;
use headway_shared::digest::mix;
use headway_shared::ratio::Loss;
use headway_shared::version::{DeployVersion, LearnerVersion};
use serde_json::{Value, json};

use crate::trainer::TrainSample;

/// What a batch is called: the version that its step starts from and its samples, in order. The
/// same batch has the same name after a restart.
pub(super) fn batch_name(version: LearnerVersion, samples: &[TrainSample]) -> String {
    let start = mix(u64::from(version.number()));
    let digest = samples.iter().fold(start, |digest, sample| {
        let seen = mix(digest ^ sample.id.0);
        // A sample that was judged anew is another one.
        mix(seen
            ^ sample.reward.to_bits()
            ^ (sample.tokens.len() as u64) << 1
            ^ u64::from(sample.masked))
    });
    format!("{digest:016x}")
}

/// A step, but for its lease.
pub(super) fn step(
    batch: &str,
    version: LearnerVersion,
    deploy: Option<DeployVersion>,
    loss: &Loss,
    updates: u32,
    samples: &[TrainSample],
) -> Value {
    json!({
        "task": "train",
        "version": version.number(),
        "batch": batch,
        "deploy_version": deploy.map(DeployVersion::number),
        "updates": updates,
        "correction": {"name": loss.correction.word(), "low": loss.low, "high": loss.high},
        "samples": samples.iter().map(sample).collect::<Vec<_>>(),
    })
}

fn sample(sample: &TrainSample) -> Value {
    let mask: Vec<u8> = sample.loss_mask.iter().map(|&trained| u8::from(trained)).collect();
    let versions: Vec<u32> = sample.versions.iter().map(|version| version.number()).collect();
    json!({
        "id": sample.id.0,
        "group": sample.group.map(|group| group.0),
        "tokens": sample.tokens,
        "loss_mask": mask,
        "rollout_log_probs": sample.rollout_logprobs,
        "versions": versions,
        "reward": sample.reward,
        "masked": sample.masked,
    })
}

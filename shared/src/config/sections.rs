//! The scheduling sections, one struct each; a field is a key of the file (spans as `KEY_sec`).

use serde::{Deserialize, Serialize};

use super::adaptive::Adaptive;
use super::choices::{
    Aborted, Aggregate, BatchCounts, Bound, Correction, DropPolicy, GateKind, GroupFilter,
    JudgeMode, JudgeNeeds, KvOnSync, Late, OnJudgeFailure, OnTie, OverLimit, QueueOrder, Routing,
    SampleUnit, Surplus, SyncMode, ZeroScore,
};
use crate::digest::Digest;
use crate::time::Span;

/// 1, in millionths.
pub(crate) const MILLION: u32 = 1_000_000;

/// `[policy_serving]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyServing {
    /// The serving engine (live only).
    pub engine: String,
    /// The address to listen on (live only).
    pub host: String,
    /// The port to listen on (live only).
    pub port: u16,
    /// `weight_sync_pause` sets it where it is not given.
    pub sync_mode: SyncMode,
    /// How long in-flight turns may take to end before they are aborted.
    pub pause_timeout: Span,
    /// How long an aborted turn may take to stop before it is given up.
    pub abort_timeout: Span,
    /// How long a transfer to a replica may take.
    pub transfer_timeout: Span,
    /// How long loading on a replica may take.
    pub load_timeout: Span,
    /// How long exporting the weights may take.
    pub save_timeout: Span,
    /// How often a failed publication is tried again before the run ends.
    pub publish_retries: u32,
    /// Wait before the first retry; doubled each time, at most 60 s.
    pub publish_retry_delay: Span,
    /// What becomes of an aborted turn.
    pub aborted: Aborted,
    /// What becomes of the KV cache at a swap.
    pub kv_on_sync: KvOnSync,
    /// Which replica takes a request.
    pub routing: Routing,
    /// How many main turns may be running; 0: no limit.
    pub max_concurrent_rollouts: u32,
    /// How long a generation may take; 0: no limit.
    pub generation_timeout: Span,
    /// What happens to a request beyond the limit.
    pub over_limit: OverLimit,
    /// How long a request may be held; 0: as long as it takes.
    pub hold: Span,
}

/// `[environment_hosting]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnvironmentHosting {
    /// How many environments there are; 0: no limit.
    pub max_envs: u32,
    /// How long a step may take; 0: no limit.
    pub step_timeout: Span,
    /// How long a reset may take; 0: no limit.
    pub reset_timeout: Span,
    /// How often a failed reset or step is tried again.
    pub retries: u32,
    /// How long a session may be silent before it is ended; 0: for ever.
    pub session_idle: Span,
}

/// `[reward_judging]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardJudging {
    /// The [rule](crate::rule) that judges (live only); empty: the endpoint of `settings.json`.
    pub rule: String,
    /// Whether scoring blocks a rollout.
    pub mode: JudgeMode,
    /// How many votes may be in flight.
    pub judge_concurrency: u32,
    /// How long a vote may take; 0: no limit.
    pub judge_timeout: Span,
    /// How often a failed vote is tried again.
    pub judge_retries: u32,
    /// Judge as soon as what it needs is there; else when the session ends.
    pub fire_on_turn_end: bool,
    /// What a judge has to see.
    pub judge_needs: JudgeNeeds,
    /// Votes per sample, 1 to 15.
    pub votes: u32,
    /// Valid votes that make a score.
    pub min_votes: u32,
    /// How votes make a score.
    pub aggregate: Aggregate,
    /// What a tie means.
    pub on_tie: OnTie,
    /// What too few valid votes mean.
    pub on_judge_failure: OnJudgeFailure,
    /// What a score of 0 means.
    pub zero_score: ZeroScore,
    /// In a session where nothing would count, the first judged turn does.
    pub at_least_one: bool,
}

/// `[policy_training]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyTraining {
    /// The training engine (live only).
    pub engine: String,
    /// The rule that admits requests.
    pub gate: GateKind,
    /// η, in learner versions.
    pub max_head_off_policyness: u32,
    /// The `verl` gate's fraction of a sync period that may be ahead, in millionths.
    pub staleness_threshold: u32,
    /// The `roll` gate's batches that may be ahead, in millionths.
    pub async_generation_ratio: u32,
    /// The `pipeline_rl` gate's samples that may be ahead.
    pub max_lag_samples: u32,
    /// What η bounds. `0` binds every sample whatever this says.
    pub bound: Bound,
    /// What `strict` does with a late sample.
    pub late: Late,
    /// How long a step waits for a late sample.
    pub late_wait: Span,
    /// Samples older than this are discarded; `None`: no filter.
    pub stale_filter_steps: Option<u32>,
    /// A turn that waits longer for its next state gives its place back; 0: never.
    pub park_after: Span,
    /// What a sample is.
    pub sample_unit: SampleUnit,
    /// Samples (or groups, where `group_size` is above 1) per train step.
    pub batch_size: u32,
    /// Samples per group.
    pub group_size: u32,
    /// A group with fewer scored members is discarded.
    pub min_group_size: u32,
    /// How long a group waits for its stragglers once `min_group_size` members are scored; 0: as
    /// long as it takes.
    pub straggler_wait: Span,
    /// How long a group may take from its first admission; 0: no limit.
    pub group_timeout: Span,
    /// Which complete groups are not trained.
    pub filter: GroupFilter,
    /// How many batches' worth is admitted for one batch, in millionths, at least 1.
    pub over_sampling: u32,
    /// What happens to what over-sampling brought beyond a batch.
    pub surplus: Surplus,
    /// What fills a batch.
    pub batch_counts: BatchCounts,
    /// How long a step waits for a full batch; 0: as long as it takes.
    pub max_batch_wait: Span,
    /// The smallest short batch.
    pub min_batch_size: u32,
    /// Train steps between two publications.
    pub publish_interval: u32,
    /// Optimizer updates in one train step.
    pub updates_per_step: u32,
    /// How often the samples of a failed step are tried again.
    pub train_retries: u32,
    /// How long a train step may take; 0: no limit.
    pub train_timeout: Span,
    /// The off-policy correction.
    pub correction: Correction,
    /// Lower threshold of the correction, in millionths.
    pub correction_low: u32,
    /// Upper threshold of the correction, in millionths.
    pub correction_high: u32,
}

/// One of the two queues of `[queue]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queue {
    /// How many samples it holds.
    pub max_size: u32,
    /// In which order it is taken from.
    pub queue_type: QueueOrder,
    /// What happens when it is full.
    pub drop_policy: DropPolicy,
}

/// `[queue]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queues {
    /// Generated, not yet judged.
    pub rollout: Queue,
    /// Scored, not yet trained.
    pub output: Queue,
}

/// The whole configuration of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `[policy_serving]`
    pub policy_serving: PolicyServing,
    /// `[environment_hosting]`
    pub environment_hosting: EnvironmentHosting,
    /// `[reward_judging]`
    pub reward_judging: RewardJudging,
    /// `[policy_training]`
    pub policy_training: PolicyTraining,
    /// `[queue]`
    pub queue: Queues,
    /// `[policy_training.adaptive]`
    #[serde(rename = "policy_training.adaptive")]
    pub adaptive: Adaptive,
}

impl Default for PolicyServing {
    fn default() -> Self {
        Self {
            engine: "sglang".into(),
            host: "127.0.0.1".into(),
            port: 30000,
            sync_mode: SyncMode::PauseDrain,
            pause_timeout: Span::from_secs(120),
            abort_timeout: Span::from_secs(10),
            transfer_timeout: Span::from_secs(300),
            load_timeout: Span::from_secs(300),
            save_timeout: Span::from_secs(300),
            publish_retries: 5,
            publish_retry_delay: Span::from_secs(1),
            aborted: Aborted::Restart,
            kv_on_sync: KvOnSync::Recompute,
            routing: Routing::LeastLoaded,
            max_concurrent_rollouts: 0,
            generation_timeout: Span::from_secs(1800),
            over_limit: OverLimit::Refuse,
            hold: Span::ZERO,
        }
    }
}

impl Default for EnvironmentHosting {
    fn default() -> Self {
        Self {
            max_envs: 0,
            step_timeout: Span::from_secs(300),
            reset_timeout: Span::from_secs(300),
            retries: 1,
            session_idle: Span::from_secs(3600),
        }
    }
}

impl Default for RewardJudging {
    fn default() -> Self {
        Self {
            rule: String::new(),
            mode: JudgeMode::Async,
            judge_concurrency: 4,
            judge_timeout: Span::from_secs(30),
            judge_retries: 1,
            fire_on_turn_end: true,
            judge_needs: JudgeNeeds::NextState,
            votes: 1,
            min_votes: 1,
            aggregate: Aggregate::Majority,
            on_tie: OnTie::Zero,
            on_judge_failure: OnJudgeFailure::Discard,
            zero_score: ZeroScore::Train,
            at_least_one: false,
        }
    }
}

impl Default for PolicyTraining {
    fn default() -> Self {
        Self {
            engine: "megatron".into(),
            gate: GateKind::Headway,
            max_head_off_policyness: 2,
            staleness_threshold: 0,
            async_generation_ratio: 1_000_000,
            max_lag_samples: 0,
            bound: Bound::Aggregate,
            late: Late::Discard,
            late_wait: Span::from_secs(60),
            stale_filter_steps: None,
            park_after: Span::ZERO,
            sample_unit: SampleUnit::Turn,
            batch_size: 16,
            group_size: 1,
            min_group_size: 1,
            straggler_wait: Span::ZERO,
            group_timeout: Span::from_secs(7200),
            filter: GroupFilter::None,
            over_sampling: MILLION,
            surplus: Surplus::Recycle,
            batch_counts: BatchCounts::Accepted,
            max_batch_wait: Span::ZERO,
            min_batch_size: 1,
            publish_interval: 1,
            updates_per_step: 1,
            train_retries: 2,
            train_timeout: Span::ZERO,
            correction: Correction::PpoClip,
            correction_low: 800_000,
            correction_high: 1_200_000,
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self { max_size: 512, queue_type: QueueOrder::Fifo, drop_policy: DropPolicy::Reject }
    }
}

impl Config {
    /// The canonical JSON text: every key, in the order of the structs, no spaces.
    #[must_use]
    pub fn canonical_json(&self) -> String {
        // Strings, whole numbers and unit variants always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The digest of the canonical form.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.canonical_json().as_bytes())
    }

    /// Samples per full batch.
    #[must_use]
    pub fn samples_per_batch(&self) -> u64 {
        u64::from(self.policy_training.batch_size) * u64::from(self.policy_training.group_size)
    }
}

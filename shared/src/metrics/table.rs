//! The list of metrics, each with its formula beside it.

use super::totals::{Totals, length_ratio, quotient, ratio, seconds};
use crate::action::{Discard, Refusal};
use crate::core::Ledger;

/// What sort of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Between 0 and 1.
    Share,
    /// Events per time.
    Rate,
    /// An average over time or over samples.
    Mean,
    /// A percentile by nearest rank.
    Quantile,
    /// The largest value seen.
    Maximum,
    /// A quotient of two means.
    Ratio,
    /// A sum.
    Total,
}

/// A metric: a column of every result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its column's name.
    pub name: &'static str,
    /// Its unit; empty for shares, ratios and plain numbers.
    pub unit: &'static str,
    /// What sort of number it is.
    pub kind: Kind,
    /// What it is, exactly.
    pub about: &'static str,
}

/// How a metric is computed.
pub(super) type Formula = fn(&Totals<'_>) -> Option<f64>;

/// Lists metrics, each with its formula beside it: the constant named first gets their
/// descriptions, in the order of the columns, and `FORMULAS` the formulas, in the same order.
///
/// A metric is its description as a doc comment, its [`Kind`](crate::metrics::Kind), its name, its
/// unit, and its formula.
#[macro_export]
macro_rules! metric_table {
    (
        $(#[$about_table:meta])* const $table:ident: $formula:ty;
        $($(#[doc = $about:literal])+ $kind:ident $name:ident $unit:literal = $value:expr;)*
    ) => {
        $(#[$about_table])*
        pub const $table: &[$crate::metrics::Metric] = &[$($crate::metrics::Metric {
            name: stringify!($name),
            unit: $unit,
            kind: $crate::metrics::Kind::$kind,
            about: concat!($($about),+).trim_ascii(),
        },)*];

        /// Their formulas, in the same order.
        pub(super) const FORMULAS: &[$formula] = &[$($value,)*];
    };
}

// A metric's comment is what its users read.
metric_table! {
    /// Every metric, in the order of the columns.
    const METRICS: Formula;

    // Idle shares: first in every table.
    /// Share of the time of replicas that are up in which nothing runs on them.
    Share serving_idle_share "" = |t| quotient(t.areas.replicas_idle.sum, t.areas.replicas_up.sum);
    /// 1 - votes in flight / `judge_concurrency`, averaged over time.
    Share judge_idle_share "" = |t| quotient(t.areas.judge_free.sum, t.areas.judge_slots.sum);
    /// Share of the time in which no train step runs.
    Share trainer_idle_share "" = |t| t.mean(t.areas.training).map(|busy| 1.0 - busy);

    // Throughput.
    /// Samples trained, masked ones included, in steps that made a new version.
    Rate trained_samples_per_hour "1/h" = |t| t.per_hour(t.grew(|l| l.trained));
    /// Generated tokens of the samples trained.
    Rate trained_tokens_per_second "tokens/s" = |t| t.per_second(t.trained.tokens);
    /// Turns of a trained sample, on average: 1, unless `sample_unit = "session"`.
    Mean turns_per_sample_mean "" = |t| t.of_trained(t.trained.turns);
    /// Train steps that made a new version.
    Rate steps_per_hour "1/h" = |t| t.per_hour(t.grew(|l| l.steps));
    /// Tokens generated, those of side turns and of aborted attempts included.
    Rate generated_tokens_per_second "tokens/s" = |t| t.per_second(t.generated.tokens);
    /// Tokens generated for samples that were then discarded, or by attempts that started again
    /// from nothing.
    Rate wasted_tokens_per_second "tokens/s" = |t| t.per_second(t.generated.wasted);
    /// Wasted tokens as a share of wasted and trained tokens.
    Share wasted_token_share "" =
        |t| ratio(t.generated.wasted, t.generated.wasted + t.trained.tokens);

    // Requests offered, and what became of them; a client's retry is a new request.
    /// Main requests that arrived.
    Rate offered_per_hour "1/h" = |t| t.per_hour(t.grew(|l| l.offered));
    /// Main requests that became samples.
    Rate admitted_per_hour "1/h" = |t| t.per_hour(t.grew(|l| l.admitted));
    /// Share of the main requests offered that were refused.
    Share refused_share "" = |t| t.of_offered(t.grew(Ledger::refused_total));
    /// Share of the main requests offered that were refused with 429 because the staleness bound
    /// left no capacity.
    Share refused_stale_share "" = |t| t.refused(&[Refusal::Stale]);
    /// Share of the main requests offered that were refused with 429 because a queue had no room to
    /// reserve.
    Share refused_queue_full_share "" = |t| t.refused(&[Refusal::QueueFull]);
    /// Share of the main requests offered that were refused with 429 because of
    /// `max_concurrent_rollouts`, or after `hold_sec`.
    Share refused_other_429_share "" = |t| t.refused(&[Refusal::Concurrency, Refusal::HoldExpired]);
    /// Share of the main requests offered that were refused with 503: weight sync, no replica,
    /// operator's pause, or end of the run.
    Share refused_503_share "" =
        |t| t.refused(&[Refusal::WeightSync, Refusal::NoReplica, Refusal::Paused, Refusal::Ended]);
    /// Requests that wait for a place, averaged over time.
    Mean held_mean "" = |t| t.mean(t.areas.held);
    /// Share of the main requests offered that had to wait for a place.
    Share held_share "" = |t| t.of_offered(t.waited);
    /// Share of the main requests offered that were served and not recorded.
    Share served_only_share "" = |t| t.of_offered(t.grew(|l| l.served_only));

    // Samples, and what became of them.
    /// Share of the samples trained or discarded that were discarded.
    Share discarded_share "" = |t| t.of_resolved(t.grew(Ledger::discarded_total));
    /// Share of the samples trained or discarded that were discarded because they were older than η
    /// when they would have been trained (`bound = "strict"`).
    Share discarded_late_share "" = |t| t.discarded(Discard::Late);
    /// Share of the samples trained or discarded that were discarded because they were older than
    /// `stale_filter_steps`.
    Share discarded_stale_filter_share "" = |t| t.discarded(Discard::StaleFilter);
    /// Share of the samples trained or discarded that were discarded because they were parked, and
    /// too old before their next state had come and a place was free.
    Share discarded_stale_parked_share "" = |t| t.discarded(Discard::StaleParked);
    /// Share of the samples trained or discarded that were discarded because a weight sync aborted
    /// their generation.
    Share discarded_aborted_share "" = |t| t.discarded(Discard::Aborted);
    /// Share of the samples trained or discarded that were discarded because their client left.
    Share discarded_client_left_share "" = |t| t.discarded(Discard::ClientLeft);
    /// Share of the samples trained or discarded that were discarded because the engine failed or
    /// did not answer within `generation_timeout_sec`.
    Share discarded_generation_failed_share "" = |t| t.discarded(Discard::GenerationFailed);
    /// Share of the samples trained or discarded that were discarded because their replica went
    /// down.
    Share discarded_replica_lost_share "" = |t| t.discarded(Discard::ReplicaLost);
    /// Share of the samples trained or discarded that were discarded because their version stamps
    /// were impossible.
    Share discarded_bad_stamp_share "" = |t| t.discarded(Discard::BadStamp);
    /// Share of the samples trained or discarded that were discarded because they had no tokens.
    Share discarded_empty_share "" = |t| t.discarded(Discard::Empty);
    /// Share of the samples trained or discarded that were discarded because their session ended
    /// without a next state.
    Share discarded_no_next_state_share "" = |t| t.discarded(Discard::NoNextState);
    /// Share of the samples trained or discarded that were discarded because their environment
    /// failed.
    Share discarded_environment_failed_share "" = |t| t.discarded(Discard::EnvironmentFailed);
    /// Share of the samples trained or discarded that were discarded because too few of their votes
    /// were valid.
    Share discarded_judge_failed_share "" = |t| t.discarded(Discard::JudgeFailed);
    /// Share of the samples trained or discarded that were discarded because their votes were a
    /// tie.
    Share discarded_tie_share "" = |t| t.discarded(Discard::Tie);
    /// Share of the samples trained or discarded that were discarded because their score was zero.
    Share discarded_zero_score_share "" = |t| t.discarded(Discard::ZeroScore);
    /// Share of the samples trained or discarded that were discarded because the rollout queue was
    /// full.
    Share discarded_rollout_queue_full_share "" = |t| t.discarded(Discard::RolloutQueueFull);
    /// Share of the samples trained or discarded that were discarded because the output queue was
    /// full.
    Share discarded_output_queue_full_share "" = |t| t.discarded(Discard::OutputQueueFull);
    /// Share of the samples trained or discarded that were discarded because their group kept fewer
    /// than `min_group_size` members.
    Share discarded_group_too_small_share "" = |t| t.discarded(Discard::GroupTooSmall);
    /// Share of the samples trained or discarded that were discarded because a drain or a step took
    /// them and kept only a batch.
    Share discarded_surplus_share "" = |t| t.discarded(Discard::Surplus);
    /// Share of the samples trained or discarded that were discarded because their train step
    /// failed more than `train_retries` times.
    Share discarded_step_failed_share "" = |t| t.discarded(Discard::StepFailed);
    /// Share of the samples trained or discarded that were discarded because a rollback removed the
    /// policy that generated them.
    Share discarded_lost_weights_share "" = |t| t.discarded(Discard::LostWeights);
    /// Share of the samples trained or discarded that were discarded because their group waited for
    /// them no longer.
    Share discarded_straggler_share "" = |t| t.discarded(Discard::Straggler);
    /// Share of the samples trained or discarded that were discarded because all scores of their
    /// group were equal (`filter = "zero_variance"`).
    Share discarded_zero_variance_share "" = |t| t.discarded(Discard::ZeroVariance);
    /// Share of the groups that were complete, or went on without their stragglers, that were
    /// discarded because all of their scores were equal (`filter = "zero_variance"`).
    Share filtered_group_share "" =
        |t| ratio(t.grew(|l| l.groups_filtered), t.grew(|l| l.groups_complete));
    /// Share of the samples trained that had no gradient.
    Share masked_share "" = |t| t.of_trained(t.trained.masked);
    /// Samples admitted and not yet trained, discarded or parked, averaged over time.
    Mean outstanding_mean "samples" = |t| t.mean(t.areas.outstanding);
    /// The most samples that were outstanding at once.
    Maximum outstanding_max "samples" = |t| t.max(t.areas.outstanding);
    /// Samples that wait for their next state without a place, averaged over time.
    Mean parked_mean "samples" = |t| t.mean(t.areas.parked);
    /// Times a sample gave its place back because its next state was late.
    Rate parkings_per_hour "1/h" = |t| t.per_hour(t.grew(|l| l.parkings));

    // Staleness of the trained population, in learner versions.
    /// Learner version when the train step started minus version of the first token, mean over
    /// trained samples.
    Mean staleness_head_mean "versions" = |t| t.trained.head.mean();
    /// The 50th percentile (nearest rank) of head staleness over trained samples.
    Quantile staleness_head_p50 "versions" = |t| t.trained.head.percentile(50).map(|v| v as f64);
    /// The 95th percentile (nearest rank) of head staleness over trained samples.
    Quantile staleness_head_p95 "versions" = |t| t.trained.head.percentile(95).map(|v| v as f64);
    /// The 99th percentile (nearest rank) of head staleness over trained samples.
    Quantile staleness_head_p99 "versions" = |t| t.trained.head.percentile(99).map(|v| v as f64);
    /// The largest head staleness of a trained sample.
    Maximum staleness_head_max "versions" = |t| t.trained.head.max().map(|v| v as f64);
    /// Share of the samples trained whose head staleness was above what the gate binds: η
    /// (`max_head_off_policyness`), for those that have one.
    Share staleness_above_bound_share "" = |t| t.of_trained(t.grew(|l| l.trained_above_bound));
    /// What the gate binds (η, for those that have one), averaged over time: an adaptive bound
    /// moves.
    Mean bound_mean "versions" = |t| t.mean(t.areas.bound);
    /// Learner version when the train step started minus version of the last token, mean over
    /// trained samples.
    Mean staleness_tail_mean "versions" = |t| t.trained.tail.mean();
    /// The 50th percentile (nearest rank) of tail staleness over trained samples.
    Quantile staleness_tail_p50 "versions" = |t| t.trained.tail.percentile(50).map(|v| v as f64);
    /// The 95th percentile (nearest rank) of tail staleness over trained samples.
    Quantile staleness_tail_p95 "versions" = |t| t.trained.tail.percentile(95).map(|v| v as f64);
    /// The 99th percentile (nearest rank) of tail staleness over trained samples.
    Quantile staleness_tail_p99 "versions" = |t| t.trained.tail.percentile(99).map(|v| v as f64);
    /// The largest tail staleness of a trained sample.
    Maximum staleness_tail_max "versions" = |t| t.trained.tail.max().map(|v| v as f64);
    /// Learner version when the train step started minus version of the token, mean over the tokens
    /// of trained samples.
    Mean staleness_token_mean "versions" =
        |t| quotient(t.trained.staleness_token_sum, u128::from(t.trained.tokens));
    /// Part of the mean head staleness of trained samples: the learner versions that their first
    /// token's replica was behind the learner when it generated it.
    Mean staleness_part_publish_lag "versions" = |t| t.part(0);
    /// Part of the mean head staleness of trained samples: the learner versions made while they
    /// were generated.
    Mean staleness_part_generating "versions" = |t| t.part(1);
    /// Part of the mean head staleness of trained samples: the learner versions made while they
    /// waited for their next state.
    Mean staleness_part_next_state "versions" = |t| t.part(2);
    /// Part of the mean head staleness of trained samples: the learner versions made while they
    /// waited in the rollout queue for their first vote.
    Mean staleness_part_judge_queue "versions" = |t| t.part(3);
    /// Part of the mean head staleness of trained samples: the learner versions made while they
    /// were judged.
    Mean staleness_part_judging "versions" = |t| t.part(4);
    /// Part of the mean head staleness of trained samples: the learner versions made while they
    /// waited for their group mates.
    Mean staleness_part_group_mates "versions" = |t| t.part(5);
    /// Part of the mean head staleness of trained samples: the learner versions made while they
    /// waited in the output queue.
    Mean staleness_part_output_queue "versions" = |t| t.part(6);
    /// Share of the samples trained whose tokens are of more than one version.
    Share mixed_version_share "" = |t| t.of_trained(t.trained.mixed);

    // Age of the trained population, in seconds.
    /// Time from the end of generation to the start of the train step, mean over trained samples.
    Mean age_seconds_mean "s" = |t| t.trained.age.mean().map(|n| n / 1e9);
    /// The 50th percentile of the time from the end of generation to the start of the train step,
    /// within 0.79%.
    Quantile age_seconds_p50 "s" = |t| seconds(t.trained.age.percentile(50));
    /// The 95th percentile of the time from the end of generation to the start of the train step,
    /// within 0.79%.
    Quantile age_seconds_p95 "s" = |t| seconds(t.trained.age.percentile(95));
    /// The longest time of a trained sample from the end of generation to the start of the train
    /// step.
    Maximum age_seconds_max "s" = |t| seconds(t.trained.age.max());
    /// Time from admission to the first token, mean over trained samples.
    Mean part_seconds_first_token "s" = |t| t.part_seconds(0);
    /// Time from the first token to the end of generation, mean over trained samples.
    Mean part_seconds_generating "s" = |t| t.part_seconds(1);
    /// Time of waiting for the next state, mean over trained samples.
    Mean part_seconds_next_state "s" = |t| t.part_seconds(2);
    /// Time of waiting in the rollout queue for the first vote, mean over trained samples.
    Mean part_seconds_judge_queue "s" = |t| t.part_seconds(3);
    /// Time from the first vote to the score, mean over trained samples.
    Mean part_seconds_judging "s" = |t| t.part_seconds(4);
    /// Time of waiting for group mates, mean over trained samples.
    Mean part_seconds_group_mates "s" = |t| t.part_seconds(5);
    /// Time of waiting in the output queue, mean over trained samples.
    Mean part_seconds_output_queue "s" = |t| t.part_seconds(6);

    // Weights.
    /// Learner version minus the version a replica holds, averaged over the time of the replicas
    /// that are up.
    Mean publish_lag_mean "versions" =
        |t| quotient(t.areas.publish_lag.sum, t.areas.replicas_up.sum);
    /// Version that the replica holds when a turn ends minus version of its first token, mean over
    /// turns generated for training.
    Mean serving_skew_mean "versions" = |t| ratio(t.generated.skew, t.generated.turns);
    /// Publications that reached every replica.
    Rate publications_per_hour "1/h" = |t| t.per_hour(t.grew(|l| l.publications));
    /// Publications that failed, wholly or on some replica.
    Rate failed_publications_per_hour "1/h" = |t| t.per_hour(t.grew(|l| l.failed_publications));
    /// Share of the time in which new requests are answered with 503.
    Share closed_share "" =
        |t| quotient(t.windows.sum.as_nanos().into(), t.duration.as_nanos().into());
    /// Windows in which new requests are answered with 503.
    Rate closed_windows_per_hour "1/h" = |t| t.per_hour(t.windows.count);
    /// Mean length of these windows, as far as they lie in the time observed.
    Mean closed_seconds_mean "s" =
        |t| quotient(t.windows.sum.as_nanos().into(), t.windows.count.into()).map(|n| n / 1e9);
    /// Length of the longest of these windows, as far as it lies in the time observed.
    Maximum closed_seconds_max "s" =
        |t| (t.windows.count > 0).then(|| t.windows.longest.as_secs_f64());

    // Queues.
    /// Turns being generated, side turns included, averaged over time.
    Mean running_mean "turns" = |t| t.mean(t.areas.running);
    /// The most turns that were being generated at once.
    Maximum running_max "turns" = |t| t.max(t.areas.running);
    /// Samples in the rollout queue, averaged over time.
    Mean rollout_queue_mean "samples" = |t| t.mean(t.areas.rollout_queue);
    /// The most samples that were in the rollout queue at once.
    Maximum rollout_queue_max "samples" = |t| t.max(t.areas.rollout_queue);
    /// The 50th percentile over trained samples of the time from when what their judge needs was
    /// there to the start of the first vote, within 0.79%.
    Quantile rollout_queue_wait_seconds_p50 "s" =
        |t| seconds(t.trained.rollout_queue_wait.percentile(50));
    /// The 95th percentile over trained samples of the time from when what their judge needs was
    /// there to the start of the first vote, within 0.79%.
    Quantile rollout_queue_wait_seconds_p95 "s" =
        |t| seconds(t.trained.rollout_queue_wait.percentile(95));
    /// Samples in the output queue, averaged over time.
    Mean output_queue_mean "samples" = |t| t.mean(t.areas.output_queue);
    /// The most samples that were in the output queue at once.
    Maximum output_queue_max "samples" = |t| t.max(t.areas.output_queue);
    /// The 50th percentile over trained samples of the time from when their score and their group
    /// were complete to the start of the train step, within 0.79%.
    Quantile output_queue_wait_seconds_p50 "s" =
        |t| seconds(t.trained.output_queue_wait.percentile(50));
    /// The 95th percentile over trained samples of the time from when their score and their group
    /// were complete to the start of the train step, within 0.79%.
    Quantile output_queue_wait_seconds_p95 "s" =
        |t| seconds(t.trained.output_queue_wait.percentile(95));

    // Judge.
    /// Votes started, retries included.
    Rate judge_calls_per_hour "1/h" = |t| t.per_hour(t.grew(|l| l.votes));
    /// Tokens that the judge read and wrote, as its answers report them.
    Rate judge_tokens_per_hour "tokens/h" = |t| t.per_hour(t.judged.tokens);
    /// Share of the votes that ended, not counting those cancelled as no longer needed, that
    /// failed, timed out or gave no score.
    Share failed_vote_share "" = |t| ratio(t.judged.failed, t.judged.ended);
    /// Share of these votes that were given up at `judge_timeout_sec`.
    Share timed_out_vote_share "" = |t| ratio(t.judged.timed_out, t.judged.ended);

    // Train steps.
    /// Share of the train steps that had fewer than `batch_size` entries.
    Share short_step_share "" = |t| t.of_steps(t.grew(|l| l.short_steps));
    /// Share of the train steps that failed.
    Share failed_step_share "" = |t| t.of_steps(t.grew(|l| l.failed_steps));

    // Lengths: does the trained population follow the generated one?
    /// Mean length of trained samples over mean length of all samples generated, in tokens; turns
    /// that were aborted before their end are in neither.
    Ratio length_ratio "" = |t| length_ratio(&t.trained.lengths, &t.generated.lengths);
    /// Kolmogorov distance between the lengths of trained samples and of all samples generated;
    /// above 64 tokens taken at bin ends, so never above the true one.
    Share length_distance "" = |t| t.trained.lengths.distance(&t.generated.lengths);
    /// Mean length of the samples discarded as `late` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_late "" = |t| t.length_ratio(Discard::Late);
    /// Kolmogorov distance between these two populations.
    Share length_distance_late "" = |t| t.length_distance(Discard::Late);
    /// Mean length of the samples discarded as `stale_filter` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_stale_filter "" = |t| t.length_ratio(Discard::StaleFilter);
    /// Kolmogorov distance between these two populations.
    Share length_distance_stale_filter "" = |t| t.length_distance(Discard::StaleFilter);
    /// Mean length of the samples discarded as `stale_parked` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_stale_parked "" = |t| t.length_ratio(Discard::StaleParked);
    /// Kolmogorov distance between these two populations.
    Share length_distance_stale_parked "" = |t| t.length_distance(Discard::StaleParked);
    /// Mean length of the samples discarded as `no_next_state` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_no_next_state "" = |t| t.length_ratio(Discard::NoNextState);
    /// Kolmogorov distance between these two populations.
    Share length_distance_no_next_state "" = |t| t.length_distance(Discard::NoNextState);
    /// Mean length of the samples discarded as `environment_failed` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_environment_failed "" = |t| t.length_ratio(Discard::EnvironmentFailed);
    /// Kolmogorov distance between these two populations.
    Share length_distance_environment_failed "" = |t| t.length_distance(Discard::EnvironmentFailed);
    /// Mean length of the samples discarded as `judge_failed` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_judge_failed "" = |t| t.length_ratio(Discard::JudgeFailed);
    /// Kolmogorov distance between these two populations.
    Share length_distance_judge_failed "" = |t| t.length_distance(Discard::JudgeFailed);
    /// Mean length of the samples discarded as `tie` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_tie "" = |t| t.length_ratio(Discard::Tie);
    /// Kolmogorov distance between these two populations.
    Share length_distance_tie "" = |t| t.length_distance(Discard::Tie);
    /// Mean length of the samples discarded as `zero_score` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_zero_score "" = |t| t.length_ratio(Discard::ZeroScore);
    /// Kolmogorov distance between these two populations.
    Share length_distance_zero_score "" = |t| t.length_distance(Discard::ZeroScore);
    /// Mean length of the samples discarded as `rollout_queue_full` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_rollout_queue_full "" = |t| t.length_ratio(Discard::RolloutQueueFull);
    /// Kolmogorov distance between these two populations.
    Share length_distance_rollout_queue_full "" = |t| t.length_distance(Discard::RolloutQueueFull);
    /// Mean length of the samples discarded as `output_queue_full` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_output_queue_full "" = |t| t.length_ratio(Discard::OutputQueueFull);
    /// Kolmogorov distance between these two populations.
    Share length_distance_output_queue_full "" = |t| t.length_distance(Discard::OutputQueueFull);
    /// Mean length of the samples discarded as `group_too_small` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_group_too_small "" = |t| t.length_ratio(Discard::GroupTooSmall);
    /// Kolmogorov distance between these two populations.
    Share length_distance_group_too_small "" = |t| t.length_distance(Discard::GroupTooSmall);
    /// Mean length of the samples discarded as `surplus` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_surplus "" = |t| t.length_ratio(Discard::Surplus);
    /// Kolmogorov distance between these two populations.
    Share length_distance_surplus "" = |t| t.length_distance(Discard::Surplus);
    /// Mean length of the samples discarded as `step_failed` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_step_failed "" = |t| t.length_ratio(Discard::StepFailed);
    /// Kolmogorov distance between these two populations.
    Share length_distance_step_failed "" = |t| t.length_distance(Discard::StepFailed);
    /// Mean length of the samples discarded as `lost_weights` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_lost_weights "" = |t| t.length_ratio(Discard::LostWeights);
    /// Kolmogorov distance between these two populations.
    Share length_distance_lost_weights "" = |t| t.length_distance(Discard::LostWeights);
    /// Mean length of the samples discarded as `straggler` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_straggler "" = |t| t.length_ratio(Discard::Straggler);
    /// Kolmogorov distance between these two populations.
    Share length_distance_straggler "" = |t| t.length_distance(Discard::Straggler);
    /// Mean length of the samples discarded as `zero_variance` after their generation had ended, over mean
    /// length of all samples generated.
    Ratio length_ratio_zero_variance "" = |t| t.length_ratio(Discard::ZeroVariance);
    /// Kolmogorov distance between these two populations.
    Share length_distance_zero_variance "" = |t| t.length_distance(Discard::ZeroVariance);
    /// The time observed, without the warm-up.
    Total duration_seconds "s" = |t| Some(t.duration.as_secs_f64());
}

/// Metrics as a Markdown table.
#[must_use]
pub fn markdown(metrics: &[Metric]) -> String {
    let row =
        |metric: &Metric| format!("| `{}` | {} | {} |\n", metric.name, metric.unit, metric.about);
    let head = "| metric | unit | what it is |\n|---|---|---|\n";
    metrics.iter().fold(head.to_owned(), |table, metric| table + &row(metric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_snake_case_and_described() {
        let mut names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names[..3], ["serving_idle_share", "judge_idle_share", "trainer_idle_share"]);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        for metric in METRICS {
            let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(metric.name.chars().all(letters), "{}", metric.name);
            assert!(metric.about.ends_with('.'), "{}", metric.name);
        }
    }

    #[test]
    fn every_reason_and_every_part_has_its_metric_in_order() {
        let with = |prefix: &str, suffix: &str| -> Vec<&'static str> {
            let inner = |metric: &Metric| metric.name.strip_prefix(prefix)?.strip_suffix(suffix);
            METRICS.iter().filter_map(inner).collect()
        };
        let reasons: Vec<_> = Discard::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(with("discarded_", "_share"), reasons);
        assert_eq!(with("staleness_part_", ""), crate::core::STALENESS_PARTS);
        assert_eq!(with("part_seconds_", "")[1..], crate::core::STALENESS_PARTS[1..]);
    }

    #[test]
    fn the_markdown_table_has_a_row_for_each_metric() {
        let table = markdown(METRICS);
        assert_eq!(table.lines().count(), METRICS.len() + 2);
        assert!(table.lines().all(|line| line.starts_with('|') && line.ends_with('|')));
    }
}

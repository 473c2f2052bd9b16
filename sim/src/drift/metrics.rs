//! The columns of a prediction, each with its formula beside it.

use headway_shared::metric_table;
use headway_shared::metrics::Metric;

use super::observer::{Part, Sums};

/// What the metrics of a run are computed from.
pub(super) struct Totals<'a> {
    pub(super) sums: &'a Sums,
    /// The logarithm of the largest learner/rollout.
    pub(super) max: Option<f64>,
    /// The time observed.
    pub(super) hours: Option<f64>,
}

type Formula = fn(&Totals<'_>) -> Option<f64>;

/// Places in [`OTHERS`](super::observer::OTHERS).
const LEARNER_DEPLOY: usize = 0;
const DEPLOY_ROLLOUT: usize = 1;
const LEARNER_PROXIMAL: usize = 2;

metric_table! {
    /// The metrics of a run whose scenario has `[world.drift]`: they follow those of every run. A
    /// ratio is named by both its ends, as in [`headway_shared::ratio::Ends`]; they have the names
    /// under which a trainer reports them.
    const METRICS: Formula;

    /// The 50th percentile (nearest rank) over trained tokens of the ratio of the parameters being
    /// updated by what generated the token, its logarithm within 0.79%.
    Quantile learner_rollout_p50 "" = |t| t.sums.learner.percentile(50);
    /// The 99th percentile of learner/rollout over trained tokens.
    Quantile learner_rollout_p99 "" = |t| t.sums.learner.percentile(99);
    /// Mean over train steps of the 99th percentile of learner/rollout over the tokens of the step,
    /// which is what a trainer reports, step by step.
    Mean learner_rollout_step_p99 "" =
        |t| (t.sums.steps > 0).then(|| t.sums.step_p99 / t.sums.steps as f64);
    /// The largest learner/rollout of a trained token.
    Maximum learner_rollout_max "" = |t| t.max.map(libm::exp);
    /// The mean square of the logarithm of learner/rollout over trained tokens.
    Mean learner_rollout_log_square "nats²" = |t| t.sums.learner.log_square();
    /// KL(rollout, learner) by k1, the mean of -log r over trained tokens.
    Mean learner_rollout_kl_k1 "nats" = |t| t.mean(-t.sums.log_sum);
    /// KL(rollout, learner) by k3, the mean of r - 1 - log r over trained tokens.
    Mean learner_rollout_kl_k3 "nats" = |t| t.sums.learner.kl_k3();
    /// Kish's effective sample size of trained tokens weighed by learner/rollout, as a share of
    /// them.
    Share learner_rollout_ess_token "" = |t| t.sums.learner.effective_share();
    /// The same of the sequences of a train step, each weighed by the product of its tokens' ratios,
    /// mean over train steps; never below 1 / samples of the step.
    Share learner_rollout_ess_sequence "" =
        |t| (t.sums.steps > 0).then(|| t.sums.effective_sequences / t.sums.steps as f64);
    /// The 50th percentile over trained tokens of the ratio of the parameters being updated by what
    /// serving holds when the train step starts.
    Quantile learner_deploy_p50 "" = |t| t.sums.others[LEARNER_DEPLOY].percentile(50);
    /// The 99th percentile of learner/deploy over trained tokens.
    Quantile learner_deploy_p99 "" = |t| t.sums.others[LEARNER_DEPLOY].percentile(99);
    /// The 50th percentile over trained tokens of the ratio of what serving holds when the train
    /// step starts by what generated the token.
    Quantile deploy_rollout_p50 "" = |t| t.sums.others[DEPLOY_ROLLOUT].percentile(50);
    /// The 99th percentile of deploy/rollout over trained tokens.
    Quantile deploy_rollout_p99 "" = |t| t.sums.others[DEPLOY_ROLLOUT].percentile(99);
    /// The 50th percentile over trained tokens of the ratio of the parameters being updated by the
    /// same at the start of the train step: 1, unless `updates_per_step` is above 1.
    Quantile learner_proximal_p50 "" = |t| t.sums.others[LEARNER_PROXIMAL].percentile(50);
    /// The 99th percentile of learner/proximal over trained tokens.
    Quantile learner_proximal_p99 "" = |t| t.sums.others[LEARNER_PROXIMAL].percentile(99);
    /// Mean over trained tokens of the absolute difference of the log-probabilities that the trainer
    /// computes when the step starts and that were recorded at generation.
    Mean train_rollout_logprob_abs_diff "nats" = |t| t.mean(t.sums.differences);
    /// The same over the older half of the train steps, mean over steps.
    Mean train_rollout_logprob_abs_diff_older "nats" = |t| t.half(0);
    /// The same over the newer half of the train steps, mean over steps.
    Mean train_rollout_logprob_abs_diff_newer "nats" = |t| t.half(1);
    /// Share of the trained tokens that the configured correction changes: clipped, truncated or
    /// masked.
    Share clipped_fraction "" = |t| t.of_tokens(t.sums.changed.any);
    /// Share of the trained tokens whose weight proximal/rollout the configured correction truncates
    /// (`tis`) or sets to 0 (`icepop`, `sequence_mask`).
    Share masked_or_truncated_share "" = |t| t.of_tokens(t.sums.changed.weight);
    /// Share of the trained samples all of whose tokens the configured correction leaves without a
    /// gradient.
    Share lost_sequence_share "" = |t| {
        (t.sums.sequences > 0).then(|| t.sums.lost_sequences as f64 / t.sums.sequences as f64)
    };
    /// Effective samples per hour: samples trained and not masked by their judge, times Kish's
    /// effective sample size of their tokens weighed by learner/rollout, those left out that the
    /// configured correction leaves without a gradient. An upper bound: low means bad, high proves
    /// nothing.
    Rate ess_samples_per_hour "1/h" = |t| t.effective_per_hour();
}

/// The columns of `ratios.csv` after the staleness, each with its half-width behind it.
pub const STALENESS_COLUMNS: [&str; 11] = [
    "tokens",
    "learner_rollout_p50",
    "learner_rollout_p99",
    "learner_rollout_max",
    "learner_rollout_log_square",
    "learner_rollout_kl_k1",
    "learner_rollout_kl_k3",
    "learner_rollout_ess_token",
    "train_rollout_logprob_abs_diff",
    "clipped_fraction",
    "masked_or_truncated_share",
];

/// Every metric of [`METRICS`] with its value.
pub(super) fn values<'a>(
    totals: &'a Totals<'_>,
) -> impl Iterator<Item = (&'static Metric, Option<f64>)> + use<'a> {
    METRICS.iter().zip(FORMULAS.iter().map(|formula| formula(totals)))
}

/// The values of [`STALENESS_COLUMNS`].
pub(super) fn of_staleness(
    part: &Part,
    max: Option<f64>,
) -> [Option<f64>; STALENESS_COLUMNS.len()] {
    let learner = &part.learner;
    let share = |count: u64| share(count, learner.tokens());
    [
        Some(learner.tokens() as f64),
        learner.percentile(50),
        learner.percentile(99),
        max.map(libm::exp),
        learner.log_square(),
        learner.kl_k1(),
        learner.kl_k3(),
        learner.effective_share(),
        (learner.tokens() > 0).then(|| part.differences / learner.tokens() as f64),
        share(part.changed.any),
        share(part.changed.weight),
    ]
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Totals<'_> {
    fn of_tokens(&self, count: u64) -> Option<f64> {
        share(count, self.sums.learner.tokens())
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        let tokens = self.sums.learner.tokens();
        (tokens > 0).then(|| sum / tokens as f64)
    }

    /// The mean over one half of the steps of their log-prob difference.
    fn half(&self, which: usize) -> Option<f64> {
        let steps = &self.sums.differences_by_step;
        let (older, newer) = steps.split_at(steps.len() / 2);
        let half = [older, newer][which];
        (!half.is_empty()).then(|| half.iter().sum::<f64>() / half.len() as f64)
    }

    fn effective_per_hour(&self) -> Option<f64> {
        let hours = self.hours.filter(|hours| *hours > 0.0)?;
        let [ratios, squares] = self.sums.kept;
        let whole = self.sums.unmasked_tokens as f64 * squares;
        let share = if whole > 0.0 { ratios * ratios / whole } else { 0.0 };
        Some(self.sums.unmasked_samples as f64 * share / hours)
    }
}

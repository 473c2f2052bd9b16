//! Watches a run and predicts the ratios of what it trains.

use std::collections::BTreeMap;

use headway_shared::action::Action;
use headway_shared::core::{Fate, Resolved, Sample, Scheduler, Stage};
use headway_shared::id::{ReplicaId, SampleId, StepId};
use headway_shared::input::{Input, Measured, Segment};
use headway_shared::metrics::{Metric, Summary};
use headway_shared::ratio::{
    Baseline, Ends, Loss, Member, Term, Token, advantages, effective_share, millionths,
};
use serde::{Deserialize, Serialize};

use super::learning::{Course, Kept, Lesson};
use super::maximum::Undrawn;
use super::metrics::{self, STALENESS_COLUMNS};
use super::model::{Model, Stretch};
use super::population::{Log, Population, Quantiles};
use super::segments::Segments;
use super::sequence::{Ages, Fault, Sequence, draw};
use super::steps::Steps;
use super::trained::{Trained, members};
use crate::kernel::random::{Component, Key};

/// Tokens this many versions old and older share a row.
const OLDEST: u32 = 64;

/// The ratios of which only quantiles are kept.
pub(super) const OTHERS: [Ends; 3] =
    [Ends::LearnerDeploy, Ends::DeployRollout, Ends::LearnerProximal];

/// What is predicted of one run, from its warm-up on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// By staleness in versions, the youngest first; tokens of 64 versions and more are in one row.
    pub by_staleness: Vec<OfStaleness>,
}

/// What is predicted of the tokens of one staleness.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfStaleness {
    /// Learner versions between the token and its train step.
    pub staleness: u32,
    /// By [`STALENESS_COLUMNS`].
    pub values: [Option<f64>; STALENESS_COLUMNS.len()],
}

/// Everything that a prediction is computed from: sums since the last reset.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// learner/rollout.
    pub(super) learner: Population,
    /// Sum of its logarithm over all tokens, those not drawn one by one included.
    pub(super) log_sum: f64,
    /// The ratios with other ends, by [`OTHERS`].
    pub(super) others: [Quantiles; OTHERS.len()],
    /// Sum of the sizes of proximal/rollout's logarithm.
    pub(super) differences: f64,
    /// Mean of these over the tokens of each train step.
    pub(super) differences_by_step: Vec<f64>,
    pub(super) by_staleness: BTreeMap<u32, Part>,
    pub(super) changed: Changed,
    pub(super) sequences: u64,
    /// Sequences all of whose tokens the correction left without a gradient.
    pub(super) lost_sequences: u64,
    /// Sums of the tokens' ratios and of their squares, those left out that have no gradient; and
    /// the number of all: of samples that the judge did not mask.
    pub(super) kept: [f64; 2],
    pub(super) unmasked_tokens: u64,
    pub(super) unmasked_samples: u64,
    /// Sum over train steps of the effective share of their sequences, and the steps.
    pub(super) effective_sequences: f64,
    /// Sum over train steps of the 99th percentile of learner/rollout over the step's tokens.
    pub(super) step_p99: f64,
    pub(super) steps: u64,
}

/// The tokens of one staleness.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) learner: Population,
    pub(super) differences: f64,
    pub(super) changed: Changed,
    undrawn: Undrawn,
}

/// Tokens that the correction changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changed {
    /// Clipped, truncated or masked.
    pub(super) any: u64,
    /// Truncated or masked, by a weight before the loss or in it.
    pub(super) weight: u64,
}

/// Follows a run as the metrics' observer does.
#[derive(Debug)]
pub(crate) struct Observer {
    model: Model,
    key: Key,
    replicas: u32,
    segments: Segments,
    /// What serving held when the present train step started.
    deploy: Option<u32>,
    baseline: Baseline,
    course: Course,
    steps: Steps,
    sums: Sums,
    drawn: Sequence,
    /// The logarithms of learner/rollout in the present train step, each with the number of tokens
    /// that it stands for.
    of_step: Vec<(f64, u64)>,
    /// What a trainer would report of the last train step, where an adaptive bound follows it.
    signals: Option<Signals>,
}

/// What a trainer reports of one step, as an adaptive bound follows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Signals {
    /// `train_rollout_logprob_abs_diff`, in nats.
    logprob_abs_diff: f64,
    /// `clipped_fraction`.
    clipped_fraction: f64,
    /// `learner_rollout_ess_token`.
    ess: f64,
}

impl Signals {
    /// As the core is told.
    pub(crate) fn of(self, step: StepId) -> Measured {
        Measured {
            step,
            logprob_abs_diff: millionths(self.logprob_abs_diff),
            clipped_fraction: millionths(self.clipped_fraction),
            ess: millionths(self.ess),
        }
    }
}

impl Observer {
    /// An observer of a run in a world that never has more replicas than this.
    pub(crate) fn new(model: &Model, key: Key, replicas: u32) -> Self {
        Self {
            model: model.clone(),
            key,
            replicas,
            segments: Segments::default(),
            deploy: None,
            baseline: Baseline::default(),
            course: Course::default(),
            steps: Steps::default(),
            sums: Sums::default(),
            drawn: Sequence::default(),
            of_step: Vec::new(),
            signals: None,
        }
    }

    /// What a trainer would report of the step that has just ended, where an adaptive bound follows
    /// it; once.
    pub(crate) fn take_signals(&mut self) -> Option<Signals> {
        self.signals.take()
    }

    /// `core` has handled `input`, and gave `actions`. `entity` names the draws of a sample.
    pub(crate) fn observe(
        &mut self,
        input: &Input,
        actions: &[Action],
        core: &Scheduler,
        entity: impl Fn(SampleId) -> Option<u64>,
    ) {
        self.segments.observe(input, actions);
        self.train(core, entity);
        for resolved in core.resolved() {
            self.segments.take(resolved.sample.id);
        }
        if actions.iter().any(|action| matches!(action, Action::StartStep { .. })) {
            let held = (0..self.replicas).filter_map(|replica| core.replica(ReplicaId(replica)));
            let held = held.filter(|replica| replica.up);
            self.deploy = held.map(|replica| replica.deploy.number()).max();
        }
    }

    /// Forgets what was counted until now, the end of the warm-up.
    pub(crate) fn reset(&mut self) {
        self.sums = Sums::default();
    }

    /// The prediction; the metrics of the run are extended by those of the ratios.
    pub(crate) fn finish(&self, summary: Summary) -> (Summary, Drift) {
        let largest = |(&staleness, part): (&u32, &Part)| {
            let uniform = self.key.stream(Component::Extreme, u64::from(staleness)).uniform();
            let undrawn = part.undrawn.largest(uniform);
            part.learner.max_log().into_iter().chain(undrawn).reduce(f64::max)
        };
        let maxima: Vec<Option<f64>> = self.sums.by_staleness.iter().map(largest).collect();
        let rows = self.sums.by_staleness.iter().zip(&maxima);
        let by_staleness = rows
            .map(|((&staleness, part), &max)| OfStaleness {
                staleness,
                values: metrics::of_staleness(part, max),
            })
            .collect();
        let max = maxima.into_iter().flatten().reduce(f64::max);
        let hours = summary.get("duration_seconds").map(|seconds| seconds / 3600.0);
        let totals = metrics::Totals { sums: &self.sums, max, hours };
        let values: Vec<(&'static Metric, Option<f64>)> = metrics::values(&totals).collect();
        (summary.with(values), Drift { by_staleness })
    }

    /// The samples of a train step that has made a version.
    fn train(&mut self, core: &Scheduler, entity: impl Fn(SampleId) -> Option<u64>) {
        let trained = |resolved: &&Resolved| resolved.fate == Fate::Trained;
        let batch: Vec<&Sample> =
            core.resolved().iter().filter(trained).map(|resolved| &resolved.sample).collect();
        if batch.is_empty() {
            return;
        }
        let training = &core.config().policy_training;
        let rule = Loss::of(training);
        let updates = training.updates_per_step.max(1) as usize;
        let chunk = batch.len().div_ceil(updates.min(batch.len())).max(1);
        let members = members(&batch);
        let advantages = advantages(&members, &mut self.baseline);
        let lessons = self.lessons(rule, &members, &batch);
        let mut logs = Vec::with_capacity(batch.len());
        self.of_step.clear();
        let version = batch[0].learner(Stage::TrainStarted).number();
        let Some((_, &law)) = self.model.stretch(self.course.at(version)) else { return };
        let mut moves = std::mem::take(&mut self.steps);
        moves.reach(&self.model, &self.key, version);
        let before = (self.sums.differences, self.sums.learner.tokens(), self.sums.changed.any);
        let course = std::mem::take(&mut self.course);
        let mut kept = Kept::default();
        for (place, (sample, advantage)) in batch.iter().zip(advantages).enumerate() {
            let learner = sample.learner(Stage::TrainStarted).number();
            let within = (place / chunk) as f64 / updates as f64;
            let (deploy, lesson) = (self.deploy, lessons[place]);
            let ages = Ages { learner, deploy, within, course: &course, moves: &moves, lesson };
            let segments = whole(self.segments.take(sample.id), sample);
            let of = entity(sample.id).unwrap_or(sample.id.0);
            let trained = Trained { rule, advantage, masked: sample.masked };
            let terms = self.sample(&law, &ages, &segments, of, trained);
            kept.add(advantage, &self.drawn, &terms);
            logs.push(self.drawn.learner);
        }
        (self.course, self.steps) = (course, moves);
        if self.model.growth.is_some() {
            self.course.step(version, kept.share(rule.correction) / law.kept);
        }
        self.sums.effective_sequences += effective_share(&logs);
        self.sums.step_p99 += percentile(&mut self.of_step, 99).map_or(1.0, libm::exp);
        self.sums.steps += 1;
        let tokens = self.sums.learner.tokens() - before.1;
        if tokens > 0 {
            let mean = (self.sums.differences - before.0) / tokens as f64;
            self.sums.differences_by_step.push(mean);
            if core.config().adaptive.is_on() {
                let changed = self.sums.changed.any - before.2;
                self.signals = Some(Signals {
                    logprob_abs_diff: mean,
                    clipped_fraction: changed as f64 / tokens as f64,
                    ess: effective(&self.of_step),
                });
            }
        }
    }

    /// Which way the tokens of each sample are moved.
    fn lessons(&self, rule: Loss, members: &[Member], batch: &[&Sample]) -> Vec<Lesson> {
        let tokens: Vec<u32> = batch.iter().map(|sample| sample.tokens).collect();
        match &self.model.growth {
            Some(growth) => Lesson::of_batch(growth.per_step, rule, members, &tokens),
            None => vec![Lesson::default(); batch.len()],
        }
    }

    fn sample(
        &mut self,
        law: &Stretch,
        ages: &Ages<'_>,
        segments: &[Segment],
        entity: u64,
        trained: Trained,
    ) -> Vec<Term> {
        let Self { model, sums, drawn, key, of_step, .. } = self;
        draw(model, law, segments, ages, key.stream(Component::Token, entity), drawn);
        let terms = trained.terms(drawn);
        let by_weight = trained.by_weight(drawn, &terms);
        let lost = |term: &Term| term.clipped && term.gradient == 0.0;
        for (place, (token, &weight)) in drawn.tokens.iter().zip(&drawn.weights).enumerate() {
            let changed = [terms[place].clipped, by_weight[place]];
            sums.add(token, weight, ages.deploy.is_some(), changed);
            let log = Ends::LearnerRollout.log_ratio(token);
            of_step.push((log, weight));
            if !trained.masked {
                sums.keep(log, weight, !lost(&terms[place]));
            }
        }
        sums.log_sum += drawn.learner;
        sums.sequences += 1;
        sums.lost_sequences += u64::from(terms.iter().all(lost));
        sums.unmasked_samples += u64::from(!trained.masked);
        sums.undrawn(law, segments, ages, drawn);
        terms
    }
}

impl Sums {
    /// Adds a token: whether the correction changed it, and whether by its weight.
    fn add(&mut self, token: &Token, weight: u64, deployed: bool, [any, by_weight]: [bool; 2]) {
        for (ends, quantiles) in OTHERS.into_iter().zip(&mut self.others) {
            if deployed || ends == Ends::LearnerProximal {
                quantiles.add(ends.log_ratio(token), weight);
            }
        }
        let learner = Log::new(Ends::LearnerRollout.log_ratio(token));
        let part = self.by_staleness.entry(token.staleness.min(OLDEST)).or_default();
        self.learner.add(learner, weight);
        part.learner.add(learner, weight);
        let difference = weight as f64 * (token.proximal - token.rollout).abs();
        self.differences += difference;
        part.differences += difference;
        for changed in [&mut self.changed, &mut part.changed] {
            changed.any += if any { weight } else { 0 };
            changed.weight += if by_weight { weight } else { 0 };
        }
    }

    /// Counts a token of a sample that its judge did not mask, with its log-ratio.
    fn keep(&mut self, log: f64, weight: u64, has_gradient: bool) {
        self.unmasked_tokens += weight;
        if has_gradient {
            let ratio = Log::new(log).ratio();
            self.kept[0] += weight as f64 * ratio;
            self.kept[1] += weight as f64 * ratio * ratio;
        }
    }

    /// Counts the tokens that were not drawn, for the largest ratio.
    fn undrawn(&mut self, law: &Stretch, segments: &[Segment], ages: &Ages<'_>, drawn: &Sequence) {
        let shifted = drawn.fault == Some(Fault::Shifted);
        for (segment, &count) in segments.iter().zip(&drawn.undrawn) {
            let version = segment.version.number();
            let age = ages.learner.saturating_sub(version);
            if let Some(part) = self.by_staleness.get_mut(&age.min(OLDEST)) {
                let law = ages.law(law, version);
                let variance = law.variance(ages.learner_steps(version));
                part.undrawn.add(&law.tokens, variance, count, shifted);
            }
        }
    }
}

/// The `percent`th percentile by nearest rank of values that each stand for so many.
fn percentile(values: &mut [(f64, u64)], percent: u64) -> Option<f64> {
    values.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let all = values.iter().map(|&(_, weight)| weight).sum::<u64>();
    let rank = (u128::from(all) * u128::from(percent)).div_ceil(100);
    let mut seen = 0;
    let reached = |&&(_, weight): &&(f64, u64)| {
        seen += u128::from(weight);
        seen >= rank
    };
    values.iter().find(reached).map(|&(value, _)| value)
}

/// Kish's effective sample size of tokens, as a share of them.
fn effective(logs: &[(f64, u64)]) -> f64 {
    let (mut tokens, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for &(log, weight) in logs {
        let (times, ratio) = (weight as f64, Log::new(log).ratio());
        tokens += times;
        sum += times * ratio;
        squares += times * ratio * ratio;
    }
    sum * sum / (tokens * squares)
}

/// The segments of a sample, whose tokens are all of its own.
fn whole(segments: Vec<Segment>, sample: &Sample) -> Vec<Segment> {
    let tokens = segments.iter().fold(0_u32, |sum, segment| sum.saturating_add(segment.tokens));
    debug_assert_eq!(tokens, sample.tokens, "{} has other segments", sample.id);
    if tokens == sample.tokens {
        return segments;
    }
    vec![Segment { version: sample.head, tokens: sample.tokens }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_counts_what_each_value_stands_for() {
        let mut values = [(3.0, 1), (1.0, 98), (2.0, 1)];
        assert_eq!(percentile(&mut values, 98), Some(1.0));
        assert_eq!(percentile(&mut values, 99), Some(2.0));
        assert_eq!(percentile(&mut values, 100), Some(3.0));
        assert_eq!(percentile(&mut [], 99), None);
    }
}

use std::collections::VecDeque;
use std::rc::Rc;

use headway_shared::id::StepId;
use headway_shared::ratio::{Baseline, Loss, Token};
use headway_shared::version::{DeployVersion, LearnerVersion};

use super::adamw::{AdamW, Moments, grad_norm};
use super::gaps::Gaps;
use super::loss::{Columns, trained};
use super::metrics;
use crate::engine::Weights;
use crate::model::{ModelError, Net, floats};
use crate::trainer::{StepMetric, TrainSample, advantages, by_sample};

/// Samples per pass at most, and logits: what bounds a step's memory.
const PASS: usize = 64;
const PASS_LOGITS: usize = 1 << 28;

/// Why a step made no new version.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("{sample}: {reason}")]
    Sample { sample: headway_shared::id::SampleId, reason: &'static str },
    #[error("the loss or its gradient is not finite")]
    NotFinite,
    #[error("it starts from {wanted}, and the parameters are {held}")]
    OtherVersion { wanted: LearnerVersion, held: LearnerVersion },
}

/// The last step that made a version. Told again, it is answered again and not trained again.
#[derive(Clone, Debug)]
pub(super) struct Applied {
    pub(super) step: StepId,
    pub(super) learner: LearnerVersion,
    pub(super) metrics: Vec<StepMetric>,
}

/// The parameters, and everything that a checkpoint holds.
#[derive(Debug)]
pub(super) struct Learner {
    pub(super) net: Net,
    /// What the parameters are: what the last step made, or the checkpoint it began with.
    pub(super) version: LearnerVersion,
    pub(super) moments: Moments,
    pub(super) baseline: Baseline,
    pub(super) applied: Option<Applied>,
    /// What there was before the last step of this process, to which its cancellation goes back.
    pub(super) before: Option<Before>,
    /// A step was trained in this process: until then the parameters are what they are called.
    pub(super) stepped: bool,
    /// Earlier parameters by version, oldest first.
    pub(super) snapshots: VecDeque<(LearnerVersion, Rc<Net>)>,
    pub(super) gaps: Gaps,
}

/// Everything that a step changes.
#[derive(Debug)]
pub(super) struct Before {
    version: LearnerVersion,
    net: Rc<Net>,
    moments: Moments,
    baseline: Baseline,
    applied: Option<Applied>,
}

/// A step to train.
pub(super) struct Step<'a> {
    pub(super) step: StepId,
    pub(super) learner: LearnerVersion,
    pub(super) deploy: Option<DeployVersion>,
    pub(super) loss: Loss,
    pub(super) updates: usize,
    pub(super) samples: &'a [TrainSample],
    pub(super) probe: bool,
}

/// What stays the same over steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    pub(super) optimizer: AdamW,
    pub(super) temperature: f64,
    pub(super) snapshots: usize,
}

/// Log-probabilities of each sample's trained tokens.
type Logs = Vec<Vec<f64>>;

impl Learner {
    pub(super) fn new(net: Net, version: LearnerVersion) -> Result<Self, ModelError> {
        for tensor in net.tensors() {
            let _ = tensor.f_set_requires_grad(true)?;
        }
        let moments = Moments::new(net.tensors())?;
        Ok(Self {
            net,
            version,
            moments,
            baseline: Baseline::default(),
            applied: None,
            before: None,
            stepped: false,
            snapshots: VecDeque::new(),
            gaps: Gaps::default(),
        })
    }

    /// Trains a step. Where it fails, the parameters and all else are what they were.
    pub(super) fn train(
        &mut self,
        step: &Step<'_>,
        habits: &Habits,
    ) -> Result<Vec<StepMetric>, StepError> {
        for sample in step.samples {
            check(sample, step.learner, self.net.shape().vocab, self.net.shape().positions)?;
        }
        self.stand_at(step.learner)?;
        let net = self.remember(habits.snapshots)?;
        let mut baseline = self.baseline;
        let advantages = advantages(step.samples, &mut baseline);
        let deploy = match self.deployed(step) {
            Some(net) => Some(score(net, step.samples, habits.temperature)?),
            None => None,
        };
        let probed = if step.probe { self.probe(step, habits)? } else { Vec::new() };
        // With one update, the learner that it sees is the proximal policy.
        let several = step.updates > 1;
        let proximal = match several {
            true => Some(score(&self.net, step.samples, habits.temperature)?),
            false => None,
        };
        let before = Before {
            version: self.version,
            net,
            moments: self.moments.copy()?,
            baseline: self.baseline,
            applied: self.applied.take(),
        };
        let trained = match self.updates(step, habits, &advantages, proximal.as_ref()) {
            Ok(trained) => trained,
            Err(error) => {
                self.go_back_to(before)?;
                return Err(error);
            }
        };
        (self.before, self.stepped) = (Some(before), true);
        self.baseline = baseline;
        self.version = step.learner.next();

        let proximal = proximal.as_ref().unwrap_or(&trained.learner);
        let same = step.deploy.is_some_and(|deploy| deploy.number() == step.learner.number());
        let deployed = deploy.is_some() || same;
        let deploy = deploy.as_ref().unwrap_or(proximal);
        let sequences = tokens(step, &trained.learner, proximal, deploy);
        let mut metrics = trained.metrics;
        metrics.extend(metrics::ratios(&sequences, deployed));
        metrics.extend(probed);
        self.applied =
            Some(Applied { step: step.step, learner: step.learner, metrics: metrics.clone() });
        Ok(metrics)
    }

    /// Makes the parameters those that `version` names: what they are, or what they were before the
    /// last step, which then counts as failed.
    fn stand_at(&mut self, version: LearnerVersion) -> Result<(), StepError> {
        if self.before.as_ref().is_some_and(|before| before.version == version) {
            self.go_back()?;
        }
        self.name(version);
        if version == self.version {
            return Ok(());
        }
        Err(StepError::OtherVersion { wanted: version, held: self.version })
    }

    /// Until a step was trained, the parameters are what they are called: after a rollback,
    /// versions go on upward.
    fn name(&mut self, version: LearnerVersion) {
        if !self.stepped && version > self.version {
            self.gaps.0.push((self.version.number(), version.number()));
            self.version = version;
        }
    }

    /// The weights of a version: of the parameters, or of what they were before.
    pub(super) fn weights_of(&mut self, version: LearnerVersion) -> Result<Weights, StepError> {
        self.name(version);
        let before = self.before.iter().map(|before| (before.version, &before.net));
        let earlier = self.snapshots.iter().map(|(version, net)| (*version, net)).chain(before);
        let mut earlier = earlier.filter(|(other, _)| *other == version);
        match earlier.next() {
            _ if version == self.version => Ok(self.net.weights()?),
            Some((_, net)) => Ok(net.weights()?),
            None => Err(StepError::OtherVersion { wanted: version, held: self.version }),
        }
    }

    /// Undoes the last step of this process, if it can still be undone. Whether it was.
    pub(super) fn go_back(&mut self) -> Result<bool, ModelError> {
        match self.before.take() {
            Some(before) => self.go_back_to(before).map(|()| true),
            None => Ok(false),
        }
    }

    fn go_back_to(&mut self, before: Before) -> Result<(), ModelError> {
        let _no_gradients = tch::no_grad_guard();
        for (tensor, before) in self.net.tensors_mut().iter_mut().zip(before.net.tensors()) {
            tensor.zero_grad();
            tensor.f_copy_(before)?;
        }
        self.moments = before.moments;
        (self.version, self.baseline) = (before.version, before.baseline);
        self.applied = before.applied;
        Ok(())
    }

    /// Keeps a copy of the parameters.
    fn remember(&mut self, room: usize) -> Result<Rc<Net>, ModelError> {
        if let Some((newest, net)) = self.snapshots.back()
            && *newest == self.version
        {
            return Ok(Rc::clone(net));
        }
        let net = Rc::new(self.net.snapshot()?);
        self.snapshots.push_back((self.version, Rc::clone(&net)));
        while self.snapshots.len() > room {
            self.snapshots.pop_front();
        }
        let oldest = self.snapshots.front().map_or(self.version, |(version, _)| *version);
        self.gaps.forget_before(oldest.number());
        Ok(net)
    }

    /// The deployed copy, where it is known and not the learner itself.
    fn deployed(&self, step: &Step<'_>) -> Option<&Net> {
        let number = step.deploy?.number();
        let other = self.snapshots.iter().filter(|(version, _)| *version != step.learner);
        other.into_iter().find(|(version, _)| version.number() == number).map(|(_, net)| &**net)
    }

    /// The lag probe: the batch under every snapshot.
    fn probe(&self, step: &Step<'_>, habits: &Habits) -> Result<Vec<StepMetric>, ModelError> {
        let (mut all, mut continued) = (Vec::new(), Vec::new());
        for (version, net) in &self.snapshots {
            let logs = score(net, step.samples, habits.temperature)?;
            for (sample, logs) in step.samples.iter().zip(&logs) {
                let first = trained(sample).next().map(|place| sample.versions[place]);
                let (mut tokens, mut behind) = (Vec::new(), Vec::new());
                for (place, &log) in trained(sample).zip(logs) {
                    let rollout = f64::from(sample.rollout_logprobs[place]);
                    let (own, other) = (sample.versions[place].number(), version.number());
                    let (newer, older) = if other >= own { (log, rollout) } else { (rollout, log) };
                    let token = Token {
                        staleness: self.gaps.between(own, other),
                        learner: newer,
                        proximal: newer,
                        deploy: older,
                        rollout: older,
                    };
                    tokens.push(token);
                    if first != Some(sample.versions[place]) {
                        behind.push(token);
                    }
                }
                all.push(tokens);
                continued.push(behind);
            }
        }
        Ok(metrics::probe(&all, &continued))
    }

    /// The optimizer's updates, each with its part of the batch.
    fn updates(
        &mut self,
        step: &Step<'_>,
        habits: &Habits,
        advantages: &[f64],
        proximal: Option<&Logs>,
    ) -> Result<Trained, StepError> {
        let entries = by_sample(step.samples);
        let count = entries.len();
        let size = count.div_ceil(step.updates.clamp(1, count.max(1))).max(1);
        let mut trained = Trained::default();
        let (mut losses, mut norms, mut clipped, mut parts) = (0.0, 0.0, 0.0, 0.0);
        for part in entries.chunks(size) {
            let sequences: Vec<usize> = part.iter().cloned().flatten().collect();
            for pass in sequences.chunks(pass_of(&self.net, step.samples)) {
                let (from, to) = (pass[0], pass[0] + pass.len());
                let samples: Vec<&TrainSample> = step.samples[from..to].iter().collect();
                let columns = Columns::of(&samples, &advantages[from..to], self.net.device())?;
                let learner = columns.log_probs(&self.net, habits.temperature)?;
                let old = match proximal {
                    Some(proximal) => columns.put(&samples, &proximal[from..to])?,
                    None => learner.f_detach().map_err(ModelError::from)?,
                };
                let (loss, changed) = columns.loss(&step.loss, &learner, &old)?;
                let loss = loss.f_div_scalar(part.len() as f64).map_err(ModelError::from)?;
                loss.f_backward().map_err(ModelError::from)?;
                losses += loss.f_double_value(&[]).map_err(ModelError::from)?;
                clipped += floats(&changed)?.iter().map(|&x| f64::from(x)).sum::<f64>();
                trained.learner.extend(take(&samples, &learner)?);
            }
            let norm = grad_norm(self.net.tensors())?;
            if !(norm.is_finite() && losses.is_finite()) {
                return Err(StepError::NotFinite);
            }
            let _no_gradients = tch::no_grad_guard();
            habits.optimizer.update(self.net.tensors_mut(), &mut self.moments, norm)?;
            norms += norm;
            parts += 1.0;
        }
        let tokens: usize = trained.learner.iter().map(Vec::len).sum();
        let rewards = entries.iter().map(|places| &step.samples[places.start]);
        let rewards = rewards.filter(|sample| !sample.masked);
        let rewards: Vec<f64> = rewards.map(|sample| sample.reward).collect();
        let share = |sum: f64, of: f64| if of > 0.0 { sum / of } else { 0.0 };
        trained.metrics = vec![
            metrics::whole("reward_mean", share(rewards.iter().sum(), rewards.len() as f64)),
            metrics::whole("loss", share(losses, parts)),
            metrics::whole("grad_norm", share(norms, parts)),
            metrics::whole("clipped_fraction", share(clipped, tokens as f64)),
            metrics::whole("trained_tokens", tokens as f64),
        ];
        Ok(trained)
    }
}

#[derive(Default)]
struct Trained {
    learner: Logs,
    metrics: Vec<StepMetric>,
}

fn check(
    sample: &TrainSample,
    learner: LearnerVersion,
    vocab: i64,
    positions: i64,
) -> Result<(), StepError> {
    let wrong = |reason| Err(StepError::Sample { sample: sample.id, reason });
    let count = sample.tokens.len();
    let lists = [sample.loss_mask.len(), sample.rollout_logprobs.len(), sample.versions.len()];
    if lists.iter().any(|&length| length != count) {
        return wrong("its lists differ in length");
    }
    if count < 2 || count as i64 > positions {
        return wrong("it has fewer than two tokens, or more than the model has positions");
    }
    if sample.tokens.iter().any(|&id| i64::from(id) >= vocab) {
        return wrong("it has a token that the model does not know");
    }
    if sample.loss_mask[0] {
        return wrong("its first token cannot be trained: nothing is before it");
    }
    let logs_fit = |place: usize| {
        let log = sample.rollout_logprobs[place];
        log.is_finite() && log <= 0.0
    };
    if !trained(sample).all(logs_fit) || !sample.reward.is_finite() {
        return wrong("its reward or a log-probability is no such number");
    }
    if trained(sample).any(|place| learner.staleness_of(sample.versions[place]).is_none()) {
        return wrong("it is of a version that the learner has not reached");
    }
    Ok(())
}

/// How many samples are computed at once.
fn pass_of(net: &Net, samples: &[TrainSample]) -> usize {
    let longest = samples.iter().map(|sample| sample.tokens.len()).max().unwrap_or(0);
    let vocabulary = usize::try_from(net.shape().vocab).unwrap_or(usize::MAX);
    (PASS_LOGITS / longest.saturating_mul(vocabulary).max(1)).clamp(1, PASS)
}

/// The log-probabilities of each sample's trained tokens under a net, without gradients.
fn score(net: &Net, samples: &[TrainSample], temperature: f64) -> Result<Logs, ModelError> {
    let _no_gradients = tch::no_grad_guard();
    let mut logs = Vec::new();
    for pass in samples.chunks(pass_of(net, samples)) {
        let pass: Vec<&TrainSample> = pass.iter().collect();
        let columns = Columns::of(&pass, &vec![0.0; pass.len()], net.device())?;
        logs.extend(take(&pass, &columns.log_probs(net, temperature)?)?);
    }
    Ok(logs)
}

/// The trained tokens' cells of a tensor [n, t].
fn take(samples: &[&TrainSample], columns: &tch::Tensor) -> Result<Logs, ModelError> {
    let width = usize::try_from(columns.size2()?.1).unwrap_or(0);
    let flat = floats(columns)?;
    let rows = samples.iter().zip(flat.chunks(width.max(1)));
    Ok(rows
        .map(|(sample, row)| trained(sample).map(|place| f64::from(row[place - 1])).collect())
        .collect())
}

fn tokens(step: &Step<'_>, learner: &Logs, proximal: &Logs, deploy: &Logs) -> Vec<Vec<Token>> {
    let of = |(index, sample): (usize, &TrainSample)| {
        let places = trained(sample).enumerate();
        places
            .map(|(n, place)| Token {
                staleness: step.learner.staleness_of(sample.versions[place]).unwrap_or(0),
                learner: learner[index][n],
                proximal: proximal[index][n],
                deploy: deploy[index][n],
                rollout: f64::from(sample.rollout_logprobs[place]),
            })
            .collect()
    };
    step.samples.iter().enumerate().map(of).collect()
}

use crate::config::{Correction, PolicyTraining};

/// PPO's published band, for ratios that the configured thresholds do not belong to.
const INNER: (f64, f64) = (0.8, 1.2);

/// A correction and its thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Which.
    pub correction: Correction,
    /// The lower threshold of its ratio.
    pub low: f64,
    /// The upper threshold of its ratio.
    pub high: f64,
}

impl Loss {
    /// The one that a configuration names.
    #[must_use]
    pub fn of(training: &PolicyTraining) -> Self {
        Self {
            correction: training.correction,
            low: f64::from(training.correction_low) / 1e6,
            high: f64::from(training.correction_high) / 1e6,
        }
    }

    /// The band of PPO's ratio: the configured one where that ratio is what the correction clips.
    #[must_use]
    pub fn ppo_band(&self) -> (f64, f64) {
        match self.correction {
            Correction::Tis | Correction::Icepop | Correction::SequenceMask => INNER,
            _ => (self.low, self.high),
        }
    }
}

/// The log-probabilities of one sequence's trained tokens. Equal lengths, finite.
#[derive(Clone, Copy, Debug)]
pub struct LogProbs<'a> {
    /// Under the parameters being updated.
    pub learner: &'a [f64],
    /// Under the learner when the step started.
    pub proximal: &'a [f64],
    /// As recorded at generation.
    pub rollout: &'a [f64],
}

/// What one token adds to the loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// The loss.
    pub loss: f64,
    /// Its derivative by this token's learner log-probability, through its own term or, for GSPO,
    /// through the sequence's ratio: the mean over the sequence's tokens of all their derivatives.
    pub gradient: f64,
    /// The correction changed this token: its ratio was clipped, truncated or masked.
    pub clipped: bool,
}

/// The terms of one sequence with this advantage, token by token.
#[must_use]
pub fn terms(rule: &Loss, advantage: f64, of: LogProbs<'_>) -> Vec<Term> {
    match rule.correction {
        Correction::None => {
            of.learner.iter().map(|&learner| reinforce(advantage, learner)).collect()
        }
        Correction::PpoClip => each(of.learner, of.rollout, |r| ppo(r, rule.ppo_band(), advantage)),
        Correction::Gspo => {
            let ratio = libm::exp(mean_log_ratio(of.learner, of.rollout));
            vec![ppo(ratio, rule.ppo_band(), advantage); of.learner.len()]
        }
        Correction::Decoupled | Correction::Tis | Correction::Icepop => {
            let inner = each(of.learner, of.proximal, |r| ppo(r, rule.ppo_band(), advantage));
            let outer = of.proximal.iter().zip(of.rollout).map(|(p, b)| libm::exp(p - b));
            inner.iter().zip(outer).map(|(inner, ratio)| weighted(rule, *inner, ratio)).collect()
        }
        Correction::SequenceMask => {
            let ratio = libm::exp(mean_log_ratio(of.proximal, of.rollout));
            let inner = each(of.learner, of.proximal, |r| ppo(r, rule.ppo_band(), advantage));
            inner.iter().map(|inner| weighted(rule, *inner, ratio)).collect()
        }
    }
}

/// The loss of a batch: the mean over a sequence's tokens, then over the sequences. A sequence
/// without trained tokens counts as one with a loss of 0.
#[must_use]
pub fn batch_loss(sequences: &[Vec<Term>]) -> f64 {
    let mean_of = |terms: &Vec<Term>| {
        terms.iter().map(|term| term.loss).sum::<f64>() / (terms.len().max(1) as f64)
    };
    sequences.iter().map(mean_of).sum::<f64>() / (sequences.len().max(1) as f64)
}

fn reinforce(advantage: f64, learner: f64) -> Term {
    Term { loss: -advantage * learner, gradient: -advantage, clipped: false }
}

fn each(top: &[f64], bottom: &[f64], term: impl Fn(f64) -> Term) -> Vec<Term> {
    top.iter().zip(bottom).map(|(top, bottom)| term(libm::exp(top - bottom))).collect()
}

/// PPO's pessimistic bound. Where the clipped side is the smaller one there is no gradient. The
/// derivative of a ratio by the logarithm of its top is the ratio.
fn ppo(ratio: f64, (low, high): (f64, f64), advantage: f64) -> Term {
    let plain = ratio * advantage;
    let bound = ratio.max(low).min(high) * advantage;
    if bound < plain {
        Term { loss: -bound, gradient: 0.0, clipped: true }
    } else {
        Term { loss: -plain, gradient: -plain, clipped: false }
    }
}

/// The inner loss times what the correction makes of the ratio proximal/rollout.
fn weighted(rule: &Loss, inner: Term, ratio: f64) -> Term {
    let inside = rule.low <= ratio && ratio <= rule.high;
    let (weight, changed) = match rule.correction {
        Correction::Tis => (ratio.min(rule.high), ratio > rule.high),
        Correction::Icepop if inside => (ratio, false),
        Correction::SequenceMask if inside => (1.0, false),
        Correction::Icepop | Correction::SequenceMask => (0.0, true),
        _ => (ratio, false),
    };
    Term {
        loss: weight * inner.loss,
        gradient: weight * inner.gradient,
        clipped: changed || inner.clipped,
    }
}

fn mean_log_ratio(top: &[f64], bottom: &[f64]) -> f64 {
    let sum: f64 = top.iter().zip(bottom).map(|(top, bottom)| top - bottom).sum();
    sum / (top.len().max(1) as f64)
}

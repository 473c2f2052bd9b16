//! `[world.drift]`: the parameters, and what follows from them alone.

use std::fmt;

/// What a scenario says about importance ratios.
#[derive(Clone, PartialEq)]
pub struct Model {
    /// What it was fitted to; `None`: to nothing, and all that comes of it is uncalibrated.
    pub calibrated_from: Option<String>,
    /// The stretches of training, by the train step of the fitted run at which they begin; the first at
    /// 0.
    pub stretches: Vec<Stretch>,
    /// Share of samples whose recorded log-probabilities are those of the next token.
    pub shifted_share: f64,
    /// Share of samples whose recorded log-probabilities are 0 from some token on.
    pub padded_share: f64,
    /// Tokens of a sample that are drawn one by one.
    pub sampled_tokens: u32,
    /// Standard deviation, between train steps, of the logarithm of what each moves the policy; 0: it is
    /// the same for all.
    pub step_spread: f64,
    /// How alike neighbouring train steps are in that: the correlation of the logarithms, from 0 to below
    /// 1.
    pub step_correlation: f64,
    /// How fast the policy learned that it was fitted to; `None`: that is not known, and every step is
    /// worth one of its.
    pub growth: Option<Growth>,
}

/// How fast a policy learns, and so which way its tokens move and how much of that a correction takes
/// away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// How much the log-odds of the reward grew per train step; above 0.
    pub per_step: f64,
}

/// The law of a stretch of training.
#[derive(Clone, Copy, PartialEq)]
pub struct Stretch {
    /// The train step of the fitted run at which it begins.
    pub from_step: u32,
    /// Standard deviation of a log-ratio at k = 0, in nats.
    pub sigma0: f64,
    /// Variance of a log-ratio that one version adds, in nats².
    pub a: f64,
    /// How the variance grows with the versions between: 1 (a random walk) to 2 (straight on).
    pub p: f64,
    /// What share of its gradient the correction left in this stretch of the fitted run; above 0.
    pub kept: f64,
    /// The population of tokens.
    pub tokens: Tokens,
}

/// How likely the tokens are that the policy generates, and how much more the unlikely ones move.
#[derive(Clone, Copy, PartialEq)]
pub struct Tokens {
    /// Mean of -log(probability) of a generated token, in nats: the policy's entropy per token.
    pub entropy: f64,
    /// The exponent of a token's scale over one version, `(1 - probability)^tail`.
    pub tail: f64,
    /// How it falls with the versions between: over `k` it is `tail / k^tail_fade`. With 0 it is the same
    /// tokens that every version moves further than others; with 1/2 each version has its own, and what a
    /// scale adds to the kurtosis falls as that of a sum of independent terms does, as 1/k.
    pub tail_fade: f64,
}

/// As derived, but without a fade of 0: see [`Model`].
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entropy, tail, tail_fade } = self;
        let mut text = f.debug_struct("Tokens");
        text.field("entropy", entropy).field("tail", tail);
        if *tail_fade != 0.0 {
            text.field("tail_fade", tail_fade);
        }
        text.finish()
    }
}

/// As derived, but with the tokens once where all stretches have the same, without a spread or correlation
/// of 0 and without no growth: a scenario's digest, which random streams are keyed with, is made of this
/// text, and files that were there before these keys keep theirs.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            calibrated_from,
            stretches,
            shifted_share,
            padded_share,
            sampled_tokens,
            step_spread,
            step_correlation,
            growth,
        } = self;
        let mut text = f.debug_struct("Model");
        text.field("calibrated_from", calibrated_from).field("stretches", stretches);
        let shapes: Vec<&Tokens> = stretches.iter().map(|stretch| &stretch.tokens).collect();
        match shapes.as_slice() {
            [first, rest @ ..] if rest.iter().all(|tokens| tokens == first) => {
                text.field("tokens", first);
            }
            shapes => {
                text.field("shapes", &shapes);
            }
        }
        text.field("shifted_share", shifted_share)
            .field("padded_share", padded_share)
            .field("sampled_tokens", sampled_tokens);
        if *step_spread != 0.0 {
            text.field("step_spread", step_spread);
        }
        if *step_correlation != 0.0 {
            text.field("step_correlation", step_correlation);
        }
        if let Some(growth) = growth {
            text.field("growth", growth);
        }
        text.finish()
    }
}

/// As derived, but without all of the gradient being kept, and without the tokens: see [`Model`].
impl fmt::Debug for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from_step, sigma0, a, p, kept, tokens: _ } = self;
        let mut text = f.debug_struct("Stretch");
        text.field("from_step", from_step).field("sigma0", sigma0).field("a", a).field("p", p);
        if *kept != 1.0 {
            text.field("kept", kept);
        }
        text.finish()
    }
}

/// The marking of everything that no fit stands behind.
const UNCALIBRATED: &str = "uncalibrated";

impl Model {
    /// The stretch of a train step before which training had come as far as the fitted run had in so
    /// many.
    #[must_use]
    pub fn stretch(&self, progress: f64) -> Option<(usize, &Stretch)> {
        let begun = |stretch: &Stretch| f64::from(stretch.from_step) <= progress;
        self.stretches.iter().enumerate().rev().find(|(_, stretch)| begun(stretch))
    }

    /// `uncalibrated`, or what it was fitted to.
    #[must_use]
    pub fn calibration(&self) -> String {
        match &self.calibrated_from {
            Some(source) => format!("calibrated from {source}"),
            None => UNCALIBRATED.into(),
        }
    }

    /// The same model as far as it decides what a run gives: texts are no part of that.
    #[must_use]
    pub fn without_texts(&self) -> Self {
        Self { calibrated_from: None, ..self.clone() }
    }
}

impl Stretch {
    /// `sigma²(k)`: the variance of learner/rollout's logarithm over all tokens `k` versions old.
    #[must_use]
    pub fn variance(&self, k: f64) -> f64 {
        self.sigma0 * self.sigma0 + self.moved(k)
    }

    /// `a |k|^p`: what the policy has moved over `k` versions.
    #[must_use]
    pub fn moved(&self, k: f64) -> f64 {
        if k == 0.0 { 0.0 } else { self.a * libm::pow(k.abs(), self.p) }
    }
}

impl Tokens {
    /// Those of log-ratios over so many versions.
    #[must_use]
    pub fn over(&self, versions: f64) -> Self {
        if self.tail_fade == 0.0 || versions <= 1.0 {
            return Self { tail_fade: 0.0, ..*self };
        }
        let tail = self.tail / libm::pow(versions, self.tail_fade);
        Self { tail, tail_fade: 0.0, ..*self }
    }

    /// The mean of `(1 - probability)^n`. -log(probability) is exponential with mean `entropy`, so
    /// that 1 - probability has the Beta(1, 1/entropy) distribution.
    #[must_use]
    pub fn moment(&self, n: f64) -> f64 {
        if n == 0.0 {
            return 1.0;
        }
        let rate = 1.0 / self.entropy;
        libm::exp(libm::lgamma(n + 1.0) + libm::lgamma(rate + 1.0) - libm::lgamma(n + rate + 1.0))
    }

    /// The mean of the fourth power of a token's scale; the mean of its square is 1.
    #[must_use]
    pub fn scale_fourth(&self) -> f64 {
        let square = self.moment(2.0 * self.tail);
        self.moment(4.0 * self.tail) / (square * square)
    }

    /// The kurtosis (3 for a normal law) of the log-ratios of tokens of one age, where they are
    /// small: three times the mean fourth power of the scale.
    #[must_use]
    pub fn kurtosis(&self) -> f64 {
        3.0 * self.scale_fourth()
    }

    /// What the scale of a token is divided by, so that scales have a mean square of 1.
    #[must_use]
    pub fn norm(&self) -> f64 {
        libm::sqrt(self.moment(2.0 * self.tail))
    }

    /// The scale of a token with this 1 - probability, before it is divided by the norm.
    #[must_use]
    pub fn raw_scale(&self, unlikely: f64) -> f64 {
        match self.tail {
            0.0 => 1.0,
            1.0 => unlikely,
            tail => libm::pow(unlikely, tail),
        }
    }
}

use std::collections::BTreeMap;

/// Which ratio: its top and its bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ends {
    /// Parameters being updated, by what generated: the whole distance.
    LearnerRollout,
    /// Parameters being updated, by what serving now holds: the publish lag's share.
    LearnerDeploy,
    /// What serving now holds, by what generated: the serving skew's share, and the engines'
    /// difference.
    DeployRollout,
    /// Parameters being updated, by the same at the step's start: what the step itself moved.
    LearnerProximal,
}

impl Ends {
    /// All, in the order of reports.
    pub const ALL: [Self; 4] =
        [Self::LearnerRollout, Self::LearnerDeploy, Self::DeployRollout, Self::LearnerProximal];

    /// The name in reports and columns.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::LearnerRollout => "learner/rollout",
            Self::LearnerDeploy => "learner/deploy",
            Self::DeployRollout => "deploy/rollout",
            Self::LearnerProximal => "learner/proximal",
        }
    }

    /// The logarithm of this ratio for a token.
    #[must_use]
    pub fn log_ratio(self, of: &Token) -> f64 {
        match self {
            Self::LearnerRollout => of.learner - of.rollout,
            Self::LearnerDeploy => of.learner - of.deploy,
            Self::DeployRollout => of.deploy - of.rollout,
            Self::LearnerProximal => of.learner - of.proximal,
        }
    }
}

/// A trained token: how old it is, and its log-probabilities. All finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token {
    /// Learner version when the step starts, minus the version that generated this token.
    pub staleness: u32,
    /// Under the parameters being updated.
    pub learner: f64,
    /// Under the learner when the step started.
    pub proximal: f64,
    /// Under what serving now holds.
    pub deploy: f64,
    /// As recorded at generation.
    pub rollout: f64,
}

/// How one ratio is spread over the trained tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Tokens.
    pub tokens: usize,
    /// Sequences that have one of them.
    pub sequences: usize,
    /// The median: the smallest ratio that at least half of the tokens do not exceed.
    pub p50: f64,
    /// The same for 99 of 100.
    pub p99: f64,
    /// The largest.
    pub max: f64,
    /// The mean of the ratio's logarithm.
    pub log_mean: f64,
    /// The mean of its square: sigma² where the mean is near 0.
    pub log_square: f64,
    /// The mean of its absolute value.
    pub log_abs: f64,
    /// KL(bottom, top) by Schulman's k1 (Approximating KL divergence, 2020): the mean of -log r.
    pub kl_k1: f64,
    /// The same by k3: the mean of r - 1 - log r. Never negative, and less noisy.
    pub kl_k3: f64,
    /// Kish's effective sample size over tokens, as a share of the tokens: (Σr)² / (n Σr²).
    pub ess_token: f64,
    /// The same over sequences, each weighed by the product of its tokens' ratios.
    pub ess_sequence: f64,
}

/// The spread of one ratio over sequences of trained tokens; `None` without tokens.
#[must_use]
pub fn spread(ends: Ends, sequences: &[Vec<Token>]) -> Option<Spread> {
    let mut logs: Vec<f64> =
        sequences.iter().flatten().map(|token| ends.log_ratio(token)).collect();
    if logs.is_empty() {
        return None;
    }
    let products: Vec<f64> = sequences
        .iter()
        .filter(|sequence| !sequence.is_empty())
        .map(|sequence| sequence.iter().map(|token| ends.log_ratio(token)).sum())
        .collect();
    let ess_token = effective_share(&logs);
    logs.sort_by(f64::total_cmp);
    let log_mean = mean(&logs, |log| log);
    Some(Spread {
        tokens: logs.len(),
        sequences: products.len(),
        p50: libm::exp(quantile(&logs, 50)),
        p99: libm::exp(quantile(&logs, 99)),
        max: libm::exp(quantile(&logs, 100)),
        log_mean,
        log_square: mean(&logs, |log| log * log),
        log_abs: mean(&logs, f64::abs),
        kl_k1: -log_mean,
        kl_k3: mean(&logs, |log| libm::expm1(log) - log),
        ess_token,
        ess_sequence: effective_share(&products),
    })
}

/// The spread of one ratio by the staleness of the tokens. A sequence whose segments have several
/// versions is in several rows, each with its part.
#[must_use]
pub fn by_staleness(ends: Ends, sequences: &[Vec<Token>]) -> BTreeMap<u32, Spread> {
    let mut parts: BTreeMap<u32, Vec<Vec<Token>>> = BTreeMap::new();
    for sequence in sequences {
        let mut of_sequence: BTreeMap<u32, Vec<Token>> = BTreeMap::new();
        for token in sequence {
            of_sequence.entry(token.staleness).or_default().push(*token);
        }
        for (staleness, tokens) in of_sequence {
            parts.entry(staleness).or_default().push(tokens);
        }
    }
    parts
        .into_iter()
        .filter_map(|(staleness, part)| Some((staleness, spread(ends, &part)?)))
        .collect()
}

/// slime's `train_rollout_logprob_abs_diff`: the mean of |proximal - rollout| over trained tokens;
/// 0 without tokens.
#[must_use]
pub fn abs_diff(sequences: &[Vec<Token>]) -> f64 {
    let diffs: Vec<f64> =
        sequences.iter().flatten().map(|token| (token.proximal - token.rollout).abs()).collect();
    if diffs.is_empty() { 0.0 } else { mean(&diffs, |diff| diff) }
}

fn mean(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    values.iter().map(|&value| of(value)).sum::<f64>() / values.len() as f64
}

/// The smallest value that at least `percent` of 100 do not exceed. The values are sorted.
fn quantile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

/// Kish's effective sample size as a share, (Σw)² / (n Σw²), of weights given by their logarithms;
/// NaN of none. Only their differences matter, so the largest is taken as 1 and nothing overflows.
#[must_use]
pub fn effective_share(logs: &[f64]) -> f64 {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum = mean(logs, |log| libm::exp(log - largest));
    sum * sum / mean(logs, |log| libm::exp(2.0 * (log - largest)))
}

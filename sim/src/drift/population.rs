//! How one ratio is spread over many tokens, token by token, in fixed memory.

use headway_shared::metrics::Histogram;

/// Steps of the histograms per nat.
const PER_NAT: f64 = 1e9;
/// A ratio beyond e^300 weighs as much as that: its square is still a number.
const MOST: f64 = 300.0;

/// The quantiles of one ratio, by its logarithms: each within 0.79% of the observation of that rank.
///
/// Adding is O(1); memory is 60 kB, once.
#[derive(Clone, Debug, Default)]
pub struct Quantiles {
    /// Sizes of the negative logarithms, and of the others.
    below: Histogram,
    above: Histogram,
}

impl Quantiles {
    /// Adds `weight` tokens with this log-ratio.
    pub fn add(&mut self, log: f64, weight: u64) {
        let size = (log.abs() * PER_NAT) as u64;
        if log < 0.0 { &mut self.below } else { &mut self.above }.add_many(size, weight);
    }

    /// The `percent`th percentile of the ratio by nearest rank.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<f64> {
        let negative = self.below.total();
        let tokens = negative + self.above.total();
        let rank = (u128::from(tokens) * u128::from(percent)).div_ceil(100).max(1) as u64;
        let log = match rank.checked_sub(negative + 1) {
            Some(above) => self.above.ranked(above + 1)? as f64,
            None => -(self.below.ranked(negative - rank + 1)? as f64),
        };
        Some(libm::exp(log / PER_NAT))
    }
}

/// A log-ratio, and what it weighs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Log {
    /// The logarithm.
    pub log: f64,
    /// The ratio minus 1.
    pub(super) excess: f64,
}

impl Log {
    /// Of a token whose ratio has this logarithm.
    #[must_use]
    pub fn new(log: f64) -> Self {
        let excess = if log == 0.0 { 0.0 } else { libm::expm1(log.clamp(-MOST, MOST)) };
        Self { log, excess }
    }

    /// The ratio.
    #[must_use]
    pub const fn ratio(&self) -> f64 {
        1.0 + self.excess
    }
}

/// The logarithms of one ratio: exact sums, and [`Quantiles`].
#[derive(Clone, Debug, Default)]
pub struct Population {
    tokens: u64,
    sum: f64,
    squares: f64,
    sizes: f64,
    k3: f64,
    ratios: f64,
    squared_ratios: f64,
    quantiles: Quantiles,
    max: Option<f64>,
}

impl Population {
    /// Adds a token that stands for `weight` of them.
    pub fn add(&mut self, of: Log, weight: u64) {
        let (times, log, ratio) = (weight as f64, of.log, of.ratio());
        self.tokens += weight;
        self.sum += times * log;
        self.squares += times * log * log;
        self.sizes += times * log.abs();
        self.k3 += times * (of.excess - log);
        self.ratios += times * ratio;
        self.squared_ratios += times * ratio * ratio;
        self.quantiles.add(log, weight);
        self.max = Some(self.max.map_or(log, |max| max.max(log)));
    }

    /// Tokens.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The `percent`th percentile of the ratio by nearest rank.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<f64> {
        self.quantiles.percentile(percent)
    }

    /// The largest logarithm of a token that was added.
    #[must_use]
    pub const fn max_log(&self) -> Option<f64> {
        self.max
    }

    /// The mean of the logarithm's square.
    #[must_use]
    pub fn log_square(&self) -> Option<f64> {
        self.mean(self.squares)
    }

    /// The mean of the logarithm's absolute value.
    #[must_use]
    pub fn log_abs(&self) -> Option<f64> {
        self.mean(self.sizes)
    }

    /// KL(bottom, top) by k1: the mean of -log r.
    #[must_use]
    pub fn kl_k1(&self) -> Option<f64> {
        self.mean(-self.sum)
    }

    /// The same by k3: the mean of r - 1 - log r.
    #[must_use]
    pub fn kl_k3(&self) -> Option<f64> {
        self.mean(self.k3)
    }

    /// Kish's effective sample size as a share of the tokens.
    #[must_use]
    pub fn effective_share(&self) -> Option<f64> {
        let whole = self.tokens as f64 * self.squared_ratios;
        (whole > 0.0).then(|| self.ratios * self.ratios / whole)
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.tokens > 0).then(|| sum / self.tokens as f64)
    }
}

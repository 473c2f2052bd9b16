//! Log-ratios of many tokens, added up.

/// Sums over tokens, from means that several steps or replications have reported.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pool {
    /// Tokens.
    pub tokens: f64,
    log: f64,
    log_square: f64,
    ratio: f64,
    ratio_square: f64,
    /// The largest ratio.
    pub max: Option<f64>,
}

/// What was reported of some tokens, under the names that trainers use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Means {
    /// Tokens.
    pub tokens: f64,
    /// Mean of -log r.
    pub kl_k1: f64,
    /// Mean of r - 1 - log r.
    pub kl_k3: f64,
    /// Mean square of log r.
    pub log_square: f64,
    /// (Σr)² / (n Σr²).
    pub ess_token: f64,
    /// The largest r.
    pub max: Option<f64>,
}

impl Pool {
    /// Adds tokens by their means. What is no number counts as nothing.
    pub fn add(&mut self, means: &Means) {
        let Means { tokens, kl_k1, kl_k3, log_square, ess_token, max } = *means;
        let whole = [tokens, kl_k1, kl_k3, log_square, ess_token];
        if tokens <= 0.0 || whole.iter().any(|value| !value.is_finite()) {
            return;
        }
        let ratio = 1.0 + kl_k3 - kl_k1;
        self.tokens += tokens;
        self.log -= tokens * kl_k1;
        self.log_square += tokens * log_square;
        self.ratio += tokens * ratio;
        if ess_token > 0.0 {
            self.ratio_square += tokens * ratio * ratio / ess_token;
        }
        self.max = self.max.into_iter().chain(max).reduce(f64::max);
    }

    /// These tokens and those of `other`.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.tokens += other.tokens;
        self.log += other.log;
        self.log_square += other.log_square;
        self.ratio += other.ratio;
        self.ratio_square += other.ratio_square;
        self.max = self.max.into_iter().chain(other.max).reduce(f64::max);
        self
    }

    /// These tokens without those of `part`, which are among them; the largest ratio stays.
    #[must_use]
    pub fn without(mut self, part: &Self) -> Self {
        self.tokens = (self.tokens - part.tokens).max(0.0);
        self.log -= part.log;
        self.log_square = (self.log_square - part.log_square).max(0.0);
        self.ratio -= part.ratio;
        self.ratio_square = (self.ratio_square - part.ratio_square).max(0.0);
        self
    }

    /// The mean square of the logarithm: spread². `None` without tokens.
    #[must_use]
    pub fn square(&self) -> Option<f64> {
        self.mean(self.log_square)
    }

    /// The mean of the logarithm.
    #[must_use]
    pub fn log_mean(&self) -> Option<f64> {
        self.mean(self.log)
    }

    /// The mean of the ratio: 1 for two policies, over tokens that the lower one has drawn.
    #[must_use]
    pub fn ratio_mean(&self) -> Option<f64> {
        self.mean(self.ratio)
    }

    /// The standard error of [`ratio_mean`](Self::ratio_mean) over so many independent tokens.
    #[must_use]
    pub fn ratio_error(&self, independent: f64) -> Option<f64> {
        let (mean, square) = (self.ratio_mean()?, self.mean(self.ratio_square)?);
        let variance = (square - mean * mean).max(0.0);
        (independent > 0.0).then(|| libm::sqrt(variance / independent))
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.tokens > 0.0).then(|| sum / self.tokens)
    }
}

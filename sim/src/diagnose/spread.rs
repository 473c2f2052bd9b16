//! How far ratios are from 1, and which part of that is there at staleness 0.

use super::evidence::Evidence;
use super::pool::Pool;
use super::ratios::Ratios;
use super::{
    CONTINUED, ENOUGH_SAMPLES, ENOUGH_TOKENS, FLOOR, FLOOR_IN_PROCESS, MOST, OFF_ONE,
    STANDARD_ERRORS, WIDE,
};

/// Tokens of a sample at most that tell independently of each other; a simulation draws so many.
const OF_A_SAMPLE: f64 = 16.0;
/// Mean square, in nats², up to which two moments of the logarithm of older tokens tell their mean
/// ratio: the third one grows with age.
const SMALL: f64 = 0.3;
/// Of these, one in so many counts: neighbours are alike.
const ALIKE: f64 = 4.0;

/// What the spread of learner/rollout consists of. Squares are mean squares of its logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Of all tokens, in nats².
    pub all: f64,
    /// The widest 16 steps, in nats²; of a simulation as `all`.
    pub widest: f64,
    /// At staleness 0, in nats².
    pub floor: f64,
    /// Where `floor` comes from.
    pub floor_from: Floor,
    /// What the spread at staleness 0 may be, in nats.
    pub allowed: f64,
    /// The mean ratio, and how far it is from 1, where there is a defect at staleness 0.
    pub mean: Option<Mean>,
    /// Share of the token-weighted staleness whose versions passed while the sample's own turn was
    /// being generated.
    pub within: Option<f64>,
    /// Mean squares at staleness 0 of tokens that were generated behind those of another version,
    /// and of the others, in nats².
    pub continued: Option<(f64, f64)>,
}

/// Where the spread at staleness 0 comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// Tokens of staleness 0 were there, or the lag probe scored tokens by their own version.
    Measured,
    /// A straight line through the squares of older tokens.
    Extrapolated,
    /// There was but one staleness: it is taken as what is allowed.
    Assumed,
}

/// The mean of the ratios of many tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean ratio.
    pub ratio: f64,
    /// The mean of its logarithm, in nats.
    pub log: f64,
    /// How far the mean is from 1, as a share of `1 - exp(-spread²)`: by the ratios, or by the first
    /// two moments of their logarithms, whichever says more.
    pub off: f64,
    /// In how many standard errors.
    pub errors: f64,
}

impl Spread {
    /// `None`: the run has no ratios.
    #[must_use]
    pub fn of(evidence: &Evidence) -> Option<Self> {
        let ratios = evidence.ratios.as_ref()?;
        let allowed = if evidence.is_in_process() { FLOOR_IN_PROCESS } else { FLOOR };
        let all = ratios.all.square()?;
        let per_sample = evidence.tokens_per_sample();
        let (floor, floor_from) = floor(ratios, allowed, per_sample);
        let mut spread = Self {
            all,
            widest: ratios.widest,
            floor,
            floor_from,
            allowed,
            mean: None,
            within: within(evidence),
            continued: continued(ratios),
        };
        if spread.may_be_labels() {
            let measured = floor_from == Floor::Measured;
            let same = measured.then_some((&ratios.same_version, 1.0));
            // Older tokens say as much, where age does not drown it.
            let all = (!measured || spread.grown() < MOST).then_some((&ratios.all, SMALL));
            let pools = [same, all].into_iter().flatten();
            let means = pools.filter_map(|(pool, small)| Mean::of(pool, per_sample, small));
            spread.mean = means
                .reduce(|one, other| if !one.is_off() && other.is_off() { other } else { one });
        }
        Some(spread)
    }

    /// The share of the square that is not there at staleness 0.
    #[must_use]
    pub fn grown(&self) -> f64 {
        if self.all > 0.0 { (1.0 - self.floor / self.all).max(0.0) } else { 0.0 }
    }

    /// The ratios of 16 steps in a row are far from 1.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.widest >= WIDE * WIDE
    }

    /// At staleness 0 there is more than two engines of one precision differ by.
    #[must_use]
    pub fn has_defect(&self) -> bool {
        let sure = self.floor_from == Floor::Measured || self.floor >= MOST * self.all;
        sure && self.floor_from != Floor::Assumed && self.floor > self.allowed * self.allowed
    }

    /// Wrong labels could be behind it: at staleness 0 there is a defect, or nothing was measured
    /// there, and the mean of the ratios has to tell.
    #[must_use]
    pub fn may_be_labels(&self) -> bool {
        match self.floor_from {
            Floor::Measured => self.has_defect(),
            _ => self.all > self.allowed * self.allowed,
        }
    }

    /// The defect is one of tokens that were generated behind those of another version.
    #[must_use]
    pub fn is_of_continued(&self) -> bool {
        self.continued.is_some_and(|(continued, begun)| {
            continued > self.allowed * self.allowed && continued >= CONTINUED * begun
        })
    }
}

impl Mean {
    /// `small`: the largest mean square for which two moments of the logarithm tell the mean.
    fn of(pool: &Pool, tokens_per_sample: f64, small: f64) -> Option<Self> {
        let independent =
            pool.tokens / tokens_per_sample * tokens_per_sample.min(OF_A_SAMPLE) / ALIKE;
        let (ratio, log, square) = (pool.ratio_mean()?, pool.log_mean()?, pool.square()?);
        let whole = -libm::expm1(-square);
        if independent < 2.0 || whole <= 0.0 {
            return None;
        }
        // To second order in the logarithm the mean ratio is 1 + log + square / 2.
        let error = pool.ratio_error(independent)?;
        let by_ratio = (ratio - 1.0, error);
        let by_log = (log + 0.5 * square, libm::sqrt(square / independent));
        let of = |(off, error): (f64, f64)| Self {
            ratio,
            log,
            off: off / whole,
            errors: if error > 0.0 { off.abs() / error } else { 0.0 },
        };
        let (by_ratio, by_log) = (of(by_ratio), of(by_log));
        let small = square < small;
        Some(if !by_ratio.is_off() && small && by_log.is_off() { by_log } else { by_ratio })
    }

    /// No two policies have such a ratio.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.off.abs() >= OFF_ONE && self.errors >= STANDARD_ERRORS
    }
}

fn floor(ratios: &Ratios, allowed: f64, per_sample: f64) -> (f64, Floor) {
    let same = ratios.same_version;
    let enough = |pool: &Pool| pool.tokens >= ENOUGH_TOKENS.max(ENOUGH_SAMPLES * per_sample);
    match (same.square().filter(|_| enough(&same)), intercept(ratios, enough)) {
        (Some(square), _) => (square, Floor::Measured),
        (None, Some(square)) => (square, Floor::Extrapolated),
        (None, None) => (allowed * allowed, Floor::Assumed),
    }
}

/// The squares' straight line over staleness at 0, weighed by tokens; not below 0.
fn intercept(ratios: &Ratios, enough: impl Fn(&Pool) -> bool) -> Option<f64> {
    let points = || {
        let rows = ratios.by_staleness.iter().filter(|(_, pool)| enough(pool));
        rows.filter_map(|(&staleness, pool)| {
            Some((f64::from(staleness), pool.square()?, pool.tokens))
        })
    };
    let tokens: f64 = points().map(|(.., weight)| weight).sum();
    let mean =
        |of: fn(f64, f64) -> f64| points().map(|(x, y, w)| w * of(x, y)).sum::<f64>() / tokens;
    let (x, y) = (mean(|x, _| x), mean(|_, y| y));
    let spread = mean(|x, _| x * x) - x * x;
    if tokens <= 0.0 || spread <= 1e-9 {
        return None;
    }
    let slope = (mean(|x, y| x * y) - x * y) / spread;
    Some((y - slope.max(0.0) * x).max(0.0))
}

/// Token-weighted staleness less that of the last token: what passed while a sample was generated.
fn within(evidence: &Evidence) -> Option<f64> {
    let (token, tail) =
        (evidence.get("staleness_token_mean")?, evidence.get("staleness_tail_mean")?);
    (token > 0.0).then(|| ((token - tail) / token).clamp(0.0, 1.0))
}

fn continued(ratios: &Ratios) -> Option<(f64, f64)> {
    let enough = |pool: &Pool| pool.square().filter(|_| pool.tokens >= ENOUGH_TOKENS);
    Some((enough(&ratios.continued)?, enough(&ratios.begun)?))
}

//! Laws fitted to measured numbers, each parameter with its 90% interval.
//!
//! Nothing here knows what was measured. Estimates are of maximum likelihood. Intervals are exact
//! where an exact one exists; the functions of the families say which they are.
//!
//! # Which family
//!
//! Each family that can have the values is fitted, and compared by the Bayesian information
//! criterion, `parameters * log(count) - 2 log likelihood` (Schwarz, Estimating the dimension of a
//! model, 1978). AIC would call exponential times a gamma law in one of six cases, whatever their
//! number; by BIC that becomes rare as the values become many, and between families of as many
//! parameters the two are the same.
//!
//! A family is *clearly rejected* if both its Kolmogorov distance is above [`MOST_DISTANCE`] and its
//! p-value below [`LEAST_P`]. With thousands of values the p-value alone rejects everything that was
//! ever measured; with few the distance alone is chance. The best family that is not clearly rejected
//! is taken; where there is none, the values themselves are: [`Family::Empirical`].
//!
//! # Counts
//!
//! The simulated world draws a count from a continuous law and rounds it. So the likelihood of a count
//! k is the law's probability between k - 1/2 and k + 1/2 (of 0: below 1/2), and where the world
//! raises or cuts counts ([`Limits`]) all that lies beyond. For counts the column of values is a
//! candidate of the same likelihood, with a parameter for each different value but one: two or three
//! different counts need no law.

mod chosen;
mod counts;
mod distance;
mod drift;
mod law;
mod maximum;
mod proportion;
mod regression;
mod sample;
mod times;

pub use chosen::{Candidate, Fit, LEAST_P, Limits, MOST_DISTANCE, fit, fit_family, fit_within};
pub use drift::{DriftFit, ProbePoint, WindowFit, drift, step_spread};
pub(super) use maximum::maximum;
pub use proportion::{rate, share};
pub use regression::{Line, Plane, line, plane};

use crate::kernel::math::{normal_quantile, student_t_quantile};

/// An estimate with its 90% interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// The estimate; within the interval.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The level of all intervals.
pub const LEVEL: f64 = 0.9;
/// Above this quantile lies half of what an interval leaves out.
const UPPER: f64 = 0.5 + 0.5 * LEVEL;
const LOWER: f64 = 1.0 - UPPER;

impl Parameter {
    /// An interval that holds its value, whatever rounding did.
    fn new(value: f64, low: f64, high: f64) -> Self {
        Self { value, low: low.min(value), high: high.max(value) }
    }

    /// A known number.
    const fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// Normal on the scale of the logarithm: `value` times and by `e^width`.
    fn times(value: f64, width: f64) -> Self {
        Self::new(value, value * libm::exp(-width), value * libm::exp(width))
    }

    /// Neither end below 0.
    fn not_negative(self) -> Self {
        let Self { value, low, high } = self;
        Self { value: value.max(0.0), low: low.max(0.0), high: high.max(0.0) }
    }

    /// Whether a number is in the interval, ends included.
    #[must_use]
    pub fn holds(&self, truth: f64) -> bool {
        self.low <= truth && truth <= self.high
    }
}

/// A family of laws, as `kind` in a scenario names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Always the same.
    Constant,
    /// Between two ends, each value as likely.
    Uniform,
    /// Without memory.
    Exponential,
    /// The logarithm is normal.
    LogNormal,
    /// By shape and mean.
    Gamma,
    /// A heavy tail above a smallest value.
    Pareto,
    /// The measured values themselves.
    Empirical,
}

impl Family {
    /// The families that have parameters, in the order in which a tie is decided.
    pub const LAWS: [Self; 6] = [
        Self::Constant,
        Self::Exponential,
        Self::Uniform,
        Self::LogNormal,
        Self::Gamma,
        Self::Pareto,
    ];

    /// Its word in a scenario.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Uniform => "uniform",
            Self::Exponential => "exponential",
            Self::LogNormal => "lognormal",
            Self::Gamma => "gamma",
            Self::Pareto => "pareto",
            Self::Empirical => "empirical",
        }
    }

    /// Free parameters.
    const fn parameters(self) -> u32 {
        match self {
            Self::Constant | Self::Exponential => 1,
            _ => 2,
        }
    }
}

/// What values are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Times in seconds: a scenario's keys end in `_sec`.
    Seconds,
    /// Tokens, turns: whole numbers.
    Count,
}

/// Why nothing was fitted.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Too few values to say anything.
    #[error("{found} {of}, of which at least {needed} are needed")]
    TooFew {
        /// What there is too little of.
        of: &'static str,
        /// How many there are.
        found: usize,
        /// How many there must be.
        needed: usize,
    },
    /// A value that is no time, size or weight: infinite, no number, or negative.
    #[error("value {index} is {value}, which is no time, size or weight")]
    NotASize {
        /// Its place, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A count that is not whole.
    #[error("value {index} is {value}, but a count is a whole number")]
    NotWhole {
        /// Its place, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// Columns of different lengths.
    #[error("{left} values stand beside {right}")]
    Uneven {
        /// Values of the first column.
        left: usize,
        /// Values of the other.
        right: usize,
    },
    /// The family cannot have these values.
    #[error("no {family} law has these values: {why}")]
    Impossible {
        /// The family, by its word.
        family: &'static str,
        /// What is in the way.
        why: &'static str,
    },
    /// What is measured does not tell the parameters apart.
    #[error("{0}")]
    Undetermined(&'static str),
}

/// Freedom beyond this is told from the normal law by a series.
const LARGE: f64 = 1_000.0;

/// The upper quantile of Student's t for the level of the intervals; `df` at least 1.
///
/// Above 1,000 degrees by the expansion of Abramowitz and Stegun, 26.7.5, to 1e-11.
fn t_upper(df: f64) -> f64 {
    if df <= LARGE {
        return student_t_quantile(UPPER, df.max(1.0) as u32);
    }
    let z = normal_quantile(UPPER);
    let square = z * z;
    let first = z * (square + 1.0) / 4.0;
    let second = z * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let third = z * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    z + (first + (second + third / df) / df) / df
}

/// How far twice the logarithm of a likelihood may fall within the interval of one parameter, of
/// `count` values and `others` estimated beside: exact for the mean of a normal law.
fn likelihood_drop(count: f64, others: f64) -> f64 {
    let df = (count - others).max(1.0);
    let t = t_upper(df);
    count * libm::log1p(t * t / df)
}

#[cfg(test)]
mod tests;

//! Distributions of times (seconds) and sizes (tokens, counts): never negative, always finite.

use std::sync::Arc;

use super::math::normal_quantile;
use super::random::Stream;

/// Larger than any time in seconds or size in tokens, small enough that no law overflows.
const LARGEST: f64 = 1e15;
const LARGEST_SIGMA: f64 = 10.0;

/// A parameter outside its range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("`{parameter}` is {value}, but must be {requirement}")]
pub struct DistributionError {
    /// The parameter, as its constructor calls it.
    pub parameter: &'static str,
    /// The value it has.
    pub value: f64,
    /// What it must be.
    pub requirement: &'static str,
}

/// A distribution of a time or a size.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution(Law);

#[derive(Clone, Debug, PartialEq)]
enum Law {
    Constant { value: f64 },
    Uniform { min: f64, max: f64 },
    Exponential { mean: f64 },
    LogNormal { mu: f64, sigma: f64 },
    Gamma { shape: f64, scale: f64 },
    Pareto { min: f64, alpha: f64 },
    Empirical { values: Arc<[f64]> },
    Replay { values: Arc<[f64]> },
}

fn require(
    ok: bool,
    parameter: &'static str,
    value: f64,
    requirement: &'static str,
) -> Result<(), DistributionError> {
    if ok { Ok(()) } else { Err(DistributionError { parameter, value, requirement }) }
}

fn require_size(parameter: &'static str, value: f64) -> Result<(), DistributionError> {
    require((0.0..=LARGEST).contains(&value), parameter, value, "from 0 to 1e15")
}

fn require_positive(parameter: &'static str, value: f64) -> Result<(), DistributionError> {
    require(value > 0.0 && value <= LARGEST, parameter, value, "above 0, and at most 1e15")
}

fn require_sigma(value: f64) -> Result<(), DistributionError> {
    require((0.0..=LARGEST_SIGMA).contains(&value), "sigma", value, "from 0 to 10")
}

fn require_values(values: &[f64]) -> Result<(), DistributionError> {
    require(!values.is_empty(), "values", 0.0, "at least one row")?;
    values.iter().try_for_each(|&value| require_size("values", value))
}

impl Distribution {
    /// Always `value`, from 0 to 1e15.
    ///
    /// # Errors
    /// If the value is outside its range (as for every constructor).
    pub fn constant(value: f64) -> Result<Self, DistributionError> {
        require_size("value", value)?;
        Ok(Self(Law::Constant { value }))
    }

    /// Uniform between `min` and `max`.
    ///
    /// # Errors
    /// If a bound is outside 0 to 1e15, or `max` is below `min`.
    pub fn uniform(min: f64, max: f64) -> Result<Self, DistributionError> {
        require_size("min", min)?;
        require_size("max", max)?;
        require(min <= max, "max", max, "at least `min`")?;
        Ok(Self(Law::Uniform { min, max }))
    }

    /// Exponential.
    ///
    /// # Errors
    /// If the mean is not above 0, or above 1e15.
    pub fn exponential(mean: f64) -> Result<Self, DistributionError> {
        require_positive("mean", mean)?;
        Ok(Self(Law::Exponential { mean }))
    }

    /// Log-normal with this median and standard deviation of the logarithm.
    ///
    /// # Errors
    /// If the median is not above 0, or `sigma` is outside 0 to 10.
    pub fn lognormal_median_sigma(median: f64, sigma: f64) -> Result<Self, DistributionError> {
        require_positive("median", median)?;
        require_sigma(sigma)?;
        Ok(Self(Law::LogNormal { mu: libm::log(median), sigma }))
    }

    /// Log-normal with this median and 99th percentile.
    ///
    /// # Errors
    /// If the median is not above 0, or `p99` is below it.
    pub fn lognormal_median_p99(median: f64, p99: f64) -> Result<Self, DistributionError> {
        require_positive("median", median)?;
        require_positive("p99", p99)?;
        require(p99 >= median, "p99", p99, "at least `median`")?;
        let sigma = libm::log(p99 / median) / normal_quantile(0.99);
        require(sigma <= LARGEST_SIGMA, "p99", p99, "closer to `median`")?;
        Self::lognormal_median_sigma(median, sigma)
    }

    /// Log-normal with this mean and standard deviation of the logarithm.
    ///
    /// # Errors
    /// If the mean is not above 0, or `sigma` is outside 0 to 10.
    pub fn lognormal_mean_sigma(mean: f64, sigma: f64) -> Result<Self, DistributionError> {
        require_positive("mean", mean)?;
        require_sigma(sigma)?;
        Ok(Self(Law::LogNormal { mu: libm::log(mean) - 0.5 * sigma * sigma, sigma }))
    }

    /// Gamma with this shape and mean; the coefficient of variation is `1 / sqrt(shape)`.
    ///
    /// # Errors
    /// If the shape is outside 0.01 to 1e6, or the mean is not above 0.
    pub fn gamma(shape: f64, mean: f64) -> Result<Self, DistributionError> {
        require((0.01..=1e6).contains(&shape), "shape", shape, "from 0.01 to 1e6")?;
        require_positive("mean", mean)?;
        Ok(Self(Law::Gamma { shape, scale: mean / shape }))
    }

    /// Pareto: `P(X > x) = (min / x)^alpha` for x above `min`.
    ///
    /// # Errors
    /// If `min` is not above 0, or `alpha` is not above 1 (it would have no mean).
    pub fn pareto(min: f64, alpha: f64) -> Result<Self, DistributionError> {
        require_positive("min", min)?;
        require(alpha > 1.0 && alpha <= LARGEST, "alpha", alpha, "above 1, so that it has a mean")?;
        Ok(Self(Law::Pareto { min, alpha }))
    }

    /// A column of measured values, each as likely as the others.
    ///
    /// # Errors
    /// If there is no value, or one is outside 0 to 1e15.
    pub fn empirical(values: Arc<[f64]>) -> Result<Self, DistributionError> {
        require_values(&values)?;
        Ok(Self(Law::Empirical { values }))
    }

    /// A column of recorded values: the k-th entity has row k, and after the last row the column
    /// begins again.
    ///
    /// # Errors
    /// If there is no value, or one is outside 0 to 1e15.
    pub fn replay(values: Arc<[f64]>) -> Result<Self, DistributionError> {
        require_values(&values)?;
        Ok(Self(Law::Replay { values }))
    }

    /// The value of the entity with this ordinal, drawn from its stream. A replayed value depends
    /// on the ordinal only, a constant one on nothing; neither draws.
    pub fn sample(&self, stream: &mut Stream, ordinal: u64) -> f64 {
        match &self.0 {
            Law::Constant { value } => *value,
            Law::Uniform { min, max } => min + (max - min) * stream.uniform(),
            Law::Exponential { mean } => mean * stream.exponential(),
            Law::LogNormal { mu, sigma } => libm::exp(mu + sigma * stream.normal()),
            Law::Gamma { shape, scale } => scale * stream.gamma(*shape),
            Law::Pareto { min, alpha } => min * libm::pow(stream.uniform(), -1.0 / alpha),
            Law::Empirical { values } => values[stream.below(values.len() as u64) as usize],
            Law::Replay { values } => values[(ordinal % values.len() as u64) as usize],
        }
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match &self.0 {
            Law::Constant { value } => *value,
            Law::Uniform { min, max } => 0.5 * (min + max),
            Law::Exponential { mean } => *mean,
            Law::LogNormal { mu, sigma } => libm::exp(mu + 0.5 * sigma * sigma),
            Law::Gamma { shape, scale } => shape * scale,
            Law::Pareto { min, alpha } => min * alpha / (alpha - 1.0),
            Law::Empirical { values } | Law::Replay { values } => {
                values.iter().fold(0.0, |sum, value| sum + value) / values.len() as f64
            }
        }
    }

    /// No value is below this.
    #[must_use]
    pub fn min(&self) -> f64 {
        match &self.0 {
            Law::Constant { value } => *value,
            Law::Uniform { min, .. } | Law::Pareto { min, .. } => *min,
            Law::LogNormal { mu, sigma } if *sigma == 0.0 => libm::exp(*mu),
            Law::Exponential { .. } | Law::LogNormal { .. } | Law::Gamma { .. } => 0.0,
            Law::Empirical { values } | Law::Replay { values } => {
                values.iter().copied().fold(f64::INFINITY, f64::min)
            }
        }
    }

    /// No value is above this; infinite where the law has no bound.
    #[must_use]
    pub fn max(&self) -> f64 {
        match &self.0 {
            Law::Constant { value } => *value,
            Law::Uniform { max, .. } => *max,
            Law::LogNormal { mu, sigma } if *sigma == 0.0 => libm::exp(*mu),
            Law::Exponential { .. }
            | Law::LogNormal { .. }
            | Law::Gamma { .. }
            | Law::Pareto { .. } => f64::INFINITY,
            Law::Empirical { values } | Law::Replay { values } => {
                values.iter().copied().fold(0.0, f64::max)
            }
        }
    }
}

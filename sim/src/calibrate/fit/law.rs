//! A law with its parameters: distribution and likelihood.

use super::Family;
use crate::kernel::math::{gamma_above, gamma_below, normal_below};

/// A law, as [`crate::kernel::sampler::Distribution`] draws it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Law {
    Uniform { min: f64, max: f64 },
    Exponential { mean: f64 },
    LogNormal { mu: f64, sigma: f64 },
    Gamma { shape: f64, mean: f64 },
    Pareto { min: f64, alpha: f64 },
}

impl Law {
    pub(super) const fn family(&self) -> Family {
        match self {
            Self::Uniform { .. } => Family::Uniform,
            Self::Exponential { .. } => Family::Exponential,
            Self::LogNormal { .. } => Family::LogNormal,
            Self::Gamma { .. } => Family::Gamma,
            Self::Pareto { .. } => Family::Pareto,
        }
    }

    /// `P(X <= x)`.
    pub(super) fn below(&self, x: f64) -> f64 {
        match *self {
            Self::Uniform { min, max } => ((x - min) / (max - min)).clamp(0.0, 1.0),
            _ if x <= 0.0 => 0.0,
            Self::Exponential { mean } => -libm::expm1(-x / mean),
            Self::LogNormal { mu, sigma } => normal_below((libm::log(x) - mu) / sigma),
            Self::Gamma { shape, mean } => gamma_below(shape, x * shape / mean),
            Self::Pareto { min, alpha } if x > min => 1.0 - libm::pow(min / x, alpha),
            Self::Pareto { .. } => 0.0,
        }
    }

    /// `P(X > x)`, exact where it is small.
    pub(super) fn above(&self, x: f64) -> f64 {
        match *self {
            Self::Uniform { .. } => 1.0 - self.below(x),
            _ if x <= 0.0 => 1.0,
            Self::Exponential { mean } => libm::exp(-x / mean),
            Self::LogNormal { mu, sigma } => normal_below((mu - libm::log(x)) / sigma),
            Self::Gamma { shape, mean } => gamma_above(shape, x * shape / mean),
            Self::Pareto { min, alpha } if x > min => libm::pow(min / x, alpha),
            Self::Pareto { .. } => 1.0,
        }
    }

    /// `P(low < X <= high)`, by the tail that loses less.
    pub(super) fn within(&self, low: f64, high: f64) -> f64 {
        let below = self.below(low);
        if below > 0.5 { self.above(low) - self.above(high) } else { self.below(high) - below }
    }
}

//! Values in order, with the sums that estimates need.

use super::{FitError, Unit};

/// As large as anything that a scenario may say.
const LARGEST: f64 = 1e15;
/// Times are recorded in nanoseconds; a difference of two may be one off.
const TIME_STEP: f64 = 1e-9;
/// Times that differ by less than this part of them are the same.
const SAME: f64 = 1e-9;

/// Checked values.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// In increasing order.
    pub(super) sorted: Vec<f64>,
    pub(super) count: f64,
    pub(super) mean: f64,
    /// The mean of the logarithms; `None` if a value is 0.
    pub(super) log_mean: Option<f64>,
    /// The sum of squares of the logarithms about their mean.
    pub(super) log_squares: f64,
}

impl Sample {
    pub(super) fn new(values: &[f64], unit: Unit) -> Result<Self, FitError> {
        for (index, &value) in values.iter().enumerate() {
            if !(0.0..=LARGEST).contains(&value) {
                return Err(FitError::NotASize { index, value });
            }
            if unit == Unit::Count && value.trunc() != value {
                return Err(FitError::NotWhole { index, value });
            }
        }
        if values.is_empty() {
            return Err(FitError::TooFew { of: "values", found: 0, needed: 1 });
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len() as f64;
        let average = |of: &dyn Fn(f64) -> f64| {
            sorted.iter().fold(0.0, |sum, &value| sum + of(value)) / count
        };
        let mean = average(&|value| value);
        let log_mean = (sorted[0] > 0.0).then(|| average(&libm::log));
        let log_squares = log_mean.map_or(0.0, |log_mean| {
            count
                * average(&|value| {
                    let off = libm::log(value) - log_mean;
                    off * off
                })
        });
        Ok(Self { sorted, count, mean, log_mean, log_squares })
    }

    pub(super) fn min(&self) -> f64 {
        self.sorted[0]
    }

    pub(super) fn max(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }

    /// What counts as no difference.
    pub(super) fn resolution(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Seconds => (2.0 * TIME_STEP).max(SAME * self.max()),
            Unit::Count => 0.0,
        }
    }

    pub(super) fn is_constant(&self, unit: Unit) -> bool {
        self.max() - self.min() <= self.resolution(unit)
    }

    /// The variance, divided by the count less one; 0 of a single value.
    pub(super) fn variance(&self) -> f64 {
        let squares = self.sorted.iter().fold(0.0, |sum, value| {
            let off = value - self.mean;
            sum + off * off
        });
        squares / (self.count - 1.0).max(1.0)
    }
}

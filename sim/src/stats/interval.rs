//! Means over independent replications, with their confidence intervals.

use crate::kernel::math::student_t_quantile;

/// A mean with the half-width of its 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the length of the interval, by Student's t; `None` from a single value, which says
    /// nothing of its spread.
    pub half_width: Option<f64>,
    /// The number of values.
    pub count: u32,
}

impl Estimate {
    /// Whether the interval leaves 0 out: a difference that is more than chance.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        self.half_width.is_some_and(|half_width| self.mean.abs() > half_width)
    }
}

/// The mean; `None` of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    let sum = values.iter().fold(0.0, |sum, value| sum + value);
    (!values.is_empty()).then(|| sum / values.len() as f64)
}

/// The unbiased variance (divided by n - 1); `None` of fewer than two values.
#[must_use]
pub fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares = values.iter().fold(0.0, |sum, value| sum + (value - mean) * (value - mean));
    (values.len() > 1).then(|| squares / (values.len() - 1) as f64)
}

/// Half the width of the interval, around the mean, in which one more value lies with this
/// probability (Student's t; the values are normal and independent); `None` of fewer than two.
#[must_use]
pub fn half_width_of_one_more(values: &[f64], coverage: f64) -> Option<f64> {
    let variance = variance(values)?;
    let count = u32::try_from(values.len()).ok()?;
    let t = student_t_quantile(0.5 + 0.5 * coverage, count - 1);
    Some(t * (variance * (1.0 + 1.0 / f64::from(count))).sqrt())
}

/// The mean of independent replications with its interval; `None` of nothing.
#[must_use]
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let count = u32::try_from(values.len()).ok()?;
    let half_width = variance(values).map(|variance| {
        student_t_quantile(0.975, count - 1) * (variance / f64::from(count)).sqrt()
    });
    Some(Estimate { mean: mean(values)?, half_width, count })
}

/// The mean of `to - from` over pairs that saw the same random numbers, with its interval: what
/// both have in common drops out. `None` without pairs, or if their numbers differ.
#[must_use]
pub fn paired_difference(from: &[f64], to: &[f64]) -> Option<Estimate> {
    if from.len() != to.len() {
        return None;
    }
    let differences: Vec<f64> = from.iter().zip(to).map(|(from, to)| to - from).collect();
    estimate(&differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_as_in_the_textbook() {
        // Mean 5, variance 32/7, t(7) = 2.3646: half-width 1.7875.
        let found = estimate(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((found.mean, found.count), (5.0, 8));
        assert!((found.half_width.unwrap() - 1.787_487_9).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn one_value_has_a_mean_and_no_interval() {
        let alone = Estimate { mean: 3.0, half_width: None, count: 1 };
        assert_eq!(estimate(&[3.0]), Some(alone));
        assert!(!alone.excludes_zero());
        assert_eq!(estimate(&[]), None);
    }

    #[test]
    fn pairs_find_a_difference_that_their_spread_would_hide() {
        let from = [10.0, 20.0, 30.0, 40.0];
        let to = [11.0, 21.2, 30.8, 41.0];
        let difference = paired_difference(&from, &to).unwrap();
        assert!((difference.mean - 1.0).abs() < 1e-12);
        assert!(difference.excludes_zero());
        assert!(estimate(&to).unwrap().half_width > Some(10.0));
        assert_eq!(paired_difference(&from, &to[1..]), None);
    }
}

//! Intervals of estimates whose parts depend on each other.

use super::fit::Parameter;

/// The interval of an estimate from what it would be without one block after the other
/// (delete-one-block jackknife: Quenouille 1956, Tukey 1958): 1.73 standard errors, Student's t with
/// 19 degrees of freedom. Never below 0.
pub(super) fn interval(value: f64, without: impl Iterator<Item = f64>) -> Parameter {
    let without: Vec<f64> = without.collect();
    let count = without.len() as f64;
    if without.len() < 2 {
        return Parameter { value, low: value, high: value };
    }
    let mean = without.iter().fold(0.0, |sum, value| sum + value) / count;
    let squares = without.iter().fold(0.0, |sum, value| sum + (value - mean) * (value - mean));
    let half = 1.729 * libm::sqrt(squares * (count - 1.0) / count);
    Parameter { value, low: (value - half).max(0.0).min(value), high: value + half }
}

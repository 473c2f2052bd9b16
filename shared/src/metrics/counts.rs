//! Exact counts of small whole numbers.

use serde::{Deserialize, Serialize};

/// Values from here on share one bin, so that a broken record cannot ask for all memory.
const BINS: usize = 1 << 16;

/// How often each value was seen: exact for values below 65,536; larger ones share the last bin,
/// while their sum and maximum stay exact.
///
/// Adding is O(1), and allocates only when a value is larger than every one before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    bins: Vec<u64>,
    total: u64,
    sum: u128,
    max: u64,
}

impl Counts {
    /// One more observation of `value`.
    pub fn add(&mut self, value: u64) {
        let bin = bin_of(value);
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += 1;
        self.total += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// Adds all observations of `other`, as of another replication.
    pub fn merge(&mut self, other: &Self) {
        if other.bins.len() > self.bins.len() {
            self.bins.resize(other.bins.len(), 0);
        }
        self.bins.iter_mut().zip(&other.bins).for_each(|(bin, more)| *bin += more);
        self.total += other.total;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Forgets everything and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.bins.clear();
        (self.total, self.sum, self.max) = (0, 0, 0);
    }

    /// How many observations there are.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The sum of all observations.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The largest observation; `None` without one.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.total > 0).then_some(self.max)
    }

    /// The arithmetic mean; `None` without an observation.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum as f64 / self.total as f64)
    }

    /// The `percent`th percentile by nearest rank: the smallest value that at least `percent` of
    /// a hundred observations do not exceed. `None` without an observation.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let bin = nearest_rank(&self.bins, self.total, percent)?;
        Some(if bin == BINS - 1 { self.max } else { bin as u64 })
    }

    /// Every value from 0 to the largest, with how often it was seen.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0..).zip(self.bins.iter().copied())
    }
}

fn bin_of(value: u64) -> usize {
    usize::try_from(value).map_or(BINS - 1, |value| value.min(BINS - 1))
}

/// The bin that holds the observation of rank ceil(percent/100 * total), counted from 1.
pub(super) fn nearest_rank(bins: &[u64], total: u64, percent: u64) -> Option<usize> {
    let rank = (u128::from(total) * u128::from(percent)).div_ceil(100).max(1);
    let mut seen = 0_u128;
    bins.iter().position(|&count| {
        seen += u128::from(count);
        seen >= rank
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_observed_values() {
        let mut counts = Counts::default();
        assert_eq!((counts.percentile(50), counts.mean(), counts.max()), (None, None, None));
        for value in [0, 0, 1, 1, 1, 2, 2, 3, 3, 9] {
            counts.add(value);
        }
        assert_eq!(counts.percentile(0), Some(0));
        assert_eq!(counts.percentile(20), Some(0));
        assert_eq!(counts.percentile(21), Some(1));
        assert_eq!(counts.percentile(50), Some(1));
        assert_eq!(counts.percentile(90), Some(3));
        assert_eq!(counts.percentile(91), Some(9));
        assert_eq!(counts.max(), Some(9));
        assert_eq!(counts.mean(), Some(2.2));
    }

    #[test]
    fn merged_counts_are_those_of_all_observations() {
        let (mut left, mut right, mut all) = <(Counts, Counts, Counts)>::default();
        for value in [1, 5, 5] {
            left.add(value);
            all.add(value);
        }
        for value in [0, 9] {
            right.add(value);
            all.add(value);
        }
        left.merge(&right);
        assert_eq!(left, all);
    }

    #[test]
    fn an_absurd_value_takes_bounded_memory() {
        let mut counts = Counts::default();
        counts.add(u64::MAX);
        assert_eq!(counts.percentile(50), Some(u64::MAX));
        assert_eq!(counts.iter().count(), BINS);
    }
}

//! A streaming histogram of whole numbers of any size, in fixed memory.

use super::counts::nearest_rank;

/// Bins per doubling, as a power of two.
const BITS: u32 = 6;
const PER_DOUBLING: usize = 1 << BITS;
const BINS: usize = PER_DOUBLING * (64 - BITS as usize + 1);

/// A log-linear histogram of `u64` values (as HdrHistogram's): values below 64 have a bin each;
/// above, every doubling is split into 64 bins of equal width.
///
/// A [percentile](Self::percentile) is the middle of its bin. A bin is at most 1/64 of its lower
/// end wide, so the answer is within 1/128 (0.79%) of the observation of that rank, and exact
/// below 64. Count, sum and maximum are exact. Adding is O(1); memory is 30 kB, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    bins: Box<[u64]>,
    total: u64,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { bins: vec![0; BINS].into(), total: 0, sum: 0, max: 0 }
    }
}

impl Histogram {
    /// One more observation of `value`.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.add_many(value, 1);
    }

    /// `count` more observations of `value`.
    #[inline]
    pub fn add_many(&mut self, value: u64, count: u64) {
        self.bins[bin_of(value)] += count;
        self.total += count;
        self.sum += u128::from(value) * u128::from(count);
        if count > 0 {
            self.max = self.max.max(value);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.bins.fill(0);
        (self.total, self.sum, self.max) = (0, 0, 0);
    }

    /// How many observations there are.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
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

    /// The `percent`th percentile by nearest rank, within 0.79%; `None` without an observation.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        self.middle(nearest_rank(&self.bins, self.total, percent)?)
    }

    /// The observation of this rank, the smallest having rank 1, within 0.79%; `None` where there
    /// are not so many.
    #[must_use]
    pub fn ranked(&self, rank: u64) -> Option<u64> {
        let mut seen = 0;
        let bin = self.bins.iter().position(|&count| {
            seen += count;
            seen >= rank.max(1)
        })?;
        self.middle(bin)
    }

    fn middle(&self, bin: usize) -> Option<u64> {
        let (low, width) = bounds(bin);
        Some((low + width / 2).min(self.max))
    }

    /// The largest difference between the two distribution functions (Kolmogorov's distance, 0 to
    /// 1), taken at the bins' ends: never above the true one. `None` if either has no observation.
    #[must_use]
    pub fn distance(&self, other: &Self) -> Option<f64> {
        if self.total == 0 || other.total == 0 {
            return None;
        }
        let (mut mine, mut others, mut widest) = (0_u128, 0_u128, 0_u128);
        for (&here, &there) in self.bins.iter().zip(&other.bins) {
            // Over the common denominator, so that the comparison is exact.
            mine += u128::from(here) * u128::from(other.total);
            others += u128::from(there) * u128::from(self.total);
            widest = widest.max(mine.abs_diff(others));
        }
        Some(widest as f64 / (u128::from(self.total) * u128::from(other.total)) as f64)
    }
}

/// Monotone in `value`, and below [`BINS`].
#[inline]
const fn bin_of(value: u64) -> usize {
    if value < PER_DOUBLING as u64 {
        return value as usize;
    }
    let doubling = value.ilog2() - BITS;
    (doubling as usize + 1) * PER_DOUBLING + ((value >> doubling) as usize - PER_DOUBLING)
}

/// Its smallest value, and how many values it holds.
const fn bounds(bin: usize) -> (u64, u64) {
    if bin < PER_DOUBLING {
        return (bin as u64, 1);
    }
    let doubling = bin / PER_DOUBLING - 1;
    (((bin % PER_DOUBLING + PER_DOUBLING) as u64) << doubling, 1 << doubling)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bins_tile_the_whole_range_without_gap_or_overlap() {
        let mut next = Some(0_u64);
        for bin in 0..BINS {
            let (low, width) = bounds(bin);
            assert_eq!(Some(low), next);
            assert_eq!(bin_of(low), bin);
            assert_eq!(bin_of(low + (width - 1)), bin);
            next = low.checked_add(width);
        }
        assert_eq!(next, None, "the last bin ends at the largest u64");
    }

    #[test]
    fn distance_of_disjoint_samples_is_one_and_of_equal_ones_zero() {
        let (mut short, mut long) = (Histogram::default(), Histogram::default());
        assert_eq!(short.distance(&long), None);
        (1..=10).for_each(|value| short.add(value));
        (100..=400).for_each(|value| long.add(value));
        assert_eq!(short.distance(&long), Some(1.0));
        assert_eq!(long.distance(&long.clone()), Some(0.0));
    }

    #[test]
    fn distance_of_a_cut_sample_is_what_was_cut() {
        let (mut all, mut kept) = (Histogram::default(), Histogram::default());
        (1..=20).for_each(|value| all.add(value));
        (1..=15).for_each(|value| kept.add(value));
        assert_eq!(kept.distance(&all), Some(0.25));
    }

    proptest! {
        #[test]
        fn percentiles_are_within_the_documented_error(
            mut values in prop::collection::vec(prop_oneof![0..200_u64, any::<u64>()], 1..200),
            percent in 0..=100_u64,
        ) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            values.sort_unstable();
            let rank = (values.len() as u64 * percent).div_ceil(100).max(1) as usize;
            let (exact, found) = (values[rank - 1], histogram.percentile(percent).unwrap());
            prop_assert!(found.abs_diff(exact) as f64 <= exact as f64 / 128.0, "{found} {exact}");
            prop_assert_eq!(histogram.ranked(rank as u64), Some(found));
            prop_assert_eq!(histogram.ranked(values.len() as u64 + 1), None);
            prop_assert_eq!(histogram.max(), values.last().copied());
        }
    }
}

//! Integer histograms: (value, count) pairs in ascending order of value.

/// The quantile at `q` in 0 to 1: the smallest value that at least `q` of the counts do not
/// exceed. `None` if nothing was counted.
#[must_use]
pub fn quantile<C>(counts: C, q: f64) -> Option<u64>
where
    C: IntoIterator<Item = (u64, u64)> + Clone,
{
    let total: u64 = counts.clone().into_iter().map(|(_, count)| count).sum();
    // The rank from 1; `as` saturates, so a `q` outside its range is as its nearest end.
    let rank = ((q * total as f64).ceil() as u64).clamp(1, total.max(1));
    let mut below = 0;
    counts.into_iter().find_map(|(value, count)| {
        below += count;
        (below >= rank).then_some(value)
    })
}

/// The Kolmogorov distance of two histograms: the largest difference of their distribution
/// functions, 0 to 1. `None` if one of them is empty.
#[must_use]
pub fn kolmogorov_distance<A, B>(a: A, b: B) -> Option<f64>
where
    A: IntoIterator<Item = (u64, u64)> + Clone,
    B: IntoIterator<Item = (u64, u64)> + Clone,
{
    let total_a: u64 = a.clone().into_iter().map(|(_, count)| count).sum();
    let total_b: u64 = b.clone().into_iter().map(|(_, count)| count).sum();
    if total_a == 0 || total_b == 0 {
        return None;
    }
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    let (mut below_a, mut below_b, mut distance) = (0_u64, 0_u64, 0.0_f64);
    loop {
        let value = match (a.peek(), b.peek()) {
            (Some(a), Some(b)) => a.0.min(b.0),
            (Some(only), None) | (None, Some(only)) => only.0,
            (None, None) => return Some(distance),
        };
        while let Some((_, count)) = a.next_if(|entry| entry.0 <= value) {
            below_a += count;
        }
        while let Some((_, count)) = b.next_if(|entry| entry.0 <= value) {
            below_b += count;
        }
        let difference = below_a as f64 / total_a as f64 - below_b as f64 / total_b as f64;
        distance = distance.max(difference.abs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_weigh_by_count() {
        let counts = [(0, 90), (3, 9), (40, 1)];
        let at = |q| quantile(counts, q);
        assert_eq!([at(0.0), at(0.5), at(0.9)], [Some(0); 3]);
        assert_eq!(
            [at(0.91), at(0.99), at(0.991), at(1.0)],
            [Some(3), Some(3), Some(40), Some(40)]
        );
        assert_eq!(quantile([], 0.5), None);
    }

    #[test]
    fn the_distance_is_the_largest_gap_of_the_distribution_functions() {
        let distance = |a: &[(u64, u64)], b: &[(u64, u64)]| {
            kolmogorov_distance(a.iter().copied(), b.iter().copied())
        };
        assert_eq!(distance(&[(1, 5), (2, 5)], &[(1, 1), (2, 1)]), Some(0.0));
        assert_eq!(distance(&[(1, 4)], &[(2, 7)]), Some(1.0));
        assert_eq!(distance(&[(1, 3), (5, 1)], &[(1, 1), (2, 1), (9, 2)]), Some(0.5));
        assert_eq!(distance(&[], &[(1, 1)]), None);
    }
}

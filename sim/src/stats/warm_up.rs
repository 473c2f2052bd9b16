//! Whether a run was long enough after its warm-up.

const BATCH: usize = 5;

/// Where a series settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// How many of the first values to drop.
    pub drop: usize,
    /// Whether the point lies in the first half of the series; if not, the run is too short to
    /// tell.
    pub settled: bool,
}

/// MSER-5 (White, Cobb, Spratt 2000): of the means of 5 values each, drops as many first ones as
/// give the mean of the rest the smallest standard error. `None` of fewer than 10 whole batches.
/// The last 5 batches are never candidates: their spread is chance.
#[must_use]
pub fn mser5(series: &[f64]) -> Option<WarmUp> {
    let means: Vec<f64> = series
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().fold(0.0, |sum, value| sum + value) / BATCH as f64)
        .collect();
    if means.len() < 2 * BATCH {
        return None;
    }
    // Welford's recurrence from the end: the sum of squares of every tail in one pass.
    let (mut mean, mut squares, mut kept) = (0.0, 0.0, 0.0);
    let (mut best, mut least) = (0, f64::INFINITY);
    for (at, &value) in means.iter().enumerate().rev() {
        kept += 1.0;
        let off = value - mean;
        mean += off / kept;
        squares += off * (value - mean);
        let error = squares / (kept * kept);
        // Of equal errors the longer tail.
        if at + BATCH <= means.len() && error <= least {
            (best, least) = (at, error);
        }
    }
    Some(WarmUp { drop: best * BATCH, settled: 2 * best <= means.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_dropped_whole() {
        let series: Vec<f64> =
            (0..500).map(|at| if at < 60 { 9.0 } else { f64::from(at % 7) * 0.1 }).collect();
        assert_eq!(mser5(&series), Some(WarmUp { drop: 60, settled: true }));
    }

    #[test]
    fn a_level_series_needs_no_warm_up() {
        assert_eq!(mser5(&[4.0; 200]), Some(WarmUp { drop: 0, settled: true }));
    }

    #[test]
    fn a_series_that_still_grows_has_not_settled() {
        let series: Vec<f64> =
            (0..500).map(|at| if at < 400 { 0.0 } else { f64::from(at) }).collect();
        assert_eq!(mser5(&series).map(|warm_up| warm_up.settled), Some(false));
    }

    #[test]
    fn a_short_series_says_nothing() {
        assert_eq!(mser5(&[1.0; 49]), None);
    }
}

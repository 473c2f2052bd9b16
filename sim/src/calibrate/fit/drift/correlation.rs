//! How alike neighbouring train steps are in what the policy has moved.

use std::ops::Range;

use super::model::Model;
use super::probes::Probes;
use super::resample::BLOCKS;
use crate::stats::mean;

/// Between one train step and the next, of a process whose correlation falls by the same factor with
/// each step (autoregressive of first order), and whose means vary as much as those of the probes do.
///
/// Each stretch is cut into quarters: the variance between their means, times the probes of one, over the
/// variance within them is 1 for independent steps, on average, and `(1 + c) / (1 - c)` for long quarters of
/// such a process (an analysis of variance, and batch means: Schmeiser, *Operations Research* 30,
/// 1982). So it is also seen where a run moves more for a while without two neighbours being clearly alike,
/// which is what makes runs differ. 0 where the quarters differ by less than chance has it.
///
/// Probes that are several steps apart count as neighbours: of what is alike for less than that nothing is
/// known. A stretch counts as much as it has drift (by the standard deviation).
pub(super) fn step_correlation(probes: &Probes, stretches: &[Range<usize>], fitted: &Model) -> f64 {
    let (mut between, mut within) = ((0.0, 0.0), (0.0, 0.0));
    for (at, stretch) in stretches.iter().enumerate() {
        let level = |probe: usize| probes.nearest_level(probe, fitted, at);
        let levels: Vec<f64> = stretch.clone().map(level).collect();
        let quarters: Vec<&[f64]> = levels.chunks(levels.len().div_ceil(BLOCKS)).collect();
        let center = mean(&levels).unwrap_or(0.0);
        let weight = fitted.a[at];
        for quarter in &quarters {
            let own = mean(quarter).unwrap_or(0.0);
            between.0 += weight * quarter.len() as f64 * (own - center) * (own - center);
            within.0 +=
                quarter.iter().map(|level| weight * (level - own) * (level - own)).sum::<f64>();
        }
        between.1 += weight * (quarters.len() as f64 - 1.0);
        within.1 += weight * (levels.len() - quarters.len()) as f64;
    }
    let inflation = (between.0 / between.1) / (within.0 / within.1);
    if !inflation.is_finite() || inflation <= 1.0 {
        return 0.0;
    }
    (inflation - 1.0) / (inflation + 1.0)
}

//! The metrics of a run.

use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::series::Series;
use super::table::{FORMULAS, METRICS, Metric};
use super::totals::Totals;

/// The metrics of a run, or of the part of it after the warm-up.
///
/// It can be stored, for a build with the same [`METRICS`]: values have their places, no names. Those
/// of the driver are its own to store, and to [add](Self::with) again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    values: Vec<Option<f64>>,
    /// What the driver knows beyond what the core was told.
    #[serde(skip)]
    more: Vec<(&'static Metric, Option<f64>)>,
    staleness: Counts,
    staleness_part_sums: [u64; crate::core::STALENESS_PARTS.len()],
    series: Series,
}

impl Summary {
    pub(super) fn new(totals: &Totals<'_>, series: Series) -> Self {
        Self {
            values: FORMULAS.iter().map(|formula| formula(totals)).collect(),
            more: Vec::new(),
            staleness: totals.trained.head.clone(),
            staleness_part_sums: totals.trained.parts,
            series,
        }
    }

    /// The value of a metric; `None` where it is undefined, for want of observations, or where no
    /// metric has this name. Never NaN or infinite.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values().find(|(metric, _)| metric.name == name)?.1
    }

    /// Every metric with its value, in the order of [`METRICS`]; then those of the driver.
    pub fn values(&self) -> impl Iterator<Item = (&'static Metric, Option<f64>)> + '_ {
        METRICS.iter().zip(self.values.iter().copied()).chain(self.more.iter().copied())
    }

    /// The same with more metrics, which follow those of [`METRICS`].
    #[must_use]
    pub fn with(mut self, more: impl IntoIterator<Item = (&'static Metric, Option<f64>)>) -> Self {
        self.more.extend(more);
        self
    }

    /// How many trained samples had each head staleness, in learner versions.
    #[must_use]
    pub const fn staleness(&self) -> &Counts {
        &self.staleness
    }

    /// Head staleness summed over trained samples, by
    /// [`STALENESS_PARTS`](crate::core::STALENESS_PARTS); adds up to the sum of
    /// [`staleness`](Self::staleness) exactly.
    #[must_use]
    pub const fn staleness_part_sums(&self) -> &[u64; crate::core::STALENESS_PARTS.len()] {
        &self.staleness_part_sums
    }

    /// Gauges over the whole run, the warm-up included.
    #[must_use]
    pub const fn series(&self) -> &Series {
        &self.series
    }
}

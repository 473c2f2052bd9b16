//! What was counted from the last reset to the end, in whole numbers, and the quotients of it.

use super::histogram::Histogram;
use super::levels::{Area, Areas, Windows};
use super::lost::Lost;
use super::trained::Trained;
use super::turns::Generated;
use super::votes::Judged;
use crate::action::{Discard, Refusal};
use crate::core::Ledger;
use crate::time::Span;

const NANOS_PER_SEC: f64 = 1e9;
const NANOS_PER_HOUR: f64 = 3.6e12;

/// Everything a metric is computed from.
pub(super) struct Totals<'a> {
    pub(super) duration: Span,
    pub(super) areas: &'a Areas,
    pub(super) windows: Windows,
    pub(super) trained: &'a Trained,
    pub(super) lost: &'a Lost,
    pub(super) generated: &'a Generated,
    pub(super) judged: Judged,
    pub(super) waited: u64,
    pub(super) start: &'a Ledger,
    pub(super) end: &'a Ledger,
}

impl Totals<'_> {
    /// How much a counter of the ledger grew.
    pub(super) fn grew(&self, counter: impl Fn(&Ledger) -> u64) -> u64 {
        counter(self.end).saturating_sub(counter(self.start))
    }

    pub(super) fn per_hour(&self, count: u64) -> Option<f64> {
        let nanos = self.duration.as_nanos();
        (nanos > 0).then(|| count as f64 / nanos as f64 * NANOS_PER_HOUR)
    }

    pub(super) fn per_second(&self, count: u64) -> Option<f64> {
        let nanos = self.duration.as_nanos();
        (nanos > 0).then(|| count as f64 / nanos as f64 * NANOS_PER_SEC)
    }

    /// The time average of a level.
    pub(super) fn mean(&self, area: Area) -> Option<f64> {
        quotient(area.sum, u128::from(self.duration.as_nanos()))
    }

    pub(super) fn max(&self, area: Area) -> Option<f64> {
        (self.duration > Span::ZERO).then(|| f64::from(area.max))
    }

    pub(super) fn of_trained(&self, count: u64) -> Option<f64> {
        ratio(count, self.trained.head.total())
    }

    pub(super) fn part(&self, index: usize) -> Option<f64> {
        self.of_trained(self.trained.parts[index])
    }

    pub(super) fn part_seconds(&self, index: usize) -> Option<f64> {
        let samples = u128::from(self.trained.head.total());
        quotient(self.trained.part_nanos[index], samples).map(|nanos| nanos / NANOS_PER_SEC)
    }

    pub(super) fn of_offered(&self, count: u64) -> Option<f64> {
        ratio(count, self.grew(|ledger| ledger.offered))
    }

    pub(super) fn refused(&self, reasons: &[Refusal]) -> Option<f64> {
        let refused = |reason: &Refusal| self.grew(|ledger| ledger.refused[reason.index()]);
        self.of_offered(reasons.iter().map(refused).sum())
    }

    /// Share of the samples whose fate was decided.
    pub(super) fn discarded(&self, reason: Discard) -> Option<f64> {
        self.of_resolved(self.grew(|ledger| ledger.discarded[reason.index()]))
    }

    /// Mean length of what was discarded for a reason over that of all that was generated.
    pub(super) fn length_ratio(&self, reason: Discard) -> Option<f64> {
        length_ratio(self.lost.of(reason)?, &self.generated.lengths)
    }

    /// The Kolmogorov distance between the two.
    pub(super) fn length_distance(&self, reason: Discard) -> Option<f64> {
        self.lost.of(reason)?.distance(&self.generated.lengths)
    }

    pub(super) fn of_resolved(&self, count: u64) -> Option<f64> {
        ratio(count, self.grew(|ledger| ledger.trained + ledger.discarded_total()))
    }

    pub(super) fn of_steps(&self, count: u64) -> Option<f64> {
        ratio(count, self.grew(|ledger| ledger.steps + ledger.failed_steps))
    }
}

/// Mean of some over mean of all.
pub(super) fn length_ratio(some: &Histogram, all: &Histogram) -> Option<f64> {
    let (some, all) = (some.mean()?, all.mean()?);
    (all > 0.0).then(|| some / all)
}

pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    quotient(u128::from(part), u128::from(whole))
}

/// Undefined without a denominator.
pub(super) fn quotient(part: u128, whole: u128) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Nanoseconds as seconds.
pub(super) fn seconds(nanos: Option<u64>) -> Option<f64> {
    nanos.map(|nanos| nanos as f64 / NANOS_PER_SEC)
}

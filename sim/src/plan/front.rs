//! The front of throughput against staleness, and the choice.

use super::Simulated;
use crate::stats::Estimate;

/// What can lie on a front of throughput against staleness.
pub(crate) trait Contender {
    /// Whether it counts at all.
    fn is_fit(&self) -> bool;
    /// Its mean throughput.
    fn rate(&self) -> f64;
    /// Its staleness, in the mean over replications.
    fn staleness(&self) -> Option<f64>;
    /// What more throughput `other` has, in pairs.
    fn gain_of(&self, other: &Self) -> Option<Estimate>;
    /// How much older the samples of `other` are, in pairs.
    fn ageing_of(&self, other: &Self) -> Option<Estimate>;
}

/// Which points no other is preferable to. A point is preferable to another if it is at least as
/// good in the means of both, and better in one by more than chance.
pub(crate) fn front<T: Contender>(points: &[T]) -> Vec<bool> {
    let is_on = |point: &T| point.is_fit() && !points.iter().any(|one| is_preferable(one, point));
    points.iter().map(is_on).collect()
}

fn is_preferable<T: Contender>(one: &T, other: &T) -> bool {
    let (Some(age), Some(other_age)) = (one.staleness(), other.staleness()) else { return false };
    if !one.is_fit() || one.rate() < other.rate() || age > other_age {
        return false;
    }
    let clear = |difference: Option<Estimate>| {
        difference.is_some_and(|difference| difference.excludes_zero())
    };
    clear(one.gain_of(other)) || clear(one.ageing_of(other))
}

impl Contender for Simulated {
    fn is_fit(&self) -> bool {
        Self::is_fit(self)
    }

    fn rate(&self) -> f64 {
        Self::rate(self)
    }

    fn staleness(&self) -> Option<f64> {
        Self::staleness(self)
    }

    fn gain_of(&self, other: &Self) -> Option<Estimate> {
        Self::gain_of(self, other)
    }

    fn ageing_of(&self, other: &Self) -> Option<Estimate> {
        Self::ageing_of(self, other)
    }
}

/// Marks the points of the front.
pub(super) fn mark(options: &mut [Simulated]) {
    let places = front(options);
    for (option, on_front) in options.iter_mut().zip(places) {
        option.on_front = on_front;
    }
}

/// The fit point with the highest throughput; of those that chance alone tells from it, the one
/// with the least staleness, and of these the first.
pub(super) fn choose(options: &[Simulated]) -> Option<usize> {
    let fit = || options.iter().enumerate().filter(|(_, option)| option.is_fit());
    // Of equal means the first.
    let (best, top) =
        fit().reduce(|best, next| if next.1.rate() > best.1.rate() { next } else { best })?;
    let as_good = fit().filter(|(place, option)| {
        *place == best || option.gain_of(top).is_some_and(|gain| !gain.excludes_zero())
    });
    let staleness = |option: &Simulated| option.staleness().unwrap_or(f64::INFINITY);
    as_good
        .reduce(|best, next| if staleness(next.1) < staleness(best.1) { next } else { best })
        .map(|(place, _)| place)
}

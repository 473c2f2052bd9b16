//! The front of throughput against staleness, and the choice.

use super::Simulated;

/// Marks the points to which no other is preferable. A point is preferable to another if it is at
/// least as good in the means of both, and better in one by more than chance.
pub(super) fn mark(options: &mut [Simulated]) {
    for place in 0..options.len() {
        let point = &options[place];
        let beaten = options.iter().any(|other| is_preferable(other, point));
        options[place].on_front = options[place].is_fit() && !beaten;
    }
}

fn is_preferable(one: &Simulated, other: &Simulated) -> bool {
    let (Some(age), Some(other_age)) = (one.staleness(), other.staleness()) else { return false };
    if !one.is_fit() || one.rate() < other.rate() || age > other_age {
        return false;
    }
    let clear = |difference: Option<crate::stats::Estimate>| {
        difference.is_some_and(|difference| difference.excludes_zero())
    };
    clear(one.gain_of(other)) || clear(one.ageing_of(other))
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

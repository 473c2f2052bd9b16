//! The choice, and the front.

use super::aim::STALENESS;
use super::pool::{Candidate, Pool};
use crate::stats::Estimate;

/// Whether a candidate may be chosen: it had all its replications, and keeps every constraint.
pub(super) fn is_fit(pool: &Pool<'_>, place: usize) -> bool {
    pool.is_complete(place) && pool.candidates[place].breaks(pool.task.aim).is_empty()
}

/// The best candidate that had all its replications.
///
/// Of those that keep the constraints the one with the highest mean leads. Whatever chance alone
/// may tell from it, by the interval of their paired difference, is as good; of these the one with
/// the least staleness is taken, then the one that changes the fewest keys, then the first. Where
/// none keeps the constraints, the one that is nearest to it.
pub(super) fn best(pool: &Pool<'_>) -> Option<usize> {
    let aim = pool.task.aim;
    let fit: Vec<usize> = (0..pool.candidates.len()).filter(|&place| is_fit(pool, place)).collect();
    if fit.is_empty() {
        let mut complete: Vec<usize> =
            (0..pool.candidates.len()).filter(|&place| pool.is_complete(place)).collect();
        pool.sort(&mut complete, usize::MAX);
        return complete.first().copied();
    }
    let of = |place: usize| &pool.candidates[place];
    let mean = |place: usize| value(of(place), aim.metric.name).unwrap_or(f64::NEG_INFINITY);
    let top = fit
        .iter()
        .copied()
        .reduce(|best, next| if mean(next) > mean(best) { next } else { best })?;
    let as_good = fit.into_iter().filter(|&place| {
        place == top || !is_clearly_less(of(place).difference(of(top), aim.metric.name))
    });
    as_good.reduce(|best, next| {
        let order = |place: usize| (staleness(of(place)), of(place).changes);
        let (one, other) = (order(best), order(next));
        let less = other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)).is_lt();
        if less { next } else { best }
    })
}

/// Whether what `top` has more is more than chance. What cannot be compared is less.
fn is_clearly_less(gain: Option<Estimate>) -> bool {
    gain.is_none_or(|gain| gain.excludes_zero())
}

pub(super) fn value(candidate: &Candidate, metric: &str) -> Option<f64> {
    candidate.metric(metric).map(|estimate| estimate.mean)
}

fn staleness(candidate: &Candidate) -> f64 {
    value(candidate, STALENESS).unwrap_or(f64::INFINITY)
}

/// Marks the candidates to which no other is preferable, among those that had at least so many
/// replications, whether they keep the constraints or not: what a limit costs is to be seen. One is
/// preferable to another if its means are at least as good in both, and better in one.
pub(super) fn front(pool: &Pool<'_>, least: usize) -> Vec<bool> {
    let aim = pool.task.aim;
    let at = |place: usize| {
        let candidate = &pool.candidates[place];
        let distinct = candidate.same_as.is_none()
            && candidate.failed.is_none()
            && candidate.spot.is_some()
            && candidate.runs.len() >= least;
        let both = value(candidate, aim.metric.name).zip(value(candidate, STALENESS));
        both.filter(|_| distinct)
    };
    let points: Vec<Option<(f64, f64)>> = (0..pool.candidates.len()).map(at).collect();
    let is_beaten = |(gain, age): (f64, f64)| {
        points.iter().flatten().any(|&(other_gain, other_age)| {
            other_gain >= gain && other_age <= age && (other_gain > gain || other_age < age)
        })
    };
    points.iter().map(|point| point.is_some_and(|point| !is_beaten(point))).collect()
}

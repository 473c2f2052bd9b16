//! A scenario that broke something, with as little in it as still breaks.

use super::{Case, Limits, play};

/// Takes away assignment after assignment, and then inputs, for as long as something is still
/// broken. What is wrong with what is left need not be what was wrong first.
#[must_use]
pub fn reduce(case: &Case, limits: Limits) -> (Case, Limits) {
    let (mut small, mut least) = (case.clone(), limits);
    let breaks = |case: &Case, limits| case.load().is_ok() && play(case, limits).is_err();
    let mut changed = true;
    while changed {
        changed = false;
        for place in (0..small.set.len()).rev() {
            let mut less = small.clone();
            // What says when a run ends stays: any run would be cut short without it.
            if less.set.remove(place).starts_with("scenario.") {
                continue;
            }
            if breaks(&less, least) {
                small = less;
                changed = true;
            }
        }
        let fewer = Limits { inputs: least.inputs / 2, ..least };
        if fewer.inputs > 0 && breaks(&small, fewer) {
            least = fewer;
            changed = true;
        }
    }
    (small, least)
}

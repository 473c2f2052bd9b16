//! Whether the warm-up that a scenario drops was long enough.

use crate::run::Course;
use crate::stats::{WarmUp, mean, mser5};

/// A start that moves the mean by less is no matter.
const SHARE: f64 = 0.05;

/// What to say of the runs of one point if what they have kept still shows how they began.
///
/// The course of staleness, step by step, is averaged over the runs, so that chance in one of them
/// does not look like a start; MSER-5 finds where it settles.
pub(super) fn too_short(runs: &[Course]) -> Option<String> {
    let steps = runs.iter().map(|run| run.staleness.len()).min()?;
    let dropped = runs.iter().map(|run| run.dropped).max()?;
    let at = |step: usize| {
        let sum = runs.iter().fold(0.0, |sum, run| sum + run.staleness[step]);
        sum / runs.len() as f64
    };
    let course: Vec<f64> = (0..steps).map(at).collect();
    let WarmUp { drop, settled } = mser5(&course)?;
    if !settled || drop <= dropped {
        return None;
    }
    let (kept, rest) = (mean(&course[dropped..])?, mean(&course[drop..])?);
    let moved = (kept - rest).abs();
    (moved > SHARE * rest && moved > SHARE).then(|| {
        format!(
            "shows its start, as the others of this point may: staleness settles after {drop} \
             train steps (MSER-5), and the warm-up ends after {dropped}, which moves its mean from \
             {rest:.2} to {kept:.2}; write warmup_steps = {drop}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: usize, dropped: usize, chance: u64) -> Course {
        let noise = |step: u64| ((step * 7 + chance * 3) % 10) as f64 * 0.02;
        let level = |step: usize| if step < start { 9.0 } else { 2.0 };
        let staleness = (0..400).map(|step| level(step) + noise(step as u64)).collect();
        Course { staleness, dropped }
    }

    #[test]
    fn a_start_that_is_kept_is_named_with_what_to_write() {
        let runs = [run(60, 20, 1), run(60, 20, 2)];
        let said = too_short(&runs).expect("it is too short");
        assert!(said.contains("write warmup_steps = 60"), "{said}");
        assert!(said.contains("from 2.09 to"), "{said}");
    }

    #[test]
    fn a_start_that_is_dropped_or_does_not_matter_is_not_mentioned() {
        assert_eq!(too_short(&[run(60, 60, 1), run(60, 60, 2)]), None);
        assert_eq!(too_short(&[run(0, 0, 1)]), None);
        assert_eq!(too_short(&[]), None);
    }
}

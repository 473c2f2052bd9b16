//! How fast the policy learned.

use headway_shared::source::Reported;

use crate::calibrate::fit::Parameter;
use crate::calibrate::jackknife;

/// Fewer steps show no growth.
const LEAST_STEPS: usize = 40;
/// Blocks of successive steps, of which the jackknife leaves out one after the other.
const BLOCKS: usize = 20;
const NEWTON_STEPS: u32 = 50;
/// Log-odds beyond these are certainty.
const MOST_LOG_ODDS: f64 = 30.0;

/// What `world.drift.growth` says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth {
    /// How much the log-odds of the mean reward grew per train step.
    pub(super) per_step: Parameter,
    /// Train steps.
    pub(super) steps: usize,
}

/// A step and its mean reward.
type Row = (f64, f64);

/// Fits the logistic curve `reward(s) = 1 / (1 + exp(-(b + g s)))` to the steps' mean rewards, by the
/// likelihood of shares (quasi-likelihood: McCullagh and Nelder, *Generalized linear models*, 1989,
/// chapter 9), so that steps at which nearly everything succeeds count little. The interval is that of
/// a jackknife over 20 blocks of successive steps. `None`: rewards are no shares (below 0 or above 1),
/// there are too few, or they did not clearly grow.
pub(super) fn growth(reported: &[Reported]) -> Option<Growth> {
    let rows = rewards(reported);
    let is_share = |&(_, reward): &Row| (0.0..=1.0).contains(&reward);
    if rows.len() < LEAST_STEPS || !rows.iter().all(is_share) {
        return None;
    }
    let value = slope(&rows)?;
    let cut = |block: usize| block * rows.len() / BLOCKS;
    let without = (0..BLOCKS)
        .filter_map(|block| slope(&[&rows[..cut(block)], &rows[cut(block + 1)..]].concat()));
    let per_step = jackknife::interval(value, without);
    (per_step.low > 0.0).then_some(Growth { per_step, steps: rows.len() })
}

fn rewards(reported: &[Reported]) -> Vec<Row> {
    let of_step = |row: &&Reported| row.name == "reward_mean" && row.staleness.is_none();
    reported.iter().filter(of_step).map(|row| (row.step.0 as f64, row.value)).collect()
}

/// The slope of the log-odds, by Newton's method from a constant; `None`: there is no best one, as
/// where a step tells success from failure.
fn slope(rows: &[Row]) -> Option<f64> {
    let middle = rows.iter().fold(0.0, |sum, (step, _)| sum + step) / rows.len() as f64;
    let (mut base, mut slope) = (0.0, 0.0);
    for _ in 0..NEWTON_STEPS {
        let (mut score, mut information) = ([0.0; 2], [0.0; 3]);
        for &(step, reward) in rows {
            let x = step - middle;
            let log_odds = (base + slope * x).clamp(-MOST_LOG_ODDS, MOST_LOG_ODDS);
            let share = 1.0 / (1.0 + libm::exp(-log_odds));
            let weight = share * (1.0 - share);
            score[0] += reward - share;
            score[1] += (reward - share) * x;
            information[0] += weight;
            information[1] += weight * x;
            information[2] += weight * x * x;
        }
        let determinant = information[0] * information[2] - information[1] * information[1];
        let moves = [
            (information[2] * score[0] - information[1] * score[1]) / determinant,
            (information[0] * score[1] - information[1] * score[0]) / determinant,
        ];
        if !moves.iter().all(|part| part.is_finite()) {
            return None;
        }
        base += moves[0];
        slope += moves[1];
        if moves[1].abs() <= 1e-12 * slope.abs() {
            return Some(slope);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use headway_shared::id::StepId;

    use super::*;
    use crate::kernel::random::{Component, Key};

    fn row(step: u64, value: f64) -> Reported {
        Reported { step: StepId(step), name: "reward_mean".to_owned(), staleness: None, value }
    }

    /// Rewards of batches of 128 whose log-odds grow by `rate` a step.
    fn run(rate: f64, seed: u64) -> Vec<Reported> {
        let key = Key::new(seed, headway_shared::digest::Digest::new(), 0);
        let of = |step: u64| {
            let mut stream = key.stream(Component::Step, step);
            let share = 1.0 / (1.0 + libm::exp(3.0 - rate * step as f64));
            let good = (0..128).filter(|_| stream.chance(share)).count();
            row(step, good as f64 / 128.0)
        };
        (0..150).map(of).collect()
    }

    #[test]
    fn the_growth_that_rewards_were_drawn_with_comes_out() {
        let mut held = 0;
        for seed in 0..200 {
            let found = growth(&run(0.05, seed)).unwrap();
            assert!((found.per_step.value - 0.05).abs() < 0.004, "{found:?}");
            assert_eq!(found.steps, 150);
            held += u32::from(found.per_step.holds(0.05));
        }
        assert!((165..=195).contains(&held), "{held} of 200");
    }

    #[test]
    fn rewards_that_do_not_grow_or_are_no_shares_tell_none() {
        assert_eq!(growth(&run(0.0, 1)), None);
        assert_eq!(growth(&run(0.05, 1)[..30]), None, "30 steps");
        let mut scores = run(0.05, 1);
        scores[0].value = -1.0;
        assert_eq!(growth(&scores), None);
        let told = |step: u64| row(step, f64::from(u8::from(step > 25)));
        assert_eq!(
            growth(&(0..50).map(told).collect::<Vec<_>>()),
            None,
            "no curve is steep enough"
        );
    }
}

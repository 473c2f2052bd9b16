//! Closed forms: each number below is worked out by hand.

use proptest::prelude::*;

use super::*;
use crate::config::{Correction, PolicyTraining};

const LN2: f64 = std::f64::consts::LN_2;

#[track_caller]
fn close(got: f64, want: f64) {
    assert!((got - want).abs() <= 1e-12 * (1.0 + want.abs()), "{got} is not {want}");
}

fn rule(correction: Correction, low: f64, high: f64) -> Loss {
    Loss { correction, low, high }
}

fn member(group: u64, reward: f64) -> Member {
    Member { group, reward, masked: false }
}

/// One token whose ratios are learner/proximal = `inner` and proximal/rollout = `outer`.
fn one(rule: Loss, advantage: f64, inner: f64, outer: f64) -> Term {
    let proximal = -3.0;
    let of = LogProbs {
        learner: &[proximal + libm::log(inner)],
        proximal: &[proximal],
        rollout: &[proximal - libm::log(outer)],
    };
    terms(&rule, advantage, of)[0]
}

#[track_caller]
fn is(term: Term, loss: f64, gradient: f64, clipped: bool) {
    close(term.loss, loss);
    close(term.gradient, gradient);
    assert_eq!(term.clipped, clipped);
}

#[test]
fn a_group_is_compared_with_itself() {
    let mut baseline = Baseline::default();
    let batch = [member(7, 1.0), member(9, 4.0), member(7, 0.0), member(7, 0.5), member(9, 4.0)];
    let got = advantages(&batch, &mut baseline);
    // Group 7: mean 0.5, sample deviation 0.5. Group 9: all equal.
    close(got[0], 0.5 / (0.5 + 1e-6));
    close(got[1], 0.0);
    close(got[2], -0.5 / (0.5 + 1e-6));
    close(got[3], 0.0);
    close(got[4], 0.0);
    assert_eq!(baseline.mean, None, "nobody was alone");
}

#[test]
fn a_sample_without_mates_is_compared_with_the_steps_before() {
    let mut baseline = Baseline::default();
    let first = advantages(&[member(1, 1.0), member(2, 0.0)], &mut baseline);
    assert_eq!(first, [0.5, -0.5], "the first step is compared with its own mean");
    assert_eq!(baseline.mean, Some(0.5));
    let second = advantages(&[member(3, 1.0), member(4, 1.0)], &mut baseline);
    assert_eq!(second, [0.5, 0.5]);
    close(baseline.mean.unwrap(), 0.55);
}

#[test]
fn a_masked_sample_has_no_advantage_and_does_not_move_its_group() {
    let mut baseline = Baseline { mean: Some(0.25) };
    let masked = Member { masked: true, ..member(1, 100.0) };
    let pair = advantages(&[member(1, 1.0), masked, member(1, 0.0)], &mut baseline);
    close(pair[0], 0.5 / (libm::sqrt(0.5) + 1e-6));
    assert_eq!(pair[1], 0.0);
    // With only one left, the group has become a group of one.
    let left = advantages(&[member(1, 1.0), masked], &mut baseline);
    assert_eq!(left, [0.75, 0.0]);
}

#[test]
fn without_correction_the_ratio_plays_no_part() {
    let term = one(rule(Correction::None, 0.8, 1.2), 2.0, 1.5, 3.0);
    is(term, -2.0 * (-3.0 + libm::log(1.5)), -2.0, false);
}

#[test]
fn ppo_clips_the_whole_ratio_on_the_side_that_gains() {
    let ppo = rule(Correction::PpoClip, 0.8, 1.25);
    // learner/rollout = inner * outer.
    is(one(ppo, 2.0, 1.0, 1.1), -2.2, -2.2, false);
    is(one(ppo, 2.0, 1.5, 1.0), -2.5, 0.0, true);
    is(one(ppo, 2.0, 1.0, 1.5), -2.5, 0.0, true);
    // A loss is never clipped away: the pessimistic side.
    is(one(ppo, -2.0, 1.5, 1.0), 3.0, 3.0, false);
    is(one(ppo, -2.0, 0.5, 1.0), 1.6, 0.0, true);
    is(one(ppo, 2.0, 0.5, 1.0), -1.0, -1.0, false);
}

#[test]
fn decoupled_clips_what_the_step_moved_and_weighs_by_what_lag_moved() {
    let decoupled = rule(Correction::Decoupled, 0.8, 1.25);
    is(one(decoupled, 2.0, 1.0, 3.0), -6.0, -6.0, false);
    is(one(decoupled, 2.0, 2.0, 3.0), -7.5, 0.0, true);
    is(one(decoupled, -2.0, 0.5, 0.5), 0.8, 0.0, true);
}

#[test]
fn truncated_importance_sampling_only_has_an_upper_threshold() {
    let tis = rule(Correction::Tis, 0.5, 2.0);
    is(one(tis, 1.0, 1.0, 1.5), -1.5, -1.5, false);
    is(one(tis, 1.0, 1.0, 8.0), -2.0, -2.0, true);
    is(one(tis, 1.0, 1.0, 0.01), -0.01, -0.01, false);
    // The inner band is PPO's own, not [0.5, 2].
    is(one(tis, 1.0, 1.9, 1.0), -1.2, 0.0, true);
}

#[test]
fn icepop_drops_a_token_outside_its_band() {
    let icepop = rule(Correction::Icepop, 0.5, 2.0);
    is(one(icepop, 1.0, 1.0, 1.5), -1.5, -1.5, false);
    is(one(icepop, 1.0, 1.0, 2.1), 0.0, 0.0, true);
    is(one(icepop, 1.0, 1.0, 0.4), 0.0, 0.0, true);
}

#[test]
fn a_sequence_is_masked_by_its_geometric_mean() {
    let mask = rule(Correction::SequenceMask, 0.5, 1.5);
    // Ratios 4 and 1/4: each is outside, their geometric mean is 1.
    let proximal = [-1.0, -2.0];
    let rollout = [-1.0 - 2.0 * LN2, -2.0 + 2.0 * LN2];
    let kept =
        terms(&mask, 1.0, LogProbs { learner: &proximal, proximal: &proximal, rollout: &rollout });
    for term in kept {
        is(term, -1.0, -1.0, false);
    }
    // Ratios 4 and 1: their mean is 2.
    let rollout = [-1.0 - 2.0 * LN2, -2.0];
    let gone =
        terms(&mask, 1.0, LogProbs { learner: &proximal, proximal: &proximal, rollout: &rollout });
    for term in gone {
        is(term, 0.0, 0.0, true);
    }
}

#[test]
fn gspo_has_one_ratio_for_the_sequence() {
    let gspo = rule(Correction::Gspo, 0.8, 1.5);
    // Log-ratios ln 2 and 0: s = sqrt 2.
    let rollout = [-2.0, -2.0];
    let learner = [-2.0 + LN2, -2.0];
    let of = LogProbs { learner: &learner, proximal: &rollout, rollout: &rollout };
    for term in terms(&gspo, 3.0, of) {
        is(term, -3.0 * libm::sqrt(2.0), -3.0 * libm::sqrt(2.0), false);
    }
    let learner = [-2.0 + LN2, -2.0 + LN2];
    let of = LogProbs { learner: &learner, proximal: &rollout, rollout: &rollout };
    for term in terms(&gspo, 3.0, of) {
        is(term, -4.5, 0.0, true);
    }
}

#[test]
fn thresholds_are_those_of_the_configuration() {
    let loss = Loss::of(&PolicyTraining::default());
    assert_eq!(loss, rule(Correction::PpoClip, 0.8, 1.2));
}

#[test]
fn every_sequence_of_a_batch_weighs_the_same() {
    let term = |loss| Term { loss, gradient: 0.0, clipped: false };
    let batch = [vec![term(1.0), term(3.0)], vec![term(10.0)], vec![]];
    close(batch_loss(&batch), (2.0 + 10.0) / 3.0);
}

fn token(staleness: u32, learner_rollout: f64) -> Token {
    let rollout = -4.0;
    let learner = rollout + libm::log(learner_rollout);
    Token { staleness, learner, proximal: learner, deploy: rollout, rollout }
}

#[test]
fn ratios_are_named_by_both_ends() {
    let token = Token { staleness: 0, learner: -1.0, proximal: -1.5, deploy: -3.0, rollout: -7.0 };
    let logs = Ends::ALL.map(|ends| ends.log_ratio(&token));
    assert_eq!(logs, [6.0, 2.0, 4.0, 0.5]);
    assert_eq!(abs_diff(&[vec![token]]), 5.5);
}

#[test]
fn the_spread_of_two_ratios_is_known() {
    let batch = [vec![token(0, 2.0)], vec![token(3, 0.5), token(3, 2.0)]];
    let all = spread(Ends::LearnerRollout, &batch).unwrap();
    assert_eq!((all.tokens, all.sequences), (3, 2));
    close(all.p50, 2.0);
    close(all.p99, 2.0);
    close(all.max, 2.0);
    close(all.log_mean, LN2 / 3.0);
    close(all.log_square, LN2 * LN2);
    close(all.log_abs, LN2);
    close(all.kl_k1, -LN2 / 3.0);
    // (2 - 1 - ln 2) twice, (1/2 - 1 + ln 2) once.
    close(all.kl_k3, (2.0 * (1.0 - LN2) + (LN2 - 0.5)) / 3.0);
    // Weights 2, 1/2, 2: sum 4.5, squares 8.25.
    close(all.ess_token, 4.5 * 4.5 / (3.0 * 8.25));
    // Products 2 and 1: sum 3, squares 5.
    close(all.ess_sequence, 9.0 / 10.0);

    let parts = by_staleness(Ends::LearnerRollout, &batch);
    assert_eq!(parts.keys().copied().collect::<Vec<_>>(), [0, 3]);
    assert_eq!((parts[&3].tokens, parts[&3].sequences), (2, 1));
    close(parts[&3].p50, 0.5);
    assert_eq!(spread(Ends::LearnerRollout, &[vec![]]), None);
}

#[test]
fn percentiles_are_values_that_occurred() {
    let batch = [(1..=200).map(|n| token(0, f64::from(n))).collect::<Vec<_>>()];
    let all = spread(Ends::LearnerRollout, &batch).unwrap();
    close(all.p50, 100.0);
    close(all.p99, 198.0);
    close(all.max, 200.0);
}

const ALL: [Correction; 7] = [
    Correction::None,
    Correction::PpoClip,
    Correction::Decoupled,
    Correction::Tis,
    Correction::Icepop,
    Correction::SequenceMask,
    Correction::Gspo,
];

proptest! {
    /// On-policy with one update, every correction has the gradient of the plain policy gradient.
    #[test]
    fn on_policy_all_corrections_agree(
        logs in prop::collection::vec(-9.0..-0.01_f64, 1..12),
        advantage in -3.0..3.0_f64,
    ) {
        for correction in ALL {
            let of = LogProbs { learner: &logs, proximal: &logs, rollout: &logs };
            for term in terms(&rule(correction, 0.8, 1.2), advantage, of) {
                prop_assert!((term.gradient + advantage).abs() < 1e-12);
                prop_assert!(!term.clipped);
            }
        }
    }

    /// The gradient is the derivative of the loss. Kinks have probability 0.
    #[test]
    fn gradients_are_derivatives(
        logs in prop::collection::vec((-3.0..-0.1_f64, -0.4..0.4_f64, -0.4..0.4_f64), 1..6),
        advantage in -3.0..3.0_f64,
        which in 0..7_usize,
    ) {
        let rule = rule(ALL[which], 0.8, 1.2);
        let proximal: Vec<f64> = logs.iter().map(|token| token.0).collect();
        let rollout: Vec<f64> = logs.iter().map(|token| token.0 + token.1).collect();
        let learner: Vec<f64> = logs.iter().map(|token| token.0 + token.2).collect();
        let at = |learner: &[f64]| {
            terms(&rule, advantage, LogProbs { learner, proximal: &proximal, rollout: &rollout })
        };
        let here = at(&learner);
        for place in 0..learner.len() {
            let step = 1e-6;
            let moved = |by: f64| {
                let mut learner = learner.clone();
                learner[place] += by;
                at(&learner)
            };
            let (up, down) = (moved(step), moved(-step));
            if up.iter().zip(&down).any(|(up, down)| up.clipped != down.clipped) {
                continue; // a kink lies between
            }
            let slope = (batch_loss(&[up]) - batch_loss(&[down])) / (2.0 * step);
            let want = here[place].gradient / learner.len() as f64;
            prop_assert!((slope - want).abs() < 1e-6, "{slope} {want}");
        }
    }

    /// An effective sample size is a share, and k3 is never negative.
    #[test]
    fn the_spread_stays_in_its_range(
        ratios in prop::collection::vec(prop::collection::vec(1e-6..1e6_f64, 0..6), 1..6),
    ) {
        let batch: Vec<Vec<Token>> =
            ratios.iter().map(|of| of.iter().map(|&ratio| token(0, ratio)).collect()).collect();
        if let Some(all) = spread(Ends::LearnerRollout, &batch) {
            prop_assert!(0.0 < all.ess_token && all.ess_token <= 1.0 + 1e-12);
            prop_assert!(0.0 < all.ess_sequence && all.ess_sequence <= 1.0 + 1e-12);
            prop_assert!(all.kl_k3 >= -1e-12);
            prop_assert!(all.p50 <= all.p99 && all.p99 <= all.max);
        } else {
            prop_assert!(batch.iter().all(Vec::is_empty));
        }
    }
}

//! How much of its gradient the correction left in the run that is fitted.

use headway_shared::ratio::Loss;

use crate::calibrate::fit::{DriftFit, Parameter};
use crate::calibrate::measured::Measured;
use crate::drift::{Growth, Model, Stretch, Tokens, gradient_kept};

/// Tokens of a sample that are drawn one by one.
const SAMPLED_TOKENS: u32 = 64;

/// By stretch, as the fitted model has it of the batches that the run trained; 1 where it trained none.
///
/// It is not measured: a trainer reports how many tokens were clipped, and not how much of the gradient
/// was theirs. Those that have moved far the way they are to go have more than their part.
pub(super) fn of_stretches(
    measured: &Measured,
    found: &DriftFit,
    tokens: &[Tokens],
    spread: Option<Parameter>,
    growth: f64,
) -> Vec<f64> {
    let stretch = |from_step: u32, a: f64, p: f64, tokens: Tokens| Stretch {
        from_step,
        sigma0: found.sigma0.value,
        a,
        p,
        kept: 1.0,
        tokens,
    };
    let stretches = found.stretches().zip(tokens);
    let model = Model {
        calibrated_from: None,
        stretches: stretches.map(|((from, a, p), tokens)| stretch(from, a, p, *tokens)).collect(),
        shifted_share: 0.0,
        padded_share: 0.0,
        sampled_tokens: SAMPLED_TOKENS,
        step_spread: spread.map_or(0.0, |spread| spread.value),
        step_correlation: found.step_correlation,
        growth: Some(Growth { per_step: growth }),
    };
    let rule = Loss::of(&measured.config.policy_training);
    let kept = gradient_kept(&model, rule, &measured.batches.batches);
    // A share is above 1 only by chance, where a correction weighs otherwise than by the ratio.
    kept.into_iter().map(|share| share.unwrap_or(1.0).clamp(0.01, 1.0)).collect()
}

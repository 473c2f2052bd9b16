//! Importance ratios: advantages, the off-policy corrections, and what a step reports of its
//! ratios. Plain `f64`, in order, with `libm`: the reference that trainers are tested against.
//!
//! A token has up to four log-probabilities, named by who gives it:
//!
//! | name | the token's log-probability |
//! |---|---|
//! | rollout | as the engine that generated it recorded it |
//! | deploy | under the weights that serving now holds, computed by the trainer |
//! | proximal | under the learner as it was when the train step started |
//! | learner | under the parameters being updated |
//!
//! A ratio is named by both its ends ([`Ends`]); its logarithm is the difference of two of these.
//! With one update per step the learner is the proximal policy. All slices here hold trained
//! tokens only: prompts and environment tokens are left out by the caller.
//!
//! # The corrections
//!
//! `r` is the ratio of a token, `A` its sequence's advantage, `[low, high]` the thresholds of the
//! configuration. `clip(x, low, high)` is `x` moved into the band. The loss of a token is
//!
//! | `correction` | loss | source |
//! |---|---|---|
//! | `none` | `-A * log(learner)` | REINFORCE |
//! | `ppo_clip` | `-min(r A, clip(r, low, high) A)`, r = learner/rollout | PPO, arXiv:1707.06347 |
//! | `decoupled` | the same with r = learner/proximal, times proximal/rollout | Hilton et al., arXiv:2110.00641; AReaL, arXiv:2505.24298 |
//! | `tis` | `min(proximal/rollout, high)` times the inner loss | Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL training" |
//! | `icepop` | `w = proximal/rollout`, 0 outside `[low, high]`, times the inner loss | IcePop, arXiv:2510.18855 |
//! | `sequence_mask` | the inner loss, 0 for a sequence whose `exp(mean log(proximal/rollout))` is outside `[low, high]` | slime's geometric sequence masking |
//! | `gspo` | `-min(s A, clip(s, low, high) A)`, s = `exp(mean log(learner/rollout))` of the sequence | GSPO, arXiv:2507.18071 |
//!
//! The inner loss is PPO's with r = learner/proximal and its published band, 0.8 to 1.2: the
//! configured thresholds belong to proximal/rollout there. The factors before it carry no gradient.
//! A batch's loss is the mean over a sequence's tokens, then over the sequences of the batch, masked
//! ones counted (GRPO, arXiv:2402.03300): a long sequence weighs as much as a short one.

mod advantage;
mod correction;
mod spread;
#[cfg(test)]
mod tests;

pub use advantage::{Baseline, Member, advantages};
pub use correction::{LogProbs, Loss, Term, batch_loss, terms};
pub use spread::{Ends, Spread, Token, abs_diff, by_staleness, effective_share, spread};

/// A measurement in millionths, as the core takes it. `None` for what is no number, or negative;
/// what is beyond 4294 counts as that.
#[must_use]
pub fn millionths(value: f64) -> Option<u32> {
    // `as` saturates.
    (value >= 0.0).then_some((value * 1e6 + 0.5) as u32)
}

//! Importance ratios: how far the policies that generated, serve and learn are apart.
//!
//! A simulation knows how old each token is, not what its log-probabilities are. `[world.drift]`
//! says how the one follows from the other: for a token sampled `k` versions ago, the logarithm of
//! learner/rollout has the variance
//!
//! ```text
//! sigma²(k) = sigma0² + a k^p          1 <= p <= 2
//! ```
//!
//! `sigma0` is what the two engines differ by, `a k^p` what the policy has moved.
//!
//! - **Tails.** A token's log-ratio is normal with a scale of its own, `(1 - probability)^tail`:
//!   what perturbs the logits moves a token by that much, and one that was certain not at all.
//!   Scales have a mean square of 1, so that `sigma²` is the variance over all tokens.
//! - **Means.** A token is drawn from the policy that generated it, so that its ratio has mean 1:
//!   the mean of the logarithm is minus half its variance.
//! - **Three ends.** Between versions a token's log-probability moves as fractional Brownian motion
//!   with Hurst exponent `p / 2`: `a |s - t|^p` is the variance between any two versions, so that
//!   learner/rollout is learner/deploy times deploy/rollout. The engines' difference is in what has
//!   the rollout at its end.
//! - **Mixing.** Each segment of a sample has its own `k`; the sequence's log-ratio is the sum.
//! - **Lessons.** Where the reward grows, tokens of good samples become more likely: a part of `sigma²`
//!   goes with the advantages, as far as clipping lets it.
//! - **Pace.** What a correction takes of the gradient slows training, and with it all movement.
//! - **Labels.** A share of samples has log-probabilities of other tokens, or zeros.
//!
//! It predicts what a trainer reports. It decides nothing, but that an adaptive bound follows it, step
//! by step; a scenario without it is simulated as if it did not exist. `docs/drift.md` says where the model comes from, and what it cannot say.

mod learning;
mod maximum;
mod metrics;
mod model;
mod observer;
mod path;
mod population;
mod segments;
mod sequence;
mod steps;
mod trained;

pub use learning::{Course, Lesson};
pub use metrics::{METRICS, STALENESS_COLUMNS};
pub use model::{Growth, Model, Stretch, Tokens};
pub use observer::{Drift, OfStaleness};
pub use path::Path;
pub use population::{Log, Population, Quantiles};
pub use sequence::{Ages, Fault, Sequence, draw};
pub use steps::Steps;
pub use trained::{Batch, gradient_kept};

pub(crate) use observer::Observer;

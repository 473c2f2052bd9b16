use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::engine::Sampling;

/// Draws a token from a row of logits: its id and the logarithm of the probability it was drawn
/// with. `drawn` counts the turn's tokens before it: each has a random number of its own, whatever
/// happened in between. `None`: the logits are not finite.
pub(super) fn sample(logits: &[f32], sampling: &Sampling, drawn: usize) -> Option<(u32, f32)> {
    if logits.is_empty() || !logits.iter().all(|logit| logit.is_finite()) {
        return None;
    }
    let best = (0..logits.len()).reduce(|a, b| if logits[b] > logits[a] { b } else { a })?;
    if sampling.temperature <= 0.0 {
        return Some((u32::try_from(best).ok()?, 0.0));
    }
    let temperature = f64::from(sampling.temperature);
    let scaled = |logit: f32| (f64::from(logit) - f64::from(logits[best])) / temperature;
    let weights: Vec<f64> = logits.iter().map(|&logit| libm::exp(scaled(logit))).collect();
    let total: f64 = weights.iter().sum();
    let mut left = unit(sampling.seed, drawn) * total;
    let mut chosen = best;
    for (id, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        chosen = id;
        left -= weight;
        if left < 0.0 {
            break;
        }
    }
    let logprob = scaled(logits[chosen]) - libm::log(total);
    Some((u32::try_from(chosen).ok()?, logprob as f32))
}

/// A number in [0, 1) for the n-th token of a seed.
fn unit(seed: u64, drawn: usize) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(drawn as u64);
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

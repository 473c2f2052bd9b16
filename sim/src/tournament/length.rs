//! How long the samples of a workload are, whatever becomes of them.

use headway_shared::config::SampleUnit;
use headway_shared::digest::Digest;

use crate::kernel::random::{Component, Key};
use crate::scenario::Scenario;

/// Lengths that stand for the distribution: at a heavy tail their mean is within half a percent.
const DRAWS: u64 = 1 << 17;

/// Mean tokens that the policy would generate for a sample of the workload, if none were cut short.
#[must_use]
pub(super) fn expected(scenario: &Scenario) -> f64 {
    let clients = &scenario.world.clients;
    let most = match clients.max_output_tokens {
        0 => f64::INFINITY,
        tokens => f64::from(tokens),
    };
    let key = Key::new(scenario.seed, Digest::of(b"tournament"), 0);
    let sum = (0..DRAWS).fold(0.0, |sum, ordinal| {
        let stream = &mut key.stream(Component::Request, ordinal);
        sum + clients.output_tokens.sample(stream, ordinal).min(most)
    });
    let turns = match scenario.config.policy_training.sample_unit {
        SampleUnit::Turn => 1.0,
        SampleUnit::Session => clients.turns.mean().max(1.0),
    };
    sum / DRAWS as f64 * turns
}

//! How far each train step moves the policy, beside the average one.

use super::model::Model;
use crate::kernel::random::{Component, Key};

/// What the train steps so far moved the policy by, as factors of what the average one does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    /// The normal of the last version's step.
    last: f64,
    /// By version, the sum of the factors of the steps before it.
    before: Vec<f64>,
}

impl Steps {
    /// That of steps that are all alike.
    pub const ALIKE: &'static Self = &Self { last: 0.0, before: Vec::new() };

    /// Draws the factors of the steps from all versions up to this one: `exp(s z - s²/2)`, whose mean is
    /// 1, with s the `step_spread` and z a standard normal, correlated with that of the step before.
    pub(super) fn reach(&mut self, model: &Model, key: &Key, version: u32) {
        let (spread, correlation) = (model.step_spread, model.step_correlation);
        if spread == 0.0 {
            return;
        }
        if self.before.is_empty() {
            self.before.push(0.0);
        }
        let rest = libm::sqrt(1.0 - correlation * correlation);
        for next in self.before.len() - 1..=version as usize {
            let own = key.stream(Component::StepDrift, next as u64).normal();
            self.last = if next == 0 { own } else { correlation * self.last + rest * own };
            let factor = libm::exp(spread * self.last - 0.5 * spread * spread);
            self.before.push(self.before[next] + factor);
        }
    }

    /// What the policy moved by from one version to another, as a factor of what it does on average: the
    /// mean over the steps between. Of the step that is under way, where both are the same.
    ///
    /// Squares of movements add up along a random walk, and of movements all one way the lengths do; for
    /// factors near 1 the mean of the factors stands for either.
    #[must_use]
    pub fn factor(&self, from: u32, to: u32) -> f64 {
        let from = from.min(to);
        let to = to.max(from + 1);
        match (self.before.get(from as usize), self.before.get(to as usize)) {
            (Some(before), Some(until)) => (until - before) / f64::from(to - from),
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use headway_shared::digest::Digest;

    use super::*;
    use crate::drift::model::{Stretch, Tokens};

    fn drawn(step_spread: f64, step_correlation: f64, to: u32) -> Steps {
        let tokens = Tokens { entropy: 0.5, tail: 1.0, tail_fade: 0.0 };
        let law = Stretch { from_step: 0, sigma0: 0.0, a: 0.01, p: 1.5, kept: 1.0, tokens };
        let model = Model {
            calibrated_from: None,
            stretches: vec![law],
            shifted_share: 0.0,
            padded_share: 0.0,
            sampled_tokens: 16,
            step_spread,
            step_correlation,
            growth: None,
        };
        let mut steps = Steps::default();
        // Some versions go by unseen.
        for version in (0..=to).step_by(3) {
            steps.reach(&model, &Key::new(1, Digest::of(b"steps"), 0), version);
        }
        steps
    }

    #[test]
    fn over_several_versions_it_is_the_mean_of_their_steps() {
        let steps = drawn(0.6, 0.5, 30);
        let own: Vec<f64> = (4..8).map(|version| steps.factor(version, version + 1)).collect();
        let mean = own.iter().fold(0.0, |sum, factor| sum + factor) / 4.0;
        assert!((steps.factor(4, 8) - mean).abs() < 1e-12);
        assert!(own.iter().all(|factor| (factor - mean).abs() > 1e-3), "{own:?}");
        assert_eq!(steps.factor(4, 4), own[0], "the step under way");
        assert_eq!((drawn(0.0, 0.0, 30).factor(2, 9), Steps::ALIKE.factor(2, 9)), (1.0, 1.0));
    }

    #[test]
    fn the_steps_have_the_spread_and_the_correlation_that_was_asked_for() {
        let (spread, correlation) = (0.6, 0.7);
        let steps = drawn(spread, correlation, 60_000);
        let normal = |version: u32| {
            (libm::log(steps.factor(version, version)) + 0.5 * spread * spread) / spread
        };
        let normals: Vec<f64> = (0..60_000).map(normal).collect();
        let mean = |of: &dyn Fn(usize) -> f64| {
            (0..normals.len() - 1).fold(0.0, |sum, at| sum + of(at)) / (normals.len() - 1) as f64
        };
        assert!(mean(&|at| normals[at]).abs() < 0.03);
        assert!((mean(&|at| normals[at] * normals[at]) - 1.0).abs() < 0.03);
        assert!((mean(&|at| normals[at] * normals[at + 1]) - correlation).abs() < 0.03);
    }
}

mod corrections;
mod faults;
mod steps;

use headway_shared::config::Correction;
use headway_shared::id::{GroupId, SampleId, StepId};
use headway_shared::ratio::Loss;
use headway_shared::version::{DeployVersion, LearnerVersion, RolloutVersion};

use super::learner::{Habits, Learner, Step};
use super::*;
use crate::trainer::{StepMetric, TrainSample};

/// Numbers that look random and are the same everywhere.
struct Draws(u64);

impl Draws {
    /// In [0, 1).
    fn unit(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, limit: u32) -> u32 {
        (self.unit() * f64::from(limit)) as u32
    }
}

fn rule(correction: Correction) -> Loss {
    Loss { correction, low: 0.8, high: 1.25 }
}

/// A sample of some version with made-up log-probabilities: a prompt, an answer, a tool's output in
/// between.
fn sample(id: u64, version: u32, draws: &mut Draws) -> TrainSample {
    let (prompt, length) = (2 + draws.below(3) as usize, 6 + draws.below(8) as usize);
    let trained = |place: usize| place >= prompt && place != prompt + 2;
    TrainSample {
        id: SampleId(id),
        group: Some(GroupId(id / 4)),
        tokens: (0..length).map(|_| draws.below(12)).collect(),
        loss_mask: (0..length).map(trained).collect(),
        rollout_logprobs: (0..length)
            .map(|place| if trained(place) { -0.05 - 3.0 * draws.unit() as f32 } else { f32::NAN })
            .collect(),
        versions: vec![RolloutVersion::new(version); length],
        reward: f64::from(draws.below(5)) / 4.0,
        masked: false,
    }
}

fn value(metrics: &[StepMetric], name: &str, staleness: Option<u32>) -> f64 {
    let is = |metric: &&StepMetric| metric.name == name && metric.staleness == staleness;
    let found = metrics.iter().find(is);
    found.unwrap_or_else(|| panic!("no {name} at {staleness:?} in {metrics:?}")).value
}

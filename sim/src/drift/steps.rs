//! How far each train step is from the average one.

use super::model::Model;
use crate::kernel::random::{Component, Key};

/// The standard normals of train steps, each correlated with the one before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    /// The learner version that the last step started from, and its normal.
    last: Option<(u32, f64)>,
}

impl Steps {
    /// That of the step that starts from this learner version. Versions never fall; those in between
    /// made steps too.
    pub(super) fn normal(&mut self, model: &Model, key: &Key, learner: u32) -> f64 {
        if model.step_spread == 0.0 {
            return 0.0;
        }
        let own = |version: u32| key.stream(Component::StepDrift, u64::from(version)).normal();
        let correlation = model.step_correlation;
        let normal = match self.last.filter(|_| correlation > 0.0) {
            None => own(learner),
            Some((last, normal)) => {
                let rest = libm::sqrt(1.0 - correlation * correlation);
                (last + 1..=learner).fold(normal, |z, at| correlation * z + rest * own(at))
            }
        };
        self.last = Some((learner, normal));
        normal
    }
}

//! Why samples are discarded: only for what can be.

use super::{Checked, Watch, must};
use crate::action::Discard;
use crate::config::{Aborted, DropPolicy, GateKind, GroupFilter, MILLION, Queue, Surplus};
use crate::id::SampleId;
use crate::time::Span;

impl Watch {
    /// A sample leaves for a reason.
    pub(super) fn discards(&mut self, id: SampleId, reason: Discard) -> Checked {
        must!(self.samples.contains_key(&id), "{id} is discarded, and is none");
        let may = self.may_discard(reason);
        must!(may, "{id} is discarded as {reason}, for which there is no reason");
        if matches!(reason, Discard::Tie | Discard::ZeroScore | Discard::JudgeFailed) {
            self.check_rejected(id, reason)?;
        }
        self.samples.remove(&id);
        self.discarded += 1;
        Ok(())
    }

    /// Whether something asks for it, now or under an earlier configuration.
    fn may_discard(&self, reason: Discard) -> bool {
        let drops = |queue: &Queue| {
            matches!(queue.drop_policy, DropPolicy::DropOldest | DropPolicy::DropNewest)
        };
        self.ever(|config| {
            let training = &config.policy_training;
            match reason {
                Discard::Late => config.is_strict() || config.adaptive.is_on(),
                Discard::StaleFilter => training.stale_filter_steps.is_some(),
                Discard::StaleParked => training.park_after > Span::ZERO,
                Discard::Aborted => {
                    let aborted = config.policy_serving.aborted;
                    self.failed || matches!(aborted, Aborted::Discard | Aborted::KeepAsFinal)
                }
                Discard::RolloutQueueFull => drops(&config.queue.rollout),
                Discard::OutputQueueFull => drops(&config.queue.output),
                Discard::GroupTooSmall => training.group_size > 1,
                Discard::Straggler => {
                    training.straggler_wait > Span::ZERO || training.group_timeout > Span::ZERO
                }
                Discard::ZeroVariance => training.filter == GroupFilter::ZeroVariance,
                Discard::Surplus => {
                    let dropped = training.surplus == Surplus::Drop;
                    training.gate == GateKind::Openclaw
                        || dropped && training.over_sampling > MILLION
                }
                Discard::StepFailed => self.step_failures > training.train_retries,
                Discard::LostWeights => self.restored,
                _ => true,
            }
        })
    }
}

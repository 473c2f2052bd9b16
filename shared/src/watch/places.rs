//! Who may have a place: the gate's arithmetic and the queues' promises, counted anew.

use super::{Checked, Watch, must};
use crate::action::Refusal;
use crate::config::{BatchCounts, DropPolicy, GateKind, MILLION, Queue};
use crate::core::Scheduler;
use crate::id::{ReplicaId, SampleId};

impl Watch {
    /// Where each sample has a place of its own, got by the gate alone.
    fn places_are_plain(&self) -> bool {
        !self.ever(|config| {
            config.policy_training.group_size > 1
                || !config.reward_judging.fire_on_turn_end
                || config.adaptive.is_on()
        })
    }

    /// Samples that are parked at most, at any moment of the last input.
    fn parked_at_most(&self, core: &Scheduler) -> u64 {
        let (parked, times) = self.parked;
        parked + (core.ledger().parkings - times)
    }

    /// Places that the gate in force gives to weights that are so far behind; `None`: another one.
    fn places(&self, lag: u64) -> Option<u64> {
        let training = &self.config().policy_training;
        let batch = u64::from(training.batch_size);
        match training.gate {
            GateKind::Headway => {
                let versions = u64::from(training.max_head_off_policyness) + 1;
                Some(versions.saturating_sub(lag).saturating_mul(batch))
            }
            GateKind::Sync => Some(if lag == 0 { batch } else { 0 }),
            _ => None,
        }
    }

    fn lag_of(&self, replica: ReplicaId) -> Option<u64> {
        let engine = self.engines.get(&replica).filter(|it| it.alive && it.whole)?;
        Some(u64::from(self.learner.saturating_sub(engine.holds)))
    }

    /// A sample may get a place with the weights of this replica.
    pub(super) fn check_place(
        &self,
        id: SampleId,
        replica: ReplicaId,
        core: &Scheduler,
    ) -> Checked {
        let lag = self.lag_of(replica);
        let Some((lag, places)) = lag.and_then(|lag| Some((lag, self.places(lag)?))) else {
            return Ok(());
        };
        if !self.places_are_plain() {
            return Ok(());
        }
        let training = &self.config().policy_training;
        let beyond = u64::from(training.over_sampling.saturating_sub(MILLION));
        let more = (beyond * u64::from(training.batch_size)).div_ceil(u64::from(MILLION));
        let most = if places > 0 { places.saturating_add(more) } else { 0 };
        let taken = (self.samples.len() as u64).saturating_sub(self.parked_at_most(core));
        must!(
            taken < most,
            "{id} is admitted to weights {lag} behind: {taken} places of {most} are taken"
        );
        Ok(())
    }

    /// Nobody may be told that the gate has no place while it has one.
    pub(super) fn check_stale(&self, core: &Scheduler) -> Checked {
        let training = &self.config().policy_training;
        let exact = self.places_are_plain()
            && self.parked_at_most(core) == 0
            && training.batch_counts == BatchCounts::Accepted
            && self.waiting.is_empty()
            && !self.restored;
        if !exact || self.reconfigured() {
            return Ok(());
        }
        let taken = self.samples.len() as u64;
        let oldest = training.max_head_off_policyness.min(self.filter());
        for &replica in self.engines.keys() {
            let open = core.replica(replica).is_some_and(|view| view.open);
            let Some(lag) = self.lag_of(replica).filter(|&lag| open && lag <= u64::from(oldest))
            else {
                continue;
            };
            let places = self.places(lag).unwrap_or(0);
            let taken_of = format!("{taken} of {places} places are taken");
            must!(taken >= places, "a request is refused as {}, and {taken_of}", Refusal::Stale);
        }
        Ok(())
    }

    fn filter(&self) -> u32 {
        self.config().policy_training.stale_filter_steps.unwrap_or(u32::MAX)
    }

    /// Queues that promise room at admission promise no more than they have.
    pub(super) fn check_room(&self, core: &Scheduler) -> Checked {
        if self.reconfigured() || self.ever(|config| !config.reward_judging.fire_on_turn_end) {
            return Ok(());
        }
        let promises = |queue: &Queue| queue.drop_policy == DropPolicy::Reject;
        let queues = &self.config().queue;
        let parked = core.ledger().parked();
        let most = u64::from(queues.rollout.max_size);
        if promises(&queues.rollout) && self.samples.len() as u64 > most {
            let judged = self.samples.values().filter(|life| life.ballot.is_some()).count();
            let coming = (self.samples.len() - judged) as u64;
            let coming = coming.saturating_sub(parked);
            must!(coming <= most, "{coming} samples have room in a rollout queue of {most}");
        }
        let most = u64::from(queues.output.max_size);
        let whole = !self.gave_back && !self.restored;
        if promises(&queues.output) && whole && self.samples.len() as u64 > most {
            let training = self.samples.values().filter(|life| life.in_step).count();
            let coming = ((self.samples.len() - training) as u64).saturating_sub(parked);
            must!(coming <= most, "{coming} samples have room in an output queue of {most}");
        }
        Ok(())
    }
}

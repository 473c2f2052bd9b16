//! What must not wait, and what must be over where a run is.

use super::{Checked, Watch, must};
use crate::config::GateKind;
use crate::core::Scheduler;
use crate::time::Time;

/// Waiting requests that are asked about after an input: each costs a copy of the core.
const ASKED: usize = 2;

impl Watch {
    /// Replicas that serve take new turns, unless something closes them.
    pub(super) fn check_open(&self, core: &Scheduler) -> Checked {
        if core.publication().is_some() {
            return Ok(());
        }
        for &replica in self.engines.keys() {
            let shut = core.replica(replica).is_some_and(|view| view.up && !view.open);
            must!(!shut, "{replica} takes no new turns, and no publication is under way");
        }
        let serves = core.gauges().replicas_up > 0;
        let window = self.ever(|config| config.policy_training.gate == GateKind::Openclaw);
        let reason = self.paused || core.error().is_some() || window;
        let closed = serves && core.gauges().closed && !reason;
        must!(!closed, "requests get a 503, and no publication is under way");
        Ok(())
    }

    /// Nobody waits for what there is.
    pub(super) fn check_woken(&self, now: Time, core: &Scheduler) -> Checked {
        // Who prefers a replica that is loading waits for it, though another would do.
        if core.error().is_some() || !self.loads.is_empty() {
            return Ok(());
        }
        let grouped = self.ever(|config| config.policy_training.group_size > 1);
        let mut behind = grouped;
        for &request in self.waiting.iter().take(ASKED) {
            let Some(asked) = core.deliberate_again(now, request) else { continue };
            // One that needs a place waits for those before it.
            if asked.needs_place && std::mem::replace(&mut behind, true) {
                continue;
            }
            let may = asked.verdict.is_none();
            must!(!may, "{request} waits, and there is a place and a replica for it");
        }
        Ok(())
    }

    /// The run is over, and nothing is left of it.
    ///
    /// # Errors
    /// What has not ended, in a sentence.
    pub fn at_end(&self, core: &Scheduler) -> Result<(), String> {
        if self.failed {
            return Ok(());
        }
        let waits = core.works().next().map(|(work, _)| work);
        must!(waits.is_none(), "at the end the core waits for {waits:?}");
        let Some(calm) = self.calm else { return Ok(()) };
        let late = |since: u64| since > calm;
        let turn = self.generations.iter().find(|(_, it)| late(it.since)).map(|(key, _)| *key);
        if let Some((request, attempt)) = turn {
            return Err(format!("attempt {attempt} of {request} has started and never ended"));
        }
        let vote = self.asked.iter().find(|(_, it)| late(it.since)).map(|(vote, _)| *vote);
        must!(vote.is_none(), "a vote has started and never ended: {vote:?}");
        Ok(())
    }
}

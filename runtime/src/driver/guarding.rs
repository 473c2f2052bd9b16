//! The run held to an envelope: what the guard says is logged, and done.

use std::sync::Arc;

use headway_shared::action::Action;
use headway_shared::config::GuardSettings;
use headway_shared::guard::{Guard, Report, Verdict};
use headway_shared::input::{Input, Operator};
use headway_shared::time::Time;

use super::Driver;
use super::narrator::Note;

impl Driver {
    /// Holds the run to an envelope from now on; `None`: to none.
    pub(super) fn hold_to(&mut self, settings: Option<GuardSettings>) {
        let now = self.clock.now();
        self.guard = settings.map(|settings| Guard::new(settings, now, &self.scheduler));
        self.found = self.guard.as_ref().map(|guard| Arc::new(guard.found().clone()));
    }

    /// The guard sees what the core has handled.
    pub(super) fn guard_observes(&mut self, now: Time, input: &Input, actions: &[Action]) {
        let Some(guard) = &mut self.guard else { return };
        let deviated = guard.found().deviating;
        let report = guard.observe(now, input, actions, &self.scheduler);
        self.judged(deviated, report);
    }

    /// When a window ends though nothing happens.
    pub(super) fn guard_due(&self) -> Option<Time> {
        self.guard.as_ref().and_then(Guard::due).filter(|_| !self.is_closed())
    }

    /// Time has passed.
    pub(super) fn guard_passes(&mut self) {
        let now = self.clock.now();
        if self.guard_due().is_none_or(|due| now < due) {
            return;
        }
        let Some(guard) = &mut self.guard else { return };
        let deviated = guard.found().deviating;
        let report = guard.pass(now, &self.scheduler);
        self.judged(deviated, report);
    }

    /// Says when a deviation begins and when it is over.
    fn judged(&mut self, deviated: bool, report: Option<Report>) {
        let Some(guard) = &self.guard else { return };
        let deviates = guard.found().deviating;
        if report.is_some() || deviates != deviated {
            self.found = Some(Arc::new(guard.found().clone()));
        }
        let Some(report) = report else { return };
        self.roll_back_due |= report.verdict == Verdict::RollBack;
        if deviates != deviated {
            self.narrator.say(Note::Guard { report });
        }
    }

    /// Goes back to the previous configuration, if the guard has said so: an input like any other.
    pub(super) fn roll_back_if_due(&mut self) {
        if !std::mem::take(&mut self.roll_back_due) || self.ending.is_some() {
            return;
        }
        if let Some(previous) = self.guard.as_ref().and_then(Guard::previous) {
            let previous = Box::new(previous.clone());
            self.operate(Operator::Reconfigure(previous));
            // The envelope is not of this configuration: whoever asks what is in force gets none.
            self.options.guard = None;
        }
    }
}

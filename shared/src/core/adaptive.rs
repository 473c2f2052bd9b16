//! The adaptive bound: η follows what the trainer measures, between two limits.
//!
//! Additive increase while the signal is better than its target, multiplicative decrease where it
//! is worse. Of the steps that a decision is made of, the lowest and the highest are left out, so
//! that one noisy step moves nothing. After a move from η at learner version v, the steps from
//! versions up to v + η train what was admitted before it: they do not count.
//!
//! O(1) in time and memory per measurement.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::Scheduler;
use crate::config::{Adaptive as Settings, Config, MILLION, Signal};
use crate::id::StepId;
use crate::input::Measured;
use crate::version::LearnerVersion;

/// A move of the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundMove {
    /// The learner's version when it moved.
    pub at: LearnerVersion,
    /// η before.
    pub from: u32,
    /// η from then on.
    pub to: u32,
    /// What the steps said that it was decided by, in millionths.
    pub signal: u32,
}

/// The bound in force, and what the next decision will be made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bound {
    /// η in force.
    eta: u32,
    /// The last step that made a version and has not been measured, and the version that it
    /// started from.
    unmeasured: Option<(StepId, LearnerVersion)>,
    /// Steps count from this version on.
    counts_from: u32,
    window: Window,
    last_move: Option<BoundMove>,
}

/// Measurements of some steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Window {
    steps: u32,
    sum: u64,
    lowest: u32,
    highest: u32,
}

impl Window {
    fn add(&mut self, value: u32) {
        self.lowest = if self.steps == 0 { value } else { self.lowest.min(value) };
        self.highest = self.highest.max(value);
        self.steps += 1;
        self.sum += u64::from(value);
    }

    /// The mean without the lowest and the highest, where that leaves any.
    fn mean(&self) -> u32 {
        let (sum, steps) = match self.steps {
            0..3 => (self.sum, self.steps.max(1)),
            steps => (self.sum - u64::from(self.lowest) - u64::from(self.highest), steps - 2),
        };
        // Not above the highest.
        (sum / u64::from(steps)) as u32
    }
}

impl Bound {
    pub(crate) fn new(config: &Config) -> Self {
        let eta = config.policy_training.max_head_off_policyness;
        let mut bound = Self {
            eta,
            unmeasured: None,
            counts_from: 0,
            window: Window::default(),
            last_move: None,
        };
        bound.start_anew(LearnerVersion::default(), eta);
        bound
    }

    /// The next decision is made of steps that train what is admitted from version `learner` on;
    /// until then η was `before`.
    fn start_anew(&mut self, learner: LearnerVersion, before: u32) {
        self.window = Window::default();
        self.counts_from = learner.number().saturating_add(before).saturating_add(1);
    }
}

/// Where η goes from `eta`, for a signal that was so.
fn next(settings: &Settings, eta: u32, signal: u32) -> u32 {
    let larger_is_better = settings.signal == Signal::Ess;
    let worse = if larger_is_better { signal < settings.target } else { signal > settings.target };
    let moved = if worse {
        // Below 1 times a whole number, rounded down: it falls by at least 1.
        (u64::from(eta) * u64::from(settings.decrease) / u64::from(MILLION)) as u32
    } else if signal == settings.target {
        eta
    } else {
        eta.saturating_add(settings.increase)
    };
    moved.min(settings.max).max(settings.min)
}

impl Scheduler {
    /// η in force, in learner versions: `max_head_off_policyness`, unless it is adaptive.
    #[must_use]
    pub fn eta_in_force(&self) -> u32 {
        self.bound.eta
    }

    /// The last move of an adaptive η.
    #[must_use]
    pub fn last_bound_move(&self) -> Option<BoundMove> {
        self.bound.last_move
    }

    /// A step has made a version, from version `started`: its measurement may come.
    pub(super) fn expect_measurement(&mut self, step: StepId, started: LearnerVersion) {
        if self.config.adaptive.is_on() {
            self.bound.unmeasured = Some((step, started));
        }
    }

    #[cold]
    pub(super) fn handle_measured(&mut self, measured: &Measured) {
        let adaptive = &self.config.adaptive;
        let expected = self.bound.unmeasured.filter(|(step, _)| *step == measured.step);
        let Some((_, started)) = expected.filter(|_| adaptive.is_on()) else {
            return self.ignore();
        };
        self.bound.unmeasured = None;
        let Some(value) = measured.of(adaptive.signal) else { return };
        if started.number() < self.bound.counts_from {
            return;
        }
        self.bound.window.add(value);
        if self.bound.window.steps < adaptive.every_steps {
            return;
        }
        let signal = self.bound.window.mean();
        let to = next(adaptive, self.bound.eta, signal);
        self.bound.window = Window::default();
        self.move_bound(to, Some(signal));
    }

    /// From here on η is `to`: for what is admitted; what was admitted keeps its bound.
    fn move_bound(&mut self, to: u32, signal: Option<u32>) {
        let from = self.bound.eta;
        let moves = match to.cmp(&from) {
            Ordering::Equal => return,
            Ordering::Greater => &mut self.ledger.bound_raised,
            Ordering::Less => &mut self.ledger.bound_lowered,
        };
        if let Some(signal) = signal {
            *moves += 1;
            self.bound.last_move = Some(BoundMove { at: self.learner, from, to, signal });
        }
        self.bound.eta = to;
        self.bound.start_anew(self.learner, from);
        self.lowest_limit = self.lowest_limit.min(self.limits().lowest());
        self.admission_due = true;
    }

    /// The configuration was another: η stays in force where it is adaptive and nobody has set
    /// another one, within the limits.
    pub(super) fn rebind(&mut self, old: &Config) {
        let set = |config: &Config| config.policy_training.max_head_off_policyness;
        let (adaptive, eta) = (&self.config.adaptive, set(&self.config));
        let stays = adaptive.is_on() && set(old) == eta;
        let to = if stays { self.bound.eta.min(adaptive.max).max(adaptive.min) } else { eta };
        if old.adaptive != self.config.adaptive {
            self.bound.window = Window::default();
        }
        if !adaptive.is_on() {
            self.bound.unmeasured = None;
        }
        self.move_bound(to, None);
    }

    /// The policies that were measured no longer exist.
    pub(super) fn forget_measurements(&mut self) {
        self.bound.unmeasured = None;
        self.bound.start_anew(self.learner, self.bound.eta);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(signal: Signal) -> Settings {
        Settings { signal, target: 20_000, min: 1, max: 8, ..Settings::default() }
    }

    #[test]
    fn one_noisy_step_does_not_move_the_mean() {
        let mut window = Window::default();
        for value in [10, 12, u32::MAX, 11, 9] {
            window.add(value);
        }
        assert_eq!(window.mean(), 11);
    }

    #[test]
    fn a_mean_of_two_leaves_nothing_out() {
        let mut window = Window::default();
        window.add(10);
        assert_eq!(window.mean(), 10);
        window.add(u32::MAX);
        assert_eq!(window.mean(), (u32::MAX / 2) + 5);
    }

    #[test]
    fn it_rises_by_steps_and_falls_by_a_factor_within_its_limits() {
        let diff = settings(Signal::LogprobAbsDiff);
        assert_eq!(next(&diff, 4, 10_000), 5);
        assert_eq!(next(&diff, 8, 10_000), 8);
        assert_eq!(next(&diff, 4, 20_000), 4);
        assert_eq!(next(&diff, 7, 30_000), 3);
        assert_eq!(next(&diff, 1, 30_000), 1);
    }

    #[test]
    fn more_effective_samples_are_better() {
        let ess = settings(Signal::Ess);
        assert_eq!(next(&ess, 4, 30_000), 5);
        assert_eq!(next(&ess, 4, 20_000), 4);
        assert_eq!(next(&ess, 4, 10_000), 2);
    }

    #[test]
    fn a_factor_just_below_one_still_lowers_it() {
        let slow = Settings { decrease: 999_999, ..settings(Signal::LogprobAbsDiff) };
        assert_eq!(next(&slow, 8, 30_000), 7);
    }
}

//! The trainer: how long a step takes, what lengthens it, and when it fails.

use headway_shared::id::StepId;
use headway_shared::input::Input;
use headway_shared::time::{Span, Time};
use headway_shared::version::LearnerVersion;

use super::event::{Bus, Event, span};
use super::settings::{StepTime, Trainer as Settings};
use crate::kernel::random::Component;

#[derive(Clone, Copy, Debug)]
struct Running {
    step: StepId,
    ok: bool,
    /// The version that it makes.
    version: LearnerVersion,
    end: Time,
}

/// The trainer.
#[derive(Debug)]
pub(super) struct Trainer {
    settings: Settings,
    failed_share: f64,
    running: Option<Running>,
    stamp: u32,
    /// A pause that the next step takes over.
    pause: Span,
    /// The newest version that was made.
    learner: LearnerVersion,
}

impl Trainer {
    /// No step fails any more.
    pub(super) fn calm(&mut self) {
        self.failed_share = 0.0;
    }

    pub(super) fn new(settings: Settings, failed_share: f64) -> Self {
        Self {
            settings,
            failed_share,
            running: None,
            stamp: 0,
            pause: Span::ZERO,
            learner: LearnerVersion::default(),
        }
    }

    /// Whether a step is running.
    pub(super) const fn is_training(&self) -> bool {
        self.running.is_some()
    }

    /// The core starts a step on so many tokens, prompts included.
    pub(super) fn start(
        &mut self,
        bus: &mut Bus,
        step: StepId,
        learner: LearnerVersion,
        tokens: u64,
    ) {
        let Settings { step: law, evaluate_every, evaluate, checkpoint_every, checkpoint } =
            &self.settings;
        let stream = &mut bus.key.stream(Component::Step, step.0);
        let mut secs = match law {
            StepTime::Time(time) => time.sample(stream, step.0),
            StepTime::Tokens { base_sec, sec_per_token, gpus } => {
                base_sec + sec_per_token * tokens as f64 / f64::from(*gpus)
            }
        };
        let ok = self.failed_share == 0.0 || !stream.chance(self.failed_share);
        let version = learner.next();
        if !ok {
            // A step fails somewhere on its way.
            secs *= stream.uniform();
        } else {
            if every(*evaluate_every, version) {
                secs += evaluate.sample(stream, step.0);
            }
            if every(*checkpoint_every, version) {
                secs += checkpoint.sample(stream, step.0);
            }
        }
        let end = bus.now + span(secs) + std::mem::take(&mut self.pause);
        self.run(bus, Running { step, ok, version, end });
    }

    /// A step is due.
    pub(super) fn due(&mut self, bus: &mut Bus, stamp: u32) {
        if stamp != self.stamp {
            return;
        }
        let Some(Running { step, ok, version, .. }) = self.running.take() else { return };
        if ok {
            self.learner = version;
            if every(self.settings.checkpoint_every, version) {
                bus.tell(Input::Checkpointed { version });
            }
        }
        bus.tell(Input::StepEnded { step, ok });
    }

    /// The core gives a step up.
    pub(super) fn cancel(&mut self, step: StepId) {
        if self.running.is_some_and(|running| running.step == step) {
            self.stamp = self.stamp.wrapping_add(1);
            self.running = None;
        }
    }

    /// The step that is running, or the next one, takes longer.
    pub(super) fn pause(&mut self, bus: &mut Bus, lasting: Span) {
        match self.running.take() {
            Some(running) => self.run(bus, Running { end: running.end + lasting, ..running }),
            None => self.pause = self.pause + lasting,
        }
    }

    /// The learner goes back by so many versions, to version 0 at most: what it was training is
    /// void.
    pub(super) fn roll_back(&mut self, bus: &mut Bus, steps: u32) {
        let checkpoint = LearnerVersion::new(self.learner.number().saturating_sub(steps));
        if checkpoint == self.learner {
            return;
        }
        self.stamp = self.stamp.wrapping_add(1);
        self.running = None;
        // Versions go on upward: the restored weights are a new version.
        self.learner = self.learner.next();
        bus.tell(Input::Restored { checkpoint });
    }

    fn run(&mut self, bus: &mut Bus, running: Running) {
        self.stamp = self.stamp.wrapping_add(1);
        self.running = Some(running);
        bus.at(running.end, Event::Step { stamp: self.stamp });
    }
}

const fn every(interval: u32, version: LearnerVersion) -> bool {
    interval > 0 && version.number().is_multiple_of(interval)
}

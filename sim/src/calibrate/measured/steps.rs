//! Train steps: how long each took, on how many tokens.

use headway_shared::action::Action;
use headway_shared::core::Scheduler;
use headway_shared::id::StepId;
use headway_shared::input::Input;
use headway_shared::time::Time;

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEnd {
    /// It made a version.
    Done,
    /// It failed.
    Failed,
    /// It was given up at its time limit, or the learner went back while it ran.
    Cancelled,
    /// The record ends before it.
    Open,
}

/// A train step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When it started.
    pub at: Time,
    /// Until when it is known.
    pub until: Time,
    /// How it ended.
    pub end: StepEnd,
    /// Tokens of its batch, prompts included.
    pub tokens: u64,
}

/// All train steps, in order.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// Those that are over or cut off.
    pub steps: Vec<Step>,
    open: Option<(StepId, Step)>,
}

impl Steps {
    /// How many made a version.
    #[must_use]
    pub fn done(&self) -> usize {
        self.steps.iter().filter(|step| step.end == StepEnd::Done).count()
    }

    /// When the `count`-th that made a version ended; `None`: there are fewer.
    #[must_use]
    pub fn ended(&self, count: usize) -> Option<Time> {
        let mut done = self.steps.iter().filter(|step| step.end == StepEnd::Done);
        done.nth(count.checked_sub(1)?).map(|step| step.until)
    }

    pub(super) fn observe(
        &mut self,
        now: Time,
        input: &Input,
        actions: &[Action],
        core: &Scheduler,
    ) {
        match input {
            Input::StepEnded { step, ok } => {
                let end = if *ok { StepEnd::Done } else { StepEnd::Failed };
                self.end(Some(*step), now, end);
            }
            Input::Restored { .. } => self.end(None, now, StepEnd::Cancelled),
            _ => {}
        }
        for action in actions {
            match *action {
                Action::StartStep { step, .. } => {
                    self.end(None, now, StepEnd::Cancelled);
                    let tokens = core
                        .batch()
                        .map(|sample| u64::from(sample.prompt_tokens) + u64::from(sample.tokens))
                        .fold(0, u64::saturating_add);
                    let started = Step { at: now, until: now, end: StepEnd::Open, tokens };
                    self.open = Some((step, started));
                }
                Action::CancelStep { step } => self.end(Some(step), now, StepEnd::Cancelled),
                _ => {}
            }
        }
    }

    /// The step that runs is over, if it is this one.
    fn end(&mut self, step: Option<StepId>, now: Time, end: StepEnd) {
        let runs = self.open.take_if(|(open, _)| step.is_none_or(|step| step == *open));
        self.steps.extend(runs.map(|(_, step)| Step { until: now, end, ..step }));
    }

    pub(super) fn finish(&mut self, end: Time) {
        self.end(None, end, StepEnd::Open);
    }
}

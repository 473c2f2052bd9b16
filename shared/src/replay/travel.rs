//! Time travel: a recorded run up to an instant, with the core as it was before and after each input.

use crate::action::Action;
use crate::core::Scheduler;
use crate::input::Input;
use crate::record::Decisions;
use crate::source::{RunSource, SourceError};
use crate::time::Time;

/// Who looks on.
pub trait Witness {
    /// The core is about to handle an input.
    fn before(&mut self, _at: Time, _input: &Input, _core: &Scheduler) {}

    /// The core has handled input number `index` of the run, and gave these actions.
    fn after(&mut self, index: u64, at: Time, input: &Input, actions: &[Action], core: &Scheduler);
}

/// Where a journey ended.
#[derive(Clone, Debug)]
pub struct Journey {
    /// The core as it is there.
    pub core: Scheduler,
    /// How many inputs of the run have been handled, those before the record's first included.
    pub inputs: u64,
    /// The time of the last of them.
    pub end: Time,
    /// The record goes on behind that.
    pub more: bool,
    /// The first input on which this build decides otherwise than the record says, with its time:
    /// from there on, what is seen is this build's and not the run's.
    pub differs: Option<(u64, Time)>,
}

/// Handles every input up to `until` (`None`: all), also of a record that another decision version
/// decided: see [`Journey::differs`].
///
/// # Errors
/// The record cannot be read; the witnesses have seen what comes before.
pub fn travel(
    source: &dyn RunSource,
    until: Option<Time>,
    witnesses: &mut [&mut dyn Witness],
) -> Result<Journey, SourceError> {
    let core = source.core()?;
    let (inputs, end) = (source.first_input(), core.now());
    let mut journey = Journey { core, inputs, end, more: false, differs: None };
    let mut actions = Vec::new();
    source.decided(&mut |at, input, recorded| {
        if until.is_some_and(|until| at > until) || journey.more {
            journey.more = true;
            return;
        }
        witnesses.iter_mut().for_each(|witness| witness.before(at, input, &journey.core));
        journey.core.handle(at, input);
        actions.clear();
        actions.extend(std::iter::from_fn(|| journey.core.poll_action()));
        let index = journey.inputs;
        let digest = Decisions::default().add(at, &actions);
        if recorded.is_some_and(|recorded| recorded != digest) {
            journey.differs.get_or_insert((index, at));
        }
        for witness in witnesses.iter_mut() {
            witness.after(index, at, input, &actions, &journey.core);
        }
        journey.inputs += 1;
        journey.end = at;
    })?;
    Ok(journey)
}

//! Runs to read: what commands that analyse a run ask of it, whether it was live or simulated.

use std::error::Error;

use crate::action::Action;
use crate::config::Config;
use crate::core::Scheduler;
use crate::digest::Digest;
use crate::id::StepId;
use crate::input::Input;
use crate::record::{DECISION_VERSION, RecordError};
use crate::time::Time;

/// A number that a train step reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Reported {
    /// The step.
    pub step: StepId,
    /// What was measured, such as `probe_log_square`.
    pub name: String,
    /// The staleness of the tokens that it is about, in versions; `None`: the whole step.
    pub staleness: Option<u32>,
    /// How much. Finite.
    pub value: f64,
}

/// Why a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The record of a simulated run cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// It is of a core that may decide otherwise.
    #[error(
        "the record has decision version {found}; this build decides as version {DECISION_VERSION}"
    )]
    OtherDecisions {
        /// Its decision version.
        found: u32,
    },
    /// Another kind of record says so.
    #[error(transparent)]
    Other(Box<dyn Error + Send + Sync>),
}

/// A run, live or simulated, as commands that analyse it read it: its inputs for a core that
/// decides as it was decided, and what its train steps reported.
pub trait RunSource {
    /// What tables call it: the name of its file.
    fn name(&self) -> String;

    /// The configuration at its beginning.
    fn config(&self) -> &Config;

    /// The core before the first of [`inputs`](Self::inputs).
    ///
    /// # Errors
    /// It cannot be restored.
    fn core(&self) -> Result<Scheduler, SourceError>;

    /// Every input with its time, in order, to `each`.
    ///
    /// # Errors
    /// The record is damaged or cut short; what comes before has been given to `each`.
    fn inputs(&self, each: &mut dyn FnMut(Time, &Input)) -> Result<(), SourceError>;

    /// The same, with the digest of the actions that each caused when it was recorded, where that is
    /// known: [`Decisions::add`](crate::record::Decisions::add).
    ///
    /// # Errors
    /// As [`inputs`](Self::inputs).
    fn decided(
        &self,
        each: &mut dyn FnMut(Time, &Input, Option<Digest>),
    ) -> Result<(), SourceError> {
        self.inputs(&mut |at, input| each(at, input, None))
    }

    /// The number of the first of its inputs in the run: above 0 where older ones were trimmed.
    fn first_input(&self) -> u64 {
        0
    }

    /// How many inputs there are to read, for whoever waits for them; `None`: it is not known.
    fn length(&self) -> Option<u64> {
        None
    }

    /// The decision version that decided it.
    fn decision_version(&self) -> u32 {
        DECISION_VERSION
    }

    /// What train steps reported, in the order of steps; of a simulated run nothing.
    ///
    /// # Errors
    /// It cannot be read.
    fn reported(&self) -> Result<Vec<Reported>, SourceError>;
}

/// What sees a run as an observer of it does: the time, an input, the actions it caused, and the core
/// after it.
pub type Seen<'a> = dyn FnMut(Time, &Input, &[Action], &Scheduler) + 'a;

/// Feeds the inputs of a run to a core. `each` sees what an observer of the run sees: the time, the
/// input, the actions it caused, and the core after it. Returns the time of the last input.
///
/// Decisions are not compared with those of the record: [`replay`](crate::replay) does that.
///
/// # Errors
/// The run cannot be read to its end; `each` has seen what comes before.
pub fn follow(source: &dyn RunSource, each: &mut Seen<'_>) -> Result<Time, SourceError> {
    let mut core = source.core()?;
    let mut actions = Vec::new();
    source.inputs(&mut |at, input| {
        core.handle(at, input);
        actions.clear();
        actions.extend(std::iter::from_fn(|| core.poll_action()));
        each(at, input, &actions, &core);
    })?;
    Ok(core.now())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::record::{Decisions, Header, RecordedRun, Writer};
    use crate::testing::{Choice, World};

    fn choice(number: u64) -> Choice {
        let random = crate::digest::mix(number);
        (random as u8, (random >> 8) as u8, (random >> 16) as u16)
    }

    /// A record of a run in which anything happens, and what the run decided.
    fn recorded() -> (Vec<u8>, Decisions) {
        let mut config = Config::default();
        config.policy_training.batch_size = 2;
        let header = Header::new("anything", Digest::new(), 1, 0, &config);
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &header).unwrap();
        let mut world = World::new(&config);
        let mut start = World::start();
        for number in 0..200 {
            let input = start.next().unwrap_or_else(|| world.next(choice(number)));
            let actions = world.handle(&input);
            writer.input(world.now, &input, &actions).unwrap();
        }
        let decisions = writer.finish().unwrap();
        (bytes, decisions)
    }

    #[test]
    fn following_a_recorded_run_sees_what_was_decided_in_it() {
        let (bytes, decided) = recorded();
        let run = RecordedRun::open("any.record", bytes).unwrap();
        let mut seen = Decisions::default();
        let end = follow(&run, &mut |at, _, actions, core| {
            assert_eq!(core.now(), at);
            seen.add(at, actions);
        });
        assert!(end.unwrap() > Time::ZERO);
        assert_eq!(seen, decided);
        assert_eq!(run.reported().unwrap(), []);
        assert_eq!(run.name(), "any.record");
    }

    #[test]
    fn a_run_that_is_cut_short_is_an_error_behind_what_is_whole() {
        let (mut bytes, _) = recorded();
        bytes.truncate(bytes.len() - 200);
        let run = RecordedRun::open("any.record", bytes).unwrap();
        let mut seen = 0_u64;
        let error = follow(&run, &mut |_, _, _, _| seen += 1).unwrap_err();
        assert!(error.to_string().starts_with("the record is cut short at entry "), "{error}");
        assert!(seen > 100);
    }
}

//! Replay: feeds the inputs of a record to a fresh core, which must decide the same.
//!
//! [`travel()`] goes to an instant of a run, and shows it to witnesses: [`LifeOf`] a sample, [`WhyOf`] a
//! request.

mod life;
mod travel;
mod why;

pub use life::{Event, LifeOf};
pub use travel::{Journey, Witness, travel};
pub use why::WhyOf;

use std::fmt;
use std::io::Read;

use crate::action::Action;
use crate::config::Config;
use crate::core::Scheduler;
use crate::digest::Digest;
use crate::input::Input;
use crate::record::{DECISION_VERSION, Decisions, Entry, Reader, RecordError};
use crate::snapshot::{self, SnapshotError};
use crate::time::Time;

/// A replay that agreed with its record from begin to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayReport {
    /// What was decided.
    pub decisions: Decisions,
    /// Snapshots in the record, each equal to the core at that place.
    pub snapshots: u64,
    /// Snapshots of a build that lays the state out otherwise: they cannot be compared.
    pub uncompared: u64,
    /// The time of the last input.
    pub end: Time,
}

/// The first input after which the core decided otherwise than the record says.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    /// Which input, from 0.
    pub index: u64,
    /// When it came.
    pub at: Time,
    /// The input.
    pub input: Input,
    /// The digest of the actions that it caused when it was recorded.
    pub recorded: Digest,
    /// The digest of those that it causes now.
    pub replayed: Digest,
    /// The actions that it causes now.
    pub actions: Vec<Action>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, at, input, recorded, replayed, actions } = self;
        writeln!(f, "the core decides otherwise than the record says, first at input {index}")?;
        writeln!(f, "  at {at}: {input:?}")?;
        if *recorded == Digest::new() {
            writeln!(f, "  recorded: no action")?;
        } else {
            // What they were, a record does not hold.
            writeln!(f, "  recorded: actions with digest {recorded}, which is all it holds")?;
        }
        if actions.is_empty() {
            write!(f, "  replayed: no action")?;
        } else {
            write!(f, "  replayed: {} actions with digest {replayed}", actions.len())?;
        }
        actions.iter().try_for_each(|action| write!(f, "\n    {action:?}"))?;
        write!(f, "\n  what was altered is this input, its digest, or an input before it")
    }
}

/// Why a record could not be replayed to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The record cannot be read.
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
    /// The core decided otherwise.
    #[error("{0}")]
    Diverged(Box<Divergence>),
    /// A snapshot cannot be restored.
    #[error("the snapshot behind {inputs} inputs cannot be restored: {error}")]
    Snapshot {
        /// How many inputs precede it.
        inputs: u64,
        /// Why.
        error: SnapshotError,
    },
    /// A snapshot differs from the core that replayed the inputs before it.
    #[error(
        "the snapshot behind {inputs} inputs differs from the core that replayed the same inputs: \
         an input before it was altered without changing a decision, or the snapshot was"
    )]
    SnapshotDiffers {
        /// How many inputs precede it.
        inputs: u64,
    },
    /// Every input agreed, but not the digest of the whole.
    #[error("the digest of the whole run differs: {recorded} in the record, {replayed} now")]
    DigestDiffers {
        /// As the record ends.
        recorded: Digest,
        /// As it was replayed.
        replayed: Digest,
    },
}

/// Replays a record.
///
/// # Errors
/// The first thing that is wrong or differs: see [`ReplayError`].
pub fn replay<R: Read>(record: Reader<R>) -> Result<ReplayReport, ReplayError> {
    replay_with(record, &mut || {})
}

/// The same; `each` is called behind every input, for whoever waits.
///
/// # Errors
/// As [`replay`].
pub fn replay_with<R: Read>(
    record: Reader<R>,
    each: &mut dyn FnMut(),
) -> Result<ReplayReport, ReplayError> {
    let header = record.header();
    if header.decision_version != DECISION_VERSION {
        return Err(ReplayError::OtherDecisions { found: header.decision_version });
    }
    let mut replayer = Replayer::new(header.config.clone());
    for entry in record {
        match entry? {
            Entry::Input { at, input, actions } => {
                replayer.input(at, input, actions)?;
                each();
            }
            Entry::Snapshot(bytes) => replayer.snapshot(&bytes)?,
            Entry::End(decisions) => replayer.end(decisions)?,
        }
    }
    Ok(replayer.report())
}

/// Replays the entries of a record one by one, wherever they are stored: a record in a file, or
/// the database of a live run.
#[derive(Clone, Debug)]
pub struct Replayer {
    scheduler: Scheduler,
    actions: Vec<Action>,
    report: ReplayReport,
}

impl Replayer {
    /// Begins at the start of a run.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::at(Scheduler::new(config), 0)
    }

    /// Begins at a snapshot that `inputs` inputs precede.
    ///
    /// # Errors
    /// [`ReplayError::Snapshot`].
    pub fn restore(bytes: &[u8], inputs: u64) -> Result<Self, ReplayError> {
        let scheduler =
            snapshot::from_bytes(bytes).map_err(|error| ReplayError::Snapshot { inputs, error })?;
        Ok(Self::at(scheduler, inputs))
    }

    fn at(scheduler: Scheduler, inputs: u64) -> Self {
        let (decisions, end) = (Decisions { inputs, ..Decisions::default() }, scheduler.now());
        let report = ReplayReport { decisions, snapshots: 0, uncompared: 0, end };
        Self { scheduler, actions: Vec::new(), report }
    }

    /// What agreed until now. Decisions are counted and digested from where the replay began,
    /// inputs from the start of the run.
    #[must_use]
    pub const fn report(&self) -> ReplayReport {
        self.report
    }

    /// The actions of the last input.
    #[must_use]
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// The core, as it is now.
    #[must_use]
    pub const fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// The core, to go on with.
    #[must_use]
    pub fn into_scheduler(self) -> Scheduler {
        self.scheduler
    }

    /// The next input, and the digest of the actions that it caused when it was recorded.
    ///
    /// # Errors
    /// [`ReplayError::Diverged`].
    pub fn input(&mut self, at: Time, input: Input, recorded: Digest) -> Result<(), ReplayError> {
        let index = self.report.decisions.inputs;
        self.actions.clear();
        self.scheduler.handle(at, &input);
        self.actions.extend(std::iter::from_fn(|| self.scheduler.poll_action()));
        let replayed = self.report.decisions.add(at, &self.actions);
        self.report.end = at;
        if replayed == recorded {
            return Ok(());
        }
        let actions = std::mem::take(&mut self.actions);
        let divergence = Divergence { index, at, input, recorded, replayed, actions };
        Err(ReplayError::Diverged(Box::new(divergence)))
    }

    /// A snapshot must restore to this very core; one of another layout is counted.
    ///
    /// # Errors
    /// [`ReplayError::Snapshot`] or [`ReplayError::SnapshotDiffers`].
    pub fn snapshot(&mut self, bytes: &[u8]) -> Result<(), ReplayError> {
        let inputs = self.report.decisions.inputs;
        let fail = |error| ReplayError::Snapshot { inputs, error };
        let restored = match snapshot::from_bytes(bytes) {
            Err(SnapshotError::OtherLayout { .. }) => {
                self.report.uncompared += 1;
                return Ok(());
            }
            restored => restored.map_err(fail)?,
        };
        let ours = snapshot::to_bytes(&self.scheduler).map_err(fail)?;
        if ours != snapshot::to_bytes(&restored).map_err(fail)? {
            return Err(ReplayError::SnapshotDiffers { inputs });
        }
        self.report.snapshots += 1;
        Ok(())
    }

    fn end(&self, recorded: Decisions) -> Result<(), ReplayError> {
        let (recorded, replayed) = (recorded.digest, self.report.decisions.digest);
        if recorded != replayed {
            return Err(ReplayError::DigestDiffers { recorded, replayed });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::RequestId;
    use crate::record::{Header, Writer};
    use crate::testing::{Choice, World};

    fn record(actions: &[Action]) -> Vec<u8> {
        let header = Header::new("test", Digest::new(), 1, 0, &Config::default());
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &header).unwrap();
        writer.input(Time::from_secs(1), &Input::Tick, &[]).unwrap();
        writer.input(Time::from_secs(2), &Input::Tick, actions).unwrap();
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn the_first_divergence_is_shown_with_what_was_decided_instead() {
        let bytes = record(&[Action::Hold { request: RequestId(4) }]);
        let error = replay(Reader::open(&bytes[..]).unwrap()).unwrap_err();
        let ReplayError::Diverged(divergence) = error else { panic!("{error}") };
        assert_eq!((divergence.index, divergence.at), (1, Time::from_secs(2)));
        assert_eq!(divergence.actions, []);
        assert!(divergence.to_string().contains("first at input 1\n  at 2s: Tick\n"));
    }

    #[test]
    fn a_record_that_is_cut_short_is_no_agreement() {
        let bytes = record(&[]);
        assert_eq!(replay(Reader::open(&bytes[..]).unwrap()).unwrap().decisions.inputs, 2);
        let cut = Reader::open(&bytes[..bytes.len() - 1]).unwrap();
        let error = replay(cut).unwrap_err();
        assert!(matches!(error, ReplayError::Record(RecordError::Truncated { entry: 2 })));
    }

    #[test]
    fn a_snapshot_of_another_layout_is_counted_and_one_that_is_damaged_is_an_error() {
        let mut replayer = Replayer::new(Config::default());
        let bytes = snapshot::to_bytes(replayer.scheduler()).unwrap();
        replayer.snapshot(&bytes).unwrap();
        let mut other = bytes.clone();
        other[8..12].copy_from_slice(&1_u32.to_le_bytes());
        replayer.snapshot(&other).unwrap();
        assert_eq!((replayer.report().snapshots, replayer.report().uncompared), (1, 1));
        let cut = replayer.snapshot(&bytes[..bytes.len() - 1]);
        assert!(matches!(cut, Err(ReplayError::Snapshot { inputs: 0, .. })));
    }

    /// A record of a run in which anything happens, with a snapshot after every input.
    fn eventful(choices: &[Choice]) -> Vec<u8> {
        let mut config = Config::default();
        config.policy_training.batch_size = 2;
        let header = Header::new("test", Digest::new(), 1, 0, &config);
        let mut world = World::new(&config);
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &header).unwrap();
        let mut start: Vec<_> = World::start().collect();
        for &choice in choices {
            let input = start.pop().unwrap_or_else(|| world.next(choice));
            let actions = world.handle(&input);
            writer.input(world.now, &input, &actions).unwrap();
            writer.snapshot(&world.scheduler).unwrap();
        }
        writer.finish().unwrap();
        bytes
    }

    proptest! {
        #[test]
        fn a_record_replays_to_the_same_actions_and_states(
            choices in prop::collection::vec(any::<Choice>(), 0..200),
        ) {
            let bytes = eventful(&choices);
            let report = replay(Reader::open(&bytes[..]).unwrap()).unwrap();
            prop_assert_eq!(report.decisions.inputs, choices.len() as u64);
            prop_assert_eq!(report.snapshots, choices.len() as u64);
        }

        #[test]
        fn a_core_restored_at_any_input_decides_the_tail_alike(
            choices in prop::collection::vec(any::<Choice>(), 1..200),
            place in any::<prop::sample::Index>(),
        ) {
            let bytes = eventful(&choices);
            let mut inputs = place.index(choices.len()) + 1;
            let mut scheduler = None;
            for entry in Reader::open(&bytes[..]).unwrap() {
                match (entry.unwrap(), &mut scheduler) {
                    (Entry::Input { .. }, None) => inputs -= 1,
                    (Entry::Snapshot(state), None) if inputs == 0 => {
                        scheduler = Some(snapshot::from_bytes(&state).unwrap());
                    }
                    (Entry::Input { at, input, actions }, Some(scheduler)) => {
                        scheduler.handle(at, &input);
                        let found: Vec<_> =
                            std::iter::from_fn(|| scheduler.poll_action()).collect();
                        prop_assert_eq!(Decisions::default().add(at, &found), actions);
                    }
                    _ => {}
                }
            }
        }
    }
}

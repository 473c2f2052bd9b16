//! The check of a record: replayed, and what must hold of every run looked at.
//!
//! It finds decisions that differ, work without its one terminal input, a ledger that does not
//! balance, and snapshots that are not the core at their place. A driver that stores more than
//! inputs compares that with the core's facts beside it: [`Checker::scheduler`],
//! [`Checker::actions`].

use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;

use crate::action::Action;
use crate::config::Config;
use crate::core::{Ledger, Scheduler};
use crate::digest::Digest;
use crate::input::Input;
use crate::record::{DECISION_VERSION, Entry, Reader, RecordError};
use crate::replay::{ReplayError, ReplayReport, Replayer};
use crate::time::Time;
use crate::work::{Open, Work, Works};

/// Something that must hold, and does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The input at which it is seen; `None`: it is about no single one.
    pub input: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.input {
            Some(input) => write!(f, "input {input}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Work that has not ended where the record does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unended {
    /// What.
    pub work: Work,
    /// Since which input.
    pub since: Option<u64>,
}

/// What a check found.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// What was replayed.
    pub replay: ReplayReport,
    /// The counters at the end.
    pub ledger: Ledger,
    /// How much work started.
    pub started: u64,
    /// Work that was under way where the record ends, as it is where a run was killed.
    pub in_flight: Vec<Unended>,
    /// Work that the core had given up, at a time limit, and whose end the record does not have.
    pub unanswered: Vec<Unended>,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Checks a record from its start to its end.
///
/// # Errors
/// The record cannot be read, or [`ReplayError::OtherDecisions`].
pub fn check<R: Read>(record: Reader<R>) -> Result<CheckReport, ReplayError> {
    check_with(record, &mut || {})
}

/// The same; `each` is called behind every input, for whoever waits.
///
/// # Errors
/// As [`check`].
pub fn check_with<R: Read>(
    record: Reader<R>,
    each: &mut dyn FnMut(),
) -> Result<CheckReport, ReplayError> {
    let header = record.header();
    if header.decision_version != DECISION_VERSION {
        return Err(ReplayError::OtherDecisions { found: header.decision_version });
    }
    let mut checker = Checker::new(header.config.clone());
    for entry in record {
        match entry {
            Ok(Entry::Input { at, input, actions }) => {
                checker.input(at, input, actions);
                each();
            }
            Ok(Entry::Snapshot(bytes)) => checker.snapshot(&bytes),
            Ok(Entry::End(decisions)) => checker.digest(decisions.digest),
            Err(error @ RecordError::Io(_)) => return Err(error.into()),
            Err(error) => checker.stop(&error.to_string()),
        }
    }
    Ok(checker.end())
}

/// Checks the entries of a record one by one, wherever they are stored.
#[derive(Clone, Debug)]
pub struct Checker {
    replayer: Replayer,
    works: Works,
    findings: Vec<Finding>,
    /// The decisions differ, or the record breaks off: what follows says nothing.
    stopped: bool,
}

impl Checker {
    /// Begins at the start of a run.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::at(Replayer::new(config), Works::default())
    }

    /// Begins at a snapshot that `inputs` inputs precede.
    ///
    /// # Errors
    /// [`ReplayError::Snapshot`].
    pub fn restore(bytes: &[u8], inputs: u64) -> Result<Self, ReplayError> {
        let replayer = Replayer::restore(bytes, inputs)?;
        let works = Works::from_the_middle(replayer.scheduler().works());
        Ok(Self::at(replayer, works))
    }

    fn at(replayer: Replayer, works: Works) -> Self {
        Self { replayer, works, findings: Vec::new(), stopped: false }
    }

    /// The decisions differ, or the record breaks off: nothing after that is looked at.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// How many inputs have been handled, counted from the start of the run.
    #[must_use]
    pub const fn inputs(&self) -> u64 {
        self.replayer.report().decisions.inputs
    }

    /// The core, as it is now.
    #[must_use]
    pub const fn scheduler(&self) -> &Scheduler {
        self.replayer.scheduler()
    }

    /// The actions of the last input.
    #[must_use]
    pub fn actions(&self) -> &[Action] {
        self.replayer.actions()
    }

    /// Adds what someone else has found.
    pub fn found(&mut self, input: Option<u64>, what: String) {
        self.findings.push(Finding { input, what });
    }

    /// The record breaks off after the last input.
    pub fn stop(&mut self, why: &str) {
        if !std::mem::replace(&mut self.stopped, true) {
            let input = Some(self.inputs());
            self.found(input, why.to_owned());
        }
    }

    /// The next input, and the digest of the actions that it caused when it was recorded.
    pub fn input(&mut self, at: Time, input: Input, recorded: Digest) {
        if self.stopped {
            return;
        }
        let seq = self.inputs();
        if at < self.replayer.report().end {
            let end = self.replayer.report().end;
            self.found(
                Some(seq),
                format!("its time, {at}, is before that of the input before, {end}"),
            );
        }
        let kept = input.clone();
        if let Err(error) = self.replayer.input(at, input, recorded) {
            return self.stop_at(seq, &error);
        }
        for misfit in self.works.observe(seq, &kept, self.replayer.actions()) {
            self.found(Some(seq), misfit.to_string());
        }
        if let Err(violation) = self.scheduler().ledger().check() {
            self.found(Some(seq), violation.to_string());
        }
    }

    fn stop_at(&mut self, seq: u64, error: &ReplayError) {
        self.stopped = true;
        self.found(Some(seq), error.to_string());
    }

    /// A snapshot must restore to this very core.
    pub fn snapshot(&mut self, bytes: &[u8]) {
        if self.stopped {
            return;
        }
        if let Err(error) = self.replayer.snapshot(bytes) {
            let input = self.inputs().checked_sub(1);
            self.found(input, error.to_string());
        }
    }

    fn digest(&mut self, recorded: Digest) {
        let replayed = self.replayer.report().decisions.digest;
        if !self.stopped && recorded != replayed {
            let error = ReplayError::DigestDiffers { recorded, replayed };
            self.found(None, error.to_string());
        }
    }

    /// The record ends here.
    #[must_use]
    pub fn end(mut self) -> CheckReport {
        if let Err(violation) = self.scheduler().audit() {
            self.found(None, format!("at the end: {violation}"));
        }
        let awaited: BTreeSet<Work> = self.scheduler().works().map(|(work, _)| work).collect();
        let unended = |(work, open): (Work, Open)| Unended { work, since: open.since };
        let (known, forgotten): (Vec<_>, Vec<_>) =
            self.works.open().partition(|(work, open)| awaited.contains(work) || open.cancelled);
        let open: BTreeSet<Work> = self.works.open().map(|(work, _)| work).collect();
        if !self.stopped {
            for work in awaited.difference(&open) {
                let what = format!("at the end: the core waits for the {work}, which has ended");
                self.findings.push(Finding { input: None, what });
            }
        }
        CheckReport {
            replay: self.replayer.report(),
            ledger: self.scheduler().ledger().clone(),
            started: self.works.started(),
            in_flight: known.into_iter().map(unended).collect(),
            unanswered: forgotten.into_iter().map(unended).collect(),
            findings: self.findings,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::{Decisions, Header, Writer};
    use crate::testing::{Choice, World};

    /// A record of a run in which anything happens.
    fn eventful(choices: &[Choice]) -> (World, Vec<(Time, Input, Vec<Action>)>) {
        let mut config = Config::default();
        config.policy_training.batch_size = 2;
        let mut world = World::new(&config);
        let mut start: Vec<_> = World::start().collect();
        let mut entries = Vec::new();
        for &choice in choices {
            let input = start.pop().unwrap_or_else(|| world.next(choice));
            let actions = world.handle(&input);
            entries.push((world.now, input, actions));
        }
        (world, entries)
    }

    fn checked(entries: &[(Time, Input, Vec<Action>)]) -> CheckReport {
        let mut config = Config::default();
        config.policy_training.batch_size = 2;
        let header = Header::new("test", Digest::new(), 1, 0, &config);
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &header).unwrap();
        for (at, input, actions) in entries {
            writer.input(*at, input, actions).unwrap();
        }
        writer.finish().unwrap();
        check(Reader::open(&bytes[..]).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn work_in_flight_at_the_end_is_what_has_not_been_answered(
            choices in prop::collection::vec(any::<Choice>(), 0..200),
        ) {
            let (_, entries) = eventful(&choices);
            let report = checked(&entries);
            let broken = |finding: &&Finding| !finding.what.contains("never started or has ended");
            // The small world answers to a replica that came up again under it; nothing else is odd.
            prop_assert_eq!(report.findings.iter().find(broken), None);
            let ended = |(_, input, _): &&(Time, Input, Vec<Action>)| Work::ended_by(input).is_some();
            let ends = entries.iter().filter(ended).count() as u64;
            let open = (report.in_flight.len() + report.unanswered.len()) as u64;
            prop_assert!(open + ends >= report.started || report.started > 0);
        }
    }

    #[test]
    fn an_end_that_is_told_twice_is_named_with_its_input() {
        let (mut world, mut entries) = eventful(&[(0, 1, 1); 6]);
        let started = |action: &Action| Work::started_by(action).is_some();
        assert!(entries.iter().any(|(_, _, actions)| actions.iter().any(started)));
        let answer = world.next((7, 1, 1));
        for _ in 0..2 {
            let actions = world.handle(&answer);
            entries.push((world.now, answer.clone(), actions));
        }
        let report = checked(&entries);
        let twice = entries.len() as u64 - 1;
        let found: Vec<_> = report.findings.iter().map(|finding| finding.input).collect();
        assert_eq!(found, [Some(twice)], "{:?}", report.findings);
        assert!(report.findings[0].to_string().contains("which never started or has ended before"));
    }

    #[test]
    fn a_decision_that_differs_stops_the_check_with_its_input() {
        let (_, mut entries) = eventful(&[(0, 1, 1); 6]);
        entries[3].2.clear();
        let report = checked(&entries);
        assert_eq!(report.findings[0].input, Some(3), "{:?}", report.findings);
        assert_eq!(report.findings.len(), 1);
        let decided = Decisions { inputs: 4, ..report.replay.decisions };
        assert_eq!(report.replay.decisions, decided);
    }
}

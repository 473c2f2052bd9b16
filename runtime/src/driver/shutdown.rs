//! The orderly end of a run.

use headway_shared::input::Operator;
use headway_shared::time::{Span, Time};

use super::Driver;
use super::narrator::Note;
use super::start::DriverError;
use crate::engine::EngineCommand;
use crate::trainer::TrainerCommand;

/// How far the end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// What runs is aborted then, and the checkpoint awaited no longer.
    deadline: Time,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Turns, votes and the train step end.
    Draining,
    /// The trainer writes a checkpoint.
    Checkpointing,
    /// The last transaction is written.
    Committing,
}

/// How long a checkpoint may take once everything else has ended.
const CHECKPOINT_TIME: Span = Span::from_secs(60);

impl Driver {
    /// Admits nothing more. Told again, it waits no longer than it is told then, also for the
    /// checkpoint.
    pub(super) fn begin_shutdown(&mut self, within: Span) {
        let deadline = self.clock.now() + within;
        if let Some(ending) = &mut self.ending {
            ending.deadline = ending.deadline.min(deadline);
        } else {
            self.ending = Some(Ending { deadline, stage: Stage::Draining });
            self.tell_stage("waiting for what runs");
            self.operate(Operator::Pause);
        }
    }

    /// The last snapshot is taken: nothing that happens now is handled any more.
    pub(super) fn is_closed(&self) -> bool {
        self.ending.is_some_and(|ending| ending.stage == Stage::Committing)
    }

    pub(super) fn ending_deadline(&self) -> Option<Time> {
        self.ending.filter(|ending| ending.stage != Stage::Committing).map(|e| e.deadline)
    }

    /// The trainer has written a checkpoint, or says that there will be none.
    pub(super) fn checkpointed(&mut self) {
        if let Some(ending) = &mut self.ending
            && ending.stage == Stage::Checkpointing
        {
            ending.deadline = Time::ZERO;
        }
    }

    /// Goes on with the end of the run; whether it is reached.
    pub(super) fn has_ended(&mut self) -> bool {
        if self.trainer_down && self.ending.is_none() {
            self.begin_shutdown(Span::ZERO);
        }
        let Some(ending) = self.ending else { return false };
        let over = ending.deadline <= self.clock.now() || self.record_failed.is_some();
        match ending.stage {
            Stage::Draining if over || self.is_idle() => {
                self.tell_stage(if self.is_idle() {
                    "nothing runs any more"
                } else {
                    "aborting what runs"
                });
                self.abort_everything();
                self.begin_checkpoint();
                false
            }
            Stage::Checkpointing if over || self.trainer_down => {
                self.tell_stage("writing the last of the record");
                self.set_stage(Stage::Committing);
                self.last_snapshot();
                false
            }
            Stage::Draining | Stage::Checkpointing => false,
            Stage::Committing => {
                self.last_snapshot();
                let written = self.rows.is_empty() && !self.committing;
                written || self.record_failed.is_some()
            }
        }
    }

    /// Nothing is to be behind the last snapshot, so that the next run has nothing to decide again;
    /// something may still have come since one was taken.
    fn last_snapshot(&mut self) {
        if self.snapshot_at != self.seq && self.record_failed.is_none() {
            self.snapshot();
            self.commit();
        }
    }

    fn tell_stage(&mut self, stage: &'static str) {
        let gauges = self.scheduler.gauges();
        let (running, votes, training) = (gauges.running, gauges.votes, gauges.training);
        self.narrator.say(Note::Ending { stage, running, votes, training });
    }

    fn set_stage(&mut self, stage: Stage) {
        if let Some(ending) = &mut self.ending {
            ending.stage = stage;
        }
    }

    /// What waits to start is no part of it: nothing starts any more.
    fn is_idle(&self) -> bool {
        let gauges = self.scheduler.gauges();
        gauges.running == 0 && gauges.votes == 0 && !gauges.training
    }

    /// Turns get their failure input now, not at the next start, so that their clients learn of it.
    /// Votes and the train step are left to it: to fail one here would only start the next.
    fn abort_everything(&mut self) {
        for engine in self.engines.values() {
            let _ = engine.try_send(EngineCommand::Shutdown);
        }
        self.engines.clear();
        for turn in self.turns.values_mut() {
            turn.replica = None;
        }
        for input in self.book.turn_ends() {
            self.feed(&input);
        }
        for vote in std::mem::take(&mut self.votes).into_values() {
            vote.abort();
        }
    }

    fn begin_checkpoint(&mut self) {
        self.set_stage(Stage::Checkpointing);
        let asked = self.trainer.try_send(TrainerCommand::Checkpoint).is_ok();
        let deadline = self.clock.now() + if asked { CHECKPOINT_TIME } else { Span::ZERO };
        if let Some(ending) = &mut self.ending {
            ending.deadline = deadline;
        }
    }

    /// The last of it.
    pub(super) fn end(mut self) -> Result<(), DriverError> {
        let _ = self.trainer.try_send(TrainerCommand::Shutdown);
        self.show();
        self.narrator.finish(self.clock.now());
        let (ledger, inputs) = (self.scheduler.ledger(), self.committed);
        let (steps, trained) = (ledger.steps, ledger.trained);
        if let Some(why) = &self.record_failed {
            self.narrator.say(Note::Failed { why: why.clone() });
        }
        self.narrator.say(Note::Ended { steps, trained, inputs });
        self.narrate();
        let status = self.status.borrow().clone();
        match self.record_failed.take() {
            Some(why) => Err(DriverError::Record(why)),
            None if self.trainer_down => Err(DriverError::TrainerDown),
            None => match self.scheduler.error() {
                Some(error) => Err(DriverError::Run(error)),
                None => {
                    debug_assert_eq!(status.inputs, status.committed, "a clean record");
                    Ok(())
                }
            },
        }
    }
}

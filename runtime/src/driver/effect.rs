//! What the outside sees waits until its input is on disk.

use headway_shared::action::OperatorReply;
use headway_shared::id::{PublicationId, ReplicaId, StepId};
use headway_shared::input::{Input, WeightsEvent};
use tokio::sync::{mpsc, oneshot};

use super::message::TurnEvent;
use super::{Driver, Point};
use crate::engine::{EngineCommand, Export};
use crate::trainer::TrainerCommand;

/// Something that the outside sees.
pub(super) enum Effect {
    /// A client gets its answer.
    Turn(mpsc::UnboundedSender<TurnEvent>, TurnEvent),
    /// The trainer gets a batch.
    Step(StepId, TrainerCommand),
    /// The trainer is told something that it may miss.
    Tell(TrainerCommand),
    /// The trainer is to export.
    Save(PublicationId, TrainerCommand),
    /// A replica is to load weights.
    Load(PublicationId, ReplicaId, EngineCommand),
    /// An operator is answered.
    Operator(oneshot::Sender<OperatorReply>, OperatorReply),
}

impl Driver {
    /// Carries an effect out when input `seq` is on disk.
    pub(super) fn after_commit(&mut self, seq: u64, effect: Effect) {
        if self.record_failed.is_some() {
            self.release_unrecorded(effect);
        } else {
            self.effects.push_back((seq, effect));
        }
    }

    /// All inputs up to `last` are on disk.
    pub(super) fn committed(&mut self, last: u64) {
        self.committing = false;
        self.committed = last + 1;
        while self.effects.front().is_some_and(|&(seq, _)| seq <= last) {
            if let Some((_, effect)) = self.effects.pop_front() {
                self.release(effect);
            }
        }
    }

    /// Nothing is committed any more: nobody may believe that it was.
    pub(super) fn commit_failed(&mut self, why: &str) {
        self.committing = false;
        self.record_failed = Some(format!("the record could not be written: {why}"));
        self.rows.clear();
        while let Some((_, effect)) = self.effects.pop_front() {
            self.release_unrecorded(effect);
        }
        self.feed(&Input::CommitFailed);
    }

    fn release(&mut self, effect: Effect) {
        match effect {
            // Whoever asked may have gone.
            Effect::Turn(events, event) => {
                self.options.at(Point::BeforeReply);
                let _ = events.send(event);
                self.options.at(Point::AfterReply);
            }
            Effect::Operator(asker, reply) => drop(asker.send(reply)),
            Effect::Step(step, command) => {
                self.options.at(Point::BeforeLease);
                let sent = self.trainer.try_send(command).is_ok();
                // A trainer that went down has ended it already.
                if !sent && self.book.step == Some(step) {
                    self.followups.push_back(Input::StepEnded { step, ok: false });
                }
                self.options.at(Point::AfterLease);
            }
            Effect::Tell(command) => drop(self.trainer.try_send(command)),
            Effect::Save(publication, command) => {
                let sent = self.trainer.try_send(command).is_ok();
                if !sent && self.book.saving == Some(publication) {
                    self.weights_failed(publication, WeightsEvent::SaveFailed);
                }
            }
            Effect::Load(publication, replica, command) => {
                // A load ends with its replica, if that is gone.
                let engine = self.engines.get(&replica);
                if engine.is_some_and(|engine| engine.try_send(command).is_err()) {
                    self.weights_failed(publication, WeightsEvent::TransferFailed(replica));
                }
            }
        }
    }

    /// Refusals promise nothing; an answer would.
    fn release_unrecorded(&mut self, effect: Effect) {
        match effect {
            Effect::Turn(events, event @ TurnEvent::Refused { .. }) => drop(events.send(event)),
            Effect::Turn(events, _) => drop(events.send(TurnEvent::Unrecorded)),
            Effect::Step(..)
            | Effect::Tell(..)
            | Effect::Save(..)
            | Effect::Load(..)
            | Effect::Operator(..) => {}
        }
    }

    pub(super) fn weights_failed(&mut self, publication: PublicationId, event: WeightsEvent) {
        self.followups.push_back(Input::Weights { publication, event });
    }

    /// The weights of a publication, if they were saved.
    pub(super) fn saved_weights(&self, publication: PublicationId) -> Option<Export> {
        self.saved.as_ref().filter(|(saved, _)| *saved == publication).map(|(_, w)| w.clone())
    }
}

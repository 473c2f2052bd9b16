//! Sessions and their environments.

use headway_shared::id::SessionId;
use headway_shared::input::{EnvironmentOutcome, Input};

use super::Clients;
use crate::world::environment::{self, Operation};
use crate::world::event::{Bus, Event};
use crate::world::settings::Environment;

impl Clients {
    /// The core resets or steps a session's environment.
    pub(in crate::world) fn operate(
        &mut self,
        bus: &mut Bus,
        environment: &Environment,
        session: SessionId,
        attempt: u32,
        reset: bool,
    ) {
        let Some(&slot) = self.by_session.get(session.0) else {
            let outcome = EnvironmentOutcome::Failed;
            bus.tell(Input::EnvironmentEnded { session, attempt, outcome });
            return;
        };
        let session = &mut self.table[slot as usize];
        let (ordinal, last) = (session.ordinal, session.is_last_turn());
        let (operation, time) =
            environment::draw(environment, &bus.key, ordinal, attempt, reset, last);
        session.operation = Some(operation);
        session.stamp = session.stamp.wrapping_add(1);
        if let Some(time) = time {
            bus.after(time, Event::Session { slot, stamp: session.stamp });
        }
    }

    /// The core gives up a reset or a step.
    pub(in crate::world) fn cancel_operation(
        &mut self,
        bus: &mut Bus,
        session: SessionId,
        attempt: u32,
    ) {
        let Some(&slot) = self.by_session.get(session.0) else { return };
        let pending = &mut self.table[slot as usize].operation;
        if pending.take_if(|operation| operation.attempt == attempt).is_some() {
            let outcome = EnvironmentOutcome::Failed;
            bus.tell(Input::EnvironmentEnded { session, attempt, outcome });
        }
    }

    /// A reset or a step has ended: where the session goes on, its next turn begins.
    pub(super) fn operation_ended(&mut self, bus: &mut Bus, slot: u32) {
        let session = &mut self.table[slot as usize];
        let Some(Operation { attempt, reset, outcome }) = session.operation.take() else { return };
        bus.tell(Input::EnvironmentEnded { session: session.id, attempt, outcome });
        if outcome == EnvironmentOutcome::Ready {
            if !reset {
                session.next_turn(&self.settings, self.group_per_turn, &bus.key);
            }
            self.send(bus, slot);
        }
    }
}

//! Another configuration for a run that is going on.

use headway_shared::action::OperatorReply;
use headway_shared::config::{Config, GuardSettings};
use headway_shared::input::{Input, Operator};
use tokio::sync::oneshot;

use super::{Driver, DriverHandle};
use crate::driver::message::Wish;

/// What a run does, and what it is held to.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    /// The scheduling sections.
    pub config: Config,
    /// `[guard]`, if there is one.
    pub guard: Option<GuardSettings>,
}

/// What came of a reconfiguration.
#[derive(Clone, Debug, PartialEq)]
pub struct Reconfigured {
    /// What was in force until then.
    pub before: InForce,
    /// Whether the core took it.
    pub reply: OperatorReply,
}

/// An operator hands over a configuration.
#[derive(Debug)]
pub(crate) struct Reconfiguration {
    wished: InForce,
    /// Told at once what was in force.
    before: oneshot::Sender<InForce>,
    /// Told the core's reply when its input is on disk.
    asker: oneshot::Sender<OperatorReply>,
}

impl DriverHandle {
    /// What is in force now.
    pub async fn in_force(&self) -> Option<InForce> {
        let (asker, reply) = oneshot::channel();
        self.wishes.send(Wish::InForce(asker)).await.ok()?;
        reply.await.ok()
    }

    /// Replaces the whole configuration, and the guard with it; returns when that is on disk. What
    /// the core rejects changes nothing, the guard included.
    pub async fn reconfigure(
        &self,
        config: Config,
        guard: Option<GuardSettings>,
    ) -> Option<Reconfigured> {
        let (before, known) = oneshot::channel();
        let (asker, reply) = oneshot::channel();
        let wished = InForce { config, guard };
        let reconfiguration = Box::new(Reconfiguration { wished, before, asker });
        self.wishes.send(Wish::Reconfigure(reconfiguration)).await.ok()?;
        Some(Reconfigured { before: known.await.ok()?, reply: reply.await.ok()? })
    }
}

impl Driver {
    pub(super) fn in_force(&self) -> InForce {
        InForce { config: self.scheduler.config().clone(), guard: self.options.guard.clone() }
    }

    pub(super) fn reconfigure(&mut self, reconfiguration: Reconfiguration) {
        let Reconfiguration { wished: InForce { config, guard }, before, asker } = reconfiguration;
        // Whoever asked may have gone.
        drop(before.send(self.in_force()));
        self.operators.push_back(Some(asker));
        self.feed(&Input::Operator(Operator::Reconfigure(Box::new(config.clone()))));
        if *self.scheduler.config() == config {
            self.options.guard.clone_from(&guard);
            self.hold_to(guard);
        }
    }
}

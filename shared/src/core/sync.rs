//! How weights reach the replicas.
//!
//! A publication saves the learner's weights, then each replica that lacks them goes through
//! [`Sync`]: it is drained (where the mode drains), fetches the weights, and loads them. Whatever
//! fails, the gate reopens on the replicas that hold whole weights, and the publication is tried
//! again on a timer of its own.

use serde::{Deserialize, Serialize};

use super::Scheduler;
use super::state::{Replica, Sync};
use super::timers::due;
use crate::action::{Action, InFlight, RunError};
use crate::config::{KvOnSync, SyncMode};
use crate::id::{PublicationId, ReplicaId};
use crate::input::WeightsEvent;
use crate::planted::Planted;
use crate::time::{Span, Time};
use crate::version::{DeployVersion, LearnerVersion};

const MAX_RETRY_DELAY: Span = Span::from_secs(60);

/// The way of one version to the replicas.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Publication {
    id: PublicationId,
    pub(crate) version: LearnerVersion,
    /// The mode it began with.
    mode: SyncMode,
    /// What becomes of KV caches, as it was when it began.
    kv: KvOnSync,
    /// Set while the weights are being saved.
    pub(crate) saving_since: Option<Time>,
    /// Set while the gate is closed for it.
    closed_since: Option<Time>,
    failed: bool,
    /// An operator wished for it: replicas that lack nothing load too.
    wished: bool,
}

impl Publication {
    pub(crate) fn id(&self) -> PublicationId {
        self.id
    }
}

/// The weights channel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Weights {
    next_id: u64,
    pub(crate) current: Option<Publication>,
    /// Failed publications in a row.
    failures: u32,
    pub(crate) retry_at: Option<Time>,
    /// An operator wishes for a publication that has not yet reached every replica.
    pub(crate) wished: bool,
    /// How long the gate was closed the last time.
    pub(crate) last_window: Span,
}

impl Weights {
    /// A publication is under way, or waits to be tried again.
    fn is_under_way(&self) -> bool {
        self.current.is_some() || self.retry_at.is_some()
    }

    /// Replicas that load take no new turns before all of them have loaded.
    pub(crate) fn gate_closed(&self) -> bool {
        self.current.is_some_and(|publication| publication.closed_since.is_some())
    }
}

impl Scheduler {
    /// A publication starts when a replica is `publish_interval` steps behind, or can serve no
    /// training request without one, or an operator wishes for one.
    ///
    /// Where the push waits for the next batch, replicas call for it that are further behind.
    pub(super) fn start_publication_if_due(&mut self) {
        if self.weights.is_under_way() {
            return;
        }
        let waits = u32::from(self.gate.pushes_before_step());
        let totals = self.replicas.totals();
        let lost = |replica: &Replica| replica.alive && self.is_lost(replica.deploy.number());
        let due = totals.broken
            || totals.oldest.is_some_and(|oldest| self.is_beyond_interval(oldest, waits))
            || (!self.lost.is_empty() && self.replicas.iter().any(lost));
        let wished = self.weights.wished && self.replicas.iter().any(|replica| replica.alive);
        if due || wished || self.line_needs_newer_weights() {
            self.publish();
        }
    }

    /// A replica lacks weights that the next step waits for.
    pub(super) fn push_is_due(&self) -> bool {
        let oldest = self.replicas.totals().oldest;
        self.gate.pushes_before_step()
            && oldest.is_some_and(|oldest| self.is_beyond_interval(oldest, 0))
    }

    /// Such weights are `publish_interval` steps and so many more behind.
    fn is_beyond_interval(&self, deploy: DeployVersion, more: u32) -> bool {
        let interval = self.config.policy_training.publish_interval.max(1);
        let lag = self.learner.publish_lag_of(deploy).unwrap_or(0);
        lag >= interval.saturating_add(more)
    }

    /// The batch is complete that the push has waited for.
    pub(super) fn push(&mut self) {
        if !self.weights.is_under_way() {
            self.publish();
        }
    }

    /// A turn that was interrupted may not go on with the weights that there are.
    fn line_needs_newer_weights(&self) -> bool {
        if self.line.is_empty() {
            return false;
        }
        // Any turn of a trajectory may be the one that all others wait for.
        let looked_at = if self.trajectories() { self.line.len() } else { 1 };
        let waits = |newest| {
            let mut line = self.line.iter(&self.turn_links).take(looked_at as usize);
            line.any(|slot| newest < self.floor(slot))
        };
        self.newest_deploy().is_some_and(waits)
    }

    /// The newest weights that a replica holds whole.
    pub(super) fn newest_deploy(&self) -> Option<DeployVersion> {
        self.replicas.totals().newest
    }

    /// The weights that a replica is loading.
    pub(super) fn coming_to(&self, replica: &Replica) -> Option<DeployVersion> {
        let current = self.weights.current.filter(|_| replica.sync.loads())?;
        Some(DeployVersion::of(current.version))
    }

    fn publish(&mut self) {
        let publication = PublicationId(self.weights.next_id);
        self.weights.next_id += 1;
        self.weights.current = Some(Publication {
            id: publication,
            version: self.learner,
            mode: self.config.policy_serving.sync_mode,
            kv: self.config.policy_serving.kv_on_sync,
            saving_since: Some(self.now),
            closed_since: None,
            failed: false,
            wished: self.weights.wished,
        });
        self.act(Action::Publish { publication, version: self.learner });
    }

    pub(super) fn handle_weights(&mut self, id: PublicationId, event: WeightsEvent) {
        let Some(current) = self.weights.current.filter(|current| current.id == id) else {
            return self.ignore();
        };
        let saving = current.saving_since.is_some();
        match event {
            WeightsEvent::Saved if saving => self.distribute(),
            WeightsEvent::SaveFailed if saving => self.publication_failed(),
            WeightsEvent::Saved | WeightsEvent::SaveFailed => self.ignore(),
            WeightsEvent::Transferred(replica)
            | WeightsEvent::TransferFailed(replica)
            | WeightsEvent::Loaded(replica)
            | WeightsEvent::LoadFailed { replica, .. } => self.handle_load_event(replica, event),
        }
    }

    fn handle_load_event(&mut self, replica: ReplicaId, event: WeightsEvent) {
        let Some(index) = self.replica_index(replica) else { return self.ignore() };
        if !self.replicas[index].sync.loads() {
            return self.ignore();
        }
        match event {
            WeightsEvent::Transferred(_) => self.replicas[index].sync = Sync::Loading(self.now),
            WeightsEvent::Loaded(_) => self.replica_loaded(index),
            WeightsEvent::LoadFailed { intact: false, .. } => self.replica_broken(index),
            _ => self.replica_kept_old_weights(index),
        }
    }

    /// The weights are saved: closes what has to be closed and begins.
    fn distribute(&mut self) {
        let Some(mut current) = self.weights.current else { return };
        current.saving_since = None;
        let pauses = matches!(
            current.mode,
            SyncMode::PauseDrain | SyncMode::PauseAbort | SyncMode::PauseKeep
        );
        let version = DeployVersion::of(current.version);
        for index in 0..self.replicas.len() {
            let lost = self.is_lost(self.replicas[index].deploy.number());
            let replica = &mut self.replicas[index];
            let lacks = replica.deploy < version || !replica.whole || lost;
            if replica.alive && (lacks || current.wished) {
                replica.sync = Sync::Waiting;
                // A replica that needs no load goes on serving.
                replica.closed = pauses;
            }
        }
        current.closed_since = pauses.then_some(self.now);
        self.weights.current = Some(current);
        for index in 0..self.replicas.len() {
            if self.replicas[index].sync != Sync::Waiting {
                continue;
            }
            match current.mode {
                SyncMode::PauseDrain => self.replicas[index].sync = Sync::Draining(self.now),
                SyncMode::PauseAbort => {
                    self.replicas[index].sync = Sync::Aborting;
                    self.abort_turns(index);
                }
                SyncMode::PauseKeep => self.load(index, InFlight::Frozen),
                SyncMode::InFlight => self.load(index, InFlight::Running),
                SyncMode::Rolling => {}
            }
        }
    }

    /// Goes on with the publication under way, as far as it can.
    pub(super) fn advance_publication(&mut self) {
        let Some(current) = self.weights.current.filter(|p| p.saving_since.is_none()) else {
            return;
        };
        let totals = self.replicas.totals();
        if current.mode == SyncMode::Rolling
            && totals.draining + totals.loading == 0
            && let Some(index) = self.replicas.iter().position(|r| r.sync == Sync::Waiting)
        {
            self.replicas[index].closed = true;
            self.replicas[index].sync = Sync::Draining(self.now);
        }
        if self.replicas.totals().draining > 0
            && self.replicas.iter().all(|r| !r.sync.drains() || r.turns.is_empty())
        {
            for index in 0..self.replicas.len() {
                if self.replicas[index].sync.drains() {
                    self.load(index, InFlight::Drained);
                }
            }
        }
        if self.replicas.totals().syncing == 0 {
            self.finish_publication(current);
        }
    }

    fn load(&mut self, index: usize, in_flight: InFlight) {
        let Some(current) = self.weights.current else { return };
        let replica = &mut self.replicas[index];
        replica.sync = Sync::Transferring(self.now);
        let in_flight = if replica.turns.is_empty() { InFlight::Drained } else { in_flight };
        let (turns, replica) = (replica.turns, replica.id);
        for turn in turns.iter(&self.turn_links) {
            self.turns[turn].may_mix = true;
        }
        self.act(Action::Load {
            publication: current.id,
            replica,
            version: DeployVersion::of(current.version),
            in_flight,
            kv: current.kv,
        });
    }

    fn replica_loaded(&mut self, index: usize) {
        let Some(current) = self.weights.current else { return };
        let replica = &mut self.replicas[index];
        replica.deploy = DeployVersion::of(current.version);
        replica.whole = true;
        self.replica_done(index);
    }

    fn replica_kept_old_weights(&mut self, index: usize) {
        self.mark_failed();
        self.replica_done(index);
    }

    fn replica_broken(&mut self, index: usize) {
        self.mark_failed();
        self.replicas[index].whole = false;
        self.lose_turns(index);
        self.replica_done(index);
    }

    fn mark_failed(&mut self) {
        if let Some(current) = &mut self.weights.current {
            current.failed = true;
        }
    }

    fn replica_done(&mut self, index: usize) {
        self.replicas[index].sync = Sync::Idle;
        self.replicas[index].closed = self.weights.gate_closed();
        self.admission_due = true;
    }

    fn finish_publication(&mut self, current: Publication) {
        self.reopen();
        if current.failed {
            return self.retry_later();
        }
        // All that were to load may have gone meanwhile.
        let version = DeployVersion::of(current.version);
        let reached =
            self.replicas.iter().any(|replica| replica.alive && replica.deploy >= version);
        self.ledger.publications += u64::from(reached);
        self.weights.failures = 0;
        self.weights.wished &= !(current.wished && reached);
        self.gate.weights_served(self.standing());
    }

    /// The gate reopens, whatever happened.
    fn reopen(&mut self) {
        let current = self.weights.current.take();
        if let Some(since) = current.and_then(|publication| publication.closed_since) {
            self.weights.last_window = self.now.since(since);
        }
        let stays_closed = self.plant.is(Planted::GateNotReopened);
        for replica in self.replicas.iter_mut() {
            replica.closed &= stays_closed;
            replica.sync = Sync::Idle;
        }
        self.admission_due = true;
    }

    fn publication_failed(&mut self) {
        self.reopen();
        self.retry_later();
    }

    fn retry_later(&mut self) {
        self.ledger.failed_publications += 1;
        self.weights.failures += 1;
        let failures = self.weights.failures;
        if failures > self.config.policy_serving.publish_retries {
            return self.fail(RunError::PublicationFailed { attempts: failures });
        }
        let doubled = 1_u64.checked_shl(failures - 1).unwrap_or(u64::MAX);
        let delay = self.config.policy_serving.publish_retry_delay.times(doubled);
        self.weights.retry_at = Some(self.now + delay.min(MAX_RETRY_DELAY));
    }

    /// After a rollback: weights that are not yet being loaded never will be.
    pub(super) fn abandon_publication(&mut self) {
        if self.weights.current.is_some() && self.replicas.totals().loading == 0 {
            self.reopen();
        }
    }

    /// Something of the publication takes too long.
    #[cold]
    pub(super) fn expire_publication(&mut self) {
        if self.weights.retry_at.is_some_and(|at| at <= self.now) {
            self.weights.retry_at = None;
            return self.publish();
        }
        if self.weights.current.is_some_and(|current| current.saving_since.is_some()) {
            return self.publication_failed();
        }
        for index in 0..self.replicas.len() {
            let sync = self.replicas[index].sync;
            if !due(self.sync_deadline(sync), self.now) {
                continue;
            }
            match sync {
                Sync::Idle | Sync::Waiting | Sync::Aborting => {}
                Sync::Draining(_) => {
                    self.replicas[index].sync = Sync::Aborting;
                    self.abort_turns(index);
                }
                Sync::Transferring(_) => {
                    self.cancel_load(index);
                    self.replica_kept_old_weights(index);
                }
                Sync::Loading(_) => {
                    self.cancel_load(index);
                    self.replica_broken(index);
                }
            }
        }
    }

    fn cancel_load(&mut self, index: usize) {
        let Some(current) = self.weights.current else { return };
        let replica = self.replicas[index].id;
        self.act(Action::CancelLoad { publication: current.id, replica });
    }
}

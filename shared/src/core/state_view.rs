//! The core as people look at it: everything that bears on a decision, at one instant.

use serde::Serialize;

use super::queue::SampleQueue;
use super::slab::Slot;
use super::state::{Purpose, Replica, Sync};
use super::{Ledger, SampleState, Scheduler};
use crate::action::{Refusal, RunError};
use crate::config::{DropPolicy, GateKind, OverLimit, Queue, QueueOrder};
use crate::id::{PublicationId, ReplicaId, RequestId, SampleId, StepId};
use crate::input::Request;
use crate::time::Time;
use crate::version::{DeployVersion, LearnerVersion};

/// What a gate reads for one replica, and what it makes of it. Places are samples, or groups where
/// `group_size` is above 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Capacity {
    /// How many more places the replica may take; none if it is not positive.
    pub places: i64,
    /// η, or what the gate binds instead.
    pub eta: i64,
    /// Places per train step (B).
    pub batch: i64,
    /// The replica's version.
    pub deploy: i64,
    /// How far that is behind the learner.
    pub publish_lag: i64,
    /// Places admitted and not yet trained or discarded.
    pub outstanding: i64,
    /// Of these, places whose result is not known yet.
    pub unresolved: i64,
    /// Of these, places of the batch in training.
    pub training: i64,
    /// `max_concurrent_rollouts`.
    pub max_concurrent: i64,
    /// Places that over-sampling adds.
    pub reserve: i64,
    /// What the rule has counted for itself, where it does.
    pub counted: Option<i64>,
    /// What such a rule allowed at first.
    pub allowed: Option<i64>,
}

/// What a replica does for the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Syncing {
    /// Nothing.
    Idle,
    /// It waits for its turn, or for others.
    Waiting,
    /// Its turns end.
    Draining,
    /// Its turns were aborted, and end.
    Aborting,
    /// It fetches the weights.
    Transferring,
    /// It loads them.
    Loading,
}

/// A replica at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReplicaState {
    /// Which.
    pub replica: ReplicaId,
    /// What it holds.
    pub deploy: DeployVersion,
    /// It holds whole weights.
    pub up: bool,
    /// It takes new turns.
    pub open: bool,
    /// What it does for the weights.
    pub syncing: Syncing,
    /// Turns running on it.
    pub running: u32,
    /// What the gate reads for it.
    pub capacity: Capacity,
    /// A sample with its weights would be discarded as soon as it is admitted.
    pub too_old: bool,
}

/// A queue at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueueState {
    /// In which order it is taken from.
    pub order: QueueOrder,
    /// Samples in it.
    pub samples: u32,
    /// Samples, or groups, in it.
    pub entries: u32,
    /// Room promised to samples that were admitted and have not entered yet.
    pub reserved: u32,
    /// Entries that wait for room.
    pub blocked: u32,
    /// Most samples.
    pub max_size: u32,
    /// What happens when it is full.
    pub drop_policy: DropPolicy,
    /// The sample that is taken next.
    pub next: Option<SampleId>,
}

/// A publication under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PublicationState {
    /// Which.
    pub publication: PublicationId,
    /// The version that it brings.
    pub version: LearnerVersion,
    /// The weights are still being saved.
    pub saving: bool,
}

/// The core at an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct State {
    /// When.
    pub now: Time,
    /// Why the run has ended, if it has.
    pub ended: Option<RunError>,
    /// An operator has paused it.
    pub paused: bool,
    /// New requests are answered with 503.
    pub closed: bool,
    /// They are because replicas load weights.
    pub in_sync_window: bool,
    /// The learner's version.
    pub learner: LearnerVersion,
    /// The step that trains.
    pub step: Option<StepId>,
    /// Its samples.
    pub in_step: u32,
    /// The publication under way.
    pub publication: Option<PublicationState>,
    /// The gate in force.
    pub gate: GateKind,
    /// What becomes of a request that it has no place for.
    pub over_limit: OverLimit,
    /// Requests that wait for a place.
    pub held: u64,
    /// Rollouts that count against `max_concurrent_rollouts`.
    pub rollouts: u32,
    /// `max_concurrent_rollouts`; 0: no limit.
    pub max_rollouts: u32,
    /// Votes in flight.
    pub votes: u32,
    /// `judge_concurrency`.
    pub max_votes: u32,
    /// Environments in use.
    pub environments: u32,
    /// Every replica that was ever up, in that order.
    pub replicas: Vec<ReplicaState>,
    /// The rollout queue.
    pub rollout_queue: QueueState,
    /// The output queue.
    pub output_queue: QueueState,
    /// The counters.
    pub ledger: Ledger,
}

/// What a request met: the same steps as its admission takes, without their effects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deliberation {
    /// The request.
    pub request: RequestId,
    /// It may train: a side request needs no place.
    pub main: bool,
    /// It needs a place of its own: its group, session or trajectory gives it none.
    pub needs_place: bool,
    /// Why it may not start; `None`: it may.
    pub verdict: Option<Refusal>,
    /// Requests that were held already, and go first.
    pub behind: u64,
    /// Room in both queues that its place would reserve, in samples.
    pub reserves: u32,
    /// There is that room, where queues reserve it.
    pub has_room: bool,
    /// The core as it was looked at.
    pub state: State,
}

/// Looking at it.
impl Scheduler {
    /// Everything at this instant. O(replicas).
    #[must_use]
    pub fn state(&self) -> State {
        let publication = self.weights.current.map(|current| PublicationState {
            publication: current.id(),
            version: current.version,
            saving: current.saving_since.is_some(),
        });
        let config = &self.config;
        State {
            now: self.now,
            ended: self.ended,
            paused: self.operator_paused,
            closed: self.closed(),
            in_sync_window: self.weights.gate_closed(),
            learner: self.learner,
            step: self.trainer.step(),
            in_step: self.trainer.batch.len() as u32,
            publication,
            gate: config.policy_training.gate,
            over_limit: config.policy_serving.over_limit,
            held: self.ledger.held,
            rollouts: self.occupied,
            max_rollouts: config.policy_serving.max_concurrent_rollouts,
            votes: self.votes.len() as u32,
            max_votes: config.reward_judging.judge_concurrency,
            environments: self.environments,
            replicas: self.replicas.iter().map(|replica| self.replica_state(replica)).collect(),
            rollout_queue: self.queue_state(&self.rollout, &config.queue.rollout),
            output_queue: self.queue_state(&self.output, &config.queue.output),
            ledger: self.ledger.clone(),
        }
    }

    /// Where an admitted sample is that has not left the ledger.
    #[must_use]
    pub fn sample_state(&self, id: SampleId) -> Option<SampleState> {
        Some(self.samples[self.slot_of_sample(id)?].state)
    }

    /// What a request meets that arrives now. `None`: there is one of its name.
    ///
    /// It is asked of a copy of the core: O(everything).
    #[must_use]
    pub fn deliberate(&self, now: Time, request: &Request) -> Option<Deliberation> {
        let mut core = self.clone();
        core.now = core.now.max(now);
        let slot = core.arrive(request)?;
        let behind = if core.must_queue(slot) { u64::from(core.held.len()) } else { 0 };
        let verdict = core.verdict(slot).err();
        Some(core.deliberation(slot, verdict, behind))
    }

    /// What a request meets that waits to be started. `None`: there is none such.
    #[must_use]
    pub fn deliberate_again(&self, now: Time, request: RequestId) -> Option<Deliberation> {
        let mut core = self.clone();
        core.now = core.now.max(now);
        let slot = core.turn_of.get(request.0).filter(|&slot| !core.turns[slot].on_replica())?;
        let verdict = core.hopeless(slot).or_else(|| core.find_replica(slot).err());
        Some(core.deliberation(slot, verdict, 0))
    }

    fn deliberation(&self, slot: Slot, verdict: Option<Refusal>, behind: u64) -> Deliberation {
        let turn = &self.turns[slot];
        Deliberation {
            request: turn.request,
            main: turn.purpose == Purpose::Train,
            needs_place: self.needs_place(slot),
            verdict,
            behind,
            reserves: self.config.policy_training.group_size,
            has_room: self.room_to_reserve(),
            state: self.state(),
        }
    }

    fn replica_state(&self, replica: &Replica) -> ReplicaState {
        ReplicaState {
            replica: replica.id,
            deploy: replica.deploy,
            up: replica.up(),
            open: replica.open(),
            syncing: match replica.sync {
                Sync::Idle => Syncing::Idle,
                Sync::Waiting => Syncing::Waiting,
                Sync::Draining(_) => Syncing::Draining,
                Sync::Aborting => Syncing::Aborting,
                Sync::Transferring(_) => Syncing::Transferring,
                Sync::Loading(_) => Syncing::Loading,
            },
            running: replica.turns.len(),
            capacity: self.capacity(replica.deploy),
            too_old: self.born_too_old(replica.deploy),
        }
    }

    fn capacity(&self, deploy: DeployVersion) -> Capacity {
        let view = self.gate_view(deploy);
        let own = self.gate.own_counts();
        Capacity {
            places: self.gate.capacity(&view),
            eta: view.eta,
            batch: view.batch,
            deploy: view.deploy,
            publish_lag: view.lag,
            outstanding: view.outstanding,
            unresolved: view.unresolved,
            training: view.training,
            max_concurrent: view.max_concurrent,
            reserve: view.reserve,
            counted: own.map(|(counted, _)| counted),
            allowed: own.map(|(_, allowed)| allowed),
        }
    }

    fn queue_state(&self, queue: &SampleQueue, config: &Queue) -> QueueState {
        QueueState {
            order: queue.order(),
            samples: queue.samples,
            entries: queue.entries,
            reserved: queue.reserved,
            blocked: queue.blocked.len(),
            max_size: config.max_size,
            drop_policy: config.drop_policy,
            next: queue.next().map(|slot| self.samples[slot].sample.id),
        }
    }
}

//! The state machine: what happens to each input, in one screen ([`Scheduler::handle`]).
//!
//! What is seldom called from there is marked as cold: without it, what happens all the time has room
//! in an instruction cache.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::adaptive::Bound;
use super::ages::Ages;
use super::fleet::Fleet;
use super::gate::{Gate, Standing};
use super::queue::SampleQueue;
use super::slab::{IdMap, Links, List, Slab, Slot};
use super::state::{Ballot, Entry, Group, Session, Turn, Vote};
use super::surplus::Place;
use super::sync::Weights;
use super::training::Trainer;
use super::{Ledger, Sample, Violation};
use crate::action::{Action, Discard, OperatorReply, RunError};
use crate::config::Config;
use crate::id::SampleId;
use crate::input::{Input, Operator};
use crate::planted::Plant;
use crate::time::Time;
use crate::version::LearnerVersion;

/// What became of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// Trained, in a step that made a new version.
    Trained,
    /// Discarded.
    Discarded(Discard),
}

/// A sample that left the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// The sample, as it was.
    pub sample: Sample,
    /// What became of it.
    pub fate: Fate,
}

/// The scheduling core.
///
/// Feed it one fact with [`handle`](Self::handle), drain [`poll_action`](Self::poll_action) to
/// `None`, and feed it a [`Tick`](Input::Tick) at [`poll_timeout`](Self::poll_timeout) if nothing
/// else happens before.
///
/// ```
/// use headway_shared::action::Action;
/// use headway_shared::config::Config;
/// use headway_shared::core::Scheduler;
/// use headway_shared::id::{ReplicaId, RequestId, SessionId};
/// use headway_shared::input::{Input, Request, TurnType};
/// use headway_shared::time::Time;
/// use headway_shared::version::DeployVersion;
///
/// let mut scheduler = Scheduler::new(Config::default());
/// let up = Input::ReplicaUp { replica: ReplicaId(0), deploy: DeployVersion::new(0) };
/// scheduler.handle(Time::ZERO, &up);
/// assert_eq!(scheduler.poll_action(), None);
///
/// let request = Request {
///     request: RequestId(0),
///     session: SessionId(0),
///     group: None,
///     turn: TurnType::Main,
///     prompt_tokens: 100,
///     streamed: false,
///     last: false,
/// };
/// scheduler.handle(Time::from_secs(1), &Input::Request(request));
/// assert!(matches!(scheduler.poll_action(), Some(Action::StartGeneration { .. })));
/// assert_eq!(scheduler.poll_action(), None);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scheduler {
    pub(super) config: Config,
    pub(super) now: Time,
    pub(super) learner: LearnerVersion,
    /// When each learner version began; the front belongs to `history_from`.
    pub(super) history: VecDeque<Time>,
    pub(super) history_from: u32,
    /// Versions (after, up to and including) that no longer exist.
    pub(super) lost: Vec<(u32, u32)>,
    pub(super) ledger: Ledger,
    pub(super) gate: Gate,
    /// η in force.
    pub(super) bound: Bound,
    pub(super) operator_paused: bool,
    pub(super) exhausted: bool,
    pub(super) ended: Option<RunError>,

    pub(super) next_sample: u64,
    pub(super) turns: Slab<Turn>,
    pub(super) turn_of: IdMap,
    /// Links of `held`, `line`, a group's held turns, and each replica's turns.
    pub(super) turn_links: Links,
    pub(super) held: List,
    pub(super) line: List,
    /// Held turns and turns on replicas, by time.
    pub(super) turn_timer_links: Links,
    pub(super) hold_timers: List,
    pub(super) generation_timers: List,
    pub(super) cancel_timers: List,
    /// Main turns on replicas (unless a sample is a session), and samples that keep their slot.
    pub(super) occupied: u32,
    pub(super) replicas: Fleet,
    /// Something may have become free since requests were last looked at.
    pub(super) admission_due: bool,

    pub(super) samples: Slab<Entry>,
    pub(super) sample_of: IdMap,
    pub(super) ages: Ages,
    /// No sample younger than this is too old under the configuration it was admitted under.
    pub(super) lowest_limit: u32,
    /// Links of a sample's turns.
    pub(super) sample_links: Links,
    /// Links of a session's waiting samples.
    pub(super) waiting_links: Links,
    pub(super) park_timer_links: Links,
    pub(super) park_timers: List,
    /// Parked samples that have their next state and wait for a place.
    pub(super) returning: Ages,
    pub(super) member_links: Links,
    /// Places admitted and not yet trained or discarded.
    pub(super) places: u64,
    /// Of these, places whose result is known.
    pub(super) places_ready: u64,

    pub(super) groups: Slab<Group>,
    pub(super) group_of: IdMap,
    pub(super) group_links: Links,
    /// Groups that are not ready, and dead ones that are remembered, by time.
    pub(super) group_timers: List,
    pub(super) straggler_links: Links,
    /// Groups that wait for stragglers alone, by time.
    pub(super) straggler_timers: List,

    pub(super) sessions: Slab<Session>,
    pub(super) session_of: IdMap,
    pub(super) idle_links: Links,
    pub(super) idle_timers: List,
    pub(super) environment_links: Links,
    pub(super) environment_line: List,
    pub(super) reset_timers: List,
    pub(super) step_timers: List,
    pub(super) environments: u32,

    pub(super) rollout: SampleQueue,
    pub(super) output: SampleQueue,
    pub(super) next_entry: u64,

    pub(super) ballots: Slab<Ballot>,
    pub(super) ballot_links: Links,
    pub(super) ballot_line: List,
    pub(super) votes: Slab<Vote>,
    pub(super) vote_of: IdMap,
    pub(super) vote_links: Links,
    pub(super) vote_timers: List,
    pub(super) next_vote: u64,

    pub(super) trainer: Trainer,
    pub(super) weights: Weights,

    #[serde(skip)]
    actions: VecDeque<Action>,
    #[serde(skip)]
    pub(super) resolved: Vec<Resolved>,
    #[serde(skip)]
    pub(super) scratch: Vec<Slot>,
    #[serde(skip)]
    pub(super) scratch_places: Vec<Place>,
    #[serde(skip)]
    pub(super) plant: Plant,
}

impl Scheduler {
    /// A scheduler at learner version 0, with no replica.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let gate = Gate::new(&config, Standing::default());
        let bound = Bound::new(&config);
        let rollout = SampleQueue::new(config.queue.rollout.queue_type);
        let output = SampleQueue::new(config.queue.output.queue_type);
        let mut scheduler = Self {
            config,
            now: Time::ZERO,
            learner: LearnerVersion::default(),
            history: VecDeque::from([Time::ZERO]),
            history_from: 0,
            lost: Vec::new(),
            ledger: Ledger::default(),
            gate,
            bound,
            operator_paused: false,
            exhausted: false,
            ended: None,
            next_sample: 0,
            turns: Slab::default(),
            turn_of: IdMap::default(),
            turn_links: Links::default(),
            held: List::default(),
            line: List::default(),
            turn_timer_links: Links::default(),
            hold_timers: List::default(),
            generation_timers: List::default(),
            cancel_timers: List::default(),
            occupied: 0,
            replicas: Fleet::default(),
            admission_due: false,
            samples: Slab::default(),
            sample_of: IdMap::default(),
            ages: Ages::default(),
            lowest_limit: u32::MAX,
            sample_links: Links::default(),
            waiting_links: Links::default(),
            park_timer_links: Links::default(),
            park_timers: List::default(),
            returning: Ages::default(),
            member_links: Links::default(),
            places: 0,
            places_ready: 0,
            groups: Slab::default(),
            group_of: IdMap::default(),
            group_links: Links::default(),
            group_timers: List::default(),
            straggler_links: Links::default(),
            straggler_timers: List::default(),
            sessions: Slab::default(),
            session_of: IdMap::default(),
            idle_links: Links::default(),
            idle_timers: List::default(),
            environment_links: Links::default(),
            environment_line: List::default(),
            reset_timers: List::default(),
            step_timers: List::default(),
            environments: 0,
            rollout,
            output,
            next_entry: 0,
            ballots: Slab::default(),
            ballot_links: Links::default(),
            ballot_line: List::default(),
            votes: Slab::default(),
            vote_of: IdMap::default(),
            vote_links: Links::default(),
            vote_timers: List::default(),
            next_vote: 0,
            trainer: Trainer::default(),
            weights: Weights::default(),
            actions: VecDeque::new(),
            resolved: Vec::new(),
            scratch: Vec::new(),
            scratch_places: Vec::new(),
            plant: Plant::default(),
        };
        scheduler.lowest_limit = scheduler.limits().lowest();
        scheduler
    }

    /// Plants a bug: where a build has none, nothing.
    pub fn plant(&mut self, plant: Plant) {
        self.plant = plant;
    }

    /// One fact from outside. `now` never goes backwards (an earlier one counts as the latest).
    pub fn handle(&mut self, now: Time, input: &Input) {
        debug_assert!(self.actions.is_empty(), "drain poll_action() before the next handle()");
        self.now = self.now.max(now);
        self.resolved.clear();
        match input {
            Input::Request(request) => self.handle_request(request),
            Input::ClientLeft { request } => self.handle_client_left(*request),
            Input::SessionStarted { session } => self.handle_session_started(*session),
            Input::NextState { session } => self.handle_next_state(*session),
            Input::SessionEnded { session } => self.handle_session_ended(*session),
            Input::SourceExhausted => self.handle_source_exhausted(),
            Input::GenerationEnded { request, attempt, finish, first_token, segments } => {
                self.handle_generation_ended(*request, *attempt, *finish, *first_token, segments);
            }
            Input::EnvironmentEnded { session, attempt, outcome } => {
                self.handle_environment_ended(*session, *attempt, *outcome);
            }
            Input::VoteEnded { vote, outcome, tokens: _, judge_version } => {
                self.handle_vote_ended(*vote, *outcome, *judge_version);
            }
            Input::StepEnded { step, ok } => self.handle_step_ended(*step, *ok),
            Input::Weights { publication, event } => self.handle_weights(*publication, *event),
            Input::ReplicaUp { replica, deploy } => self.handle_replica_up(*replica, *deploy),
            Input::ReplicaDown { replica } => self.handle_replica_down(*replica),
            Input::Checkpointed { .. } | Input::Tick => {}
            Input::Restored { checkpoint } => self.handle_restored(*checkpoint),
            Input::CommitFailed => self.fail(RunError::CommitFailed),
            Input::Operator(operator) => self.handle_operator(operator),
            Input::Measured(measured) => self.handle_measured(measured),
        }
        self.expire();
        self.settle();
        self.replicas.sum_up();
        if let Err(violation) = self.ledger.check() {
            self.violated(violation);
        }
    }

    /// The next decision; drain it to `None` after each [`handle`](Self::handle).
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Lets every loop take what it can, until nothing moves.
    fn settle(&mut self) {
        if self.ended.is_none() {
            self.advance_publication();
            self.start_publication_if_due();
            loop {
                let mut moved = self.return_parked();
                moved |= self.start_step();
                moved |= self.unblock_output();
                moved |= self.start_votes();
                moved |= self.unblock_rollout();
                if !moved {
                    break;
                }
            }
            self.start_environments();
        }
        self.start_waiting_turns();
    }

    #[cold]
    fn handle_operator(&mut self, operator: &Operator) {
        let reply = match operator {
            Operator::Pause => {
                self.operator_paused = true;
                OperatorReply::Done
            }
            Operator::Resume => {
                self.operator_paused = false;
                self.admission_due = true;
                OperatorReply::Done
            }
            Operator::Reconfigure(config) => self.reconfigure(config),
            Operator::Publish if self.ended.is_some() => OperatorReply::Rejected,
            Operator::Publish => {
                self.weights.wished = true;
                OperatorReply::Done
            }
        };
        self.act(Action::OperatorReply { reply });
    }

    pub(super) fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    /// Ends the run.
    #[cold]
    pub(super) fn fail(&mut self, error: RunError) {
        if self.ended.is_none() {
            self.ended = Some(error);
            self.admission_due = true;
            self.act(Action::Fail { error });
        }
    }

    #[cold]
    pub(super) fn violated(&mut self, violation: Violation) {
        self.fail(RunError::Invariant(violation));
    }

    pub(super) fn ensure(&mut self, holds: bool, violation: Violation) {
        if !holds {
            self.violated(violation);
        }
    }

    /// Numbers what enters a queue, so that the first to enter is known in every order.
    pub(super) fn entry_ordinal(&mut self) -> u64 {
        self.next_entry += 1;
        self.next_entry - 1
    }

    /// Something came late, twice, or for something unknown.
    pub(super) fn ignore(&mut self) {
        self.ledger.ignored += 1;
    }

    /// The learner version at an earlier instant of the run.
    pub(super) fn learner_at(&self, time: Time) -> LearnerVersion {
        if self.history.back().is_some_and(|&began| began <= time) {
            return self.learner;
        }
        let later = self.history.partition_point(|&began| began <= time);
        LearnerVersion::new(self.history_from + (later as u32).saturating_sub(1))
    }

    /// A policy of this version no longer exists.
    pub(super) fn is_lost(&self, version: u32) -> bool {
        self.lost.iter().any(|&(after, to)| after < version && version <= to)
    }

    pub(super) fn slot_of_sample(&self, id: SampleId) -> Option<Slot> {
        self.sample_of.get(id.0)
    }
}

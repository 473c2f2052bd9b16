//! What the core remembers of each turn, sample, group, session, vote and replica.

use serde::{Deserialize, Serialize};

use super::sample::Sample;
use super::slab::{List, NONE, Slot};
use super::{SampleState, Stage};
use crate::action::Discard;
use crate::id::{GroupId, ReplicaId, RequestId, SessionId, VoteId};
use crate::input::Score;
use crate::time::Time;
use crate::version::{DeployVersion, LearnerVersion, RolloutVersion};

/// Most votes per sample.
pub(crate) const MAX_VOTES: usize = crate::config::MAX_VOTES as usize;

/// What a turn is served for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// It becomes a sample.
    Train,
    /// It never trains.
    Side,
    /// It would train, and is beyond the limit.
    ServeOnly,
}

/// Where a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TurnState {
    /// Waiting for a place.
    Held,
    /// Behind the group mate that is held for both.
    HeldWithGroup,
    /// Needs no place, and waits for a replica.
    InLine,
    /// On a replica.
    Running,
    /// On a replica, aborted by a weight sync.
    Aborting,
    /// On a replica, aborted for good: its end changes nothing.
    Cancelled,
    /// Taken off its replica, with its fate to be decided.
    Lost,
}

/// A request that is held or served.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) request: RequestId,
    pub(crate) session: Slot,
    pub(crate) group: Option<GroupId>,
    pub(crate) purpose: Purpose,
    pub(crate) prompt_tokens: u32,
    pub(crate) streamed: bool,
    pub(crate) last: bool,
    pub(crate) state: TurnState,
    /// When it arrived: held turns expire by it.
    pub(crate) arrived: Time,
    /// When its current attempt started.
    pub(crate) started: Time,
    pub(crate) attempt: u32,
    /// Index of its replica, while it runs.
    pub(crate) replica: usize,
    /// What its replica held when the attempt started.
    pub(crate) started_on: DeployVersion,
    /// It may not go on with older weights than these.
    pub(crate) floor: DeployVersion,
    /// The core let its weights change under it, or resumed it.
    pub(crate) may_mix: bool,
    /// It goes on from the tokens it has.
    pub(crate) resume: bool,
    /// Version of the first token it has, where it goes on from tokens.
    pub(crate) began: u32,
    /// It counts among its group's requested members.
    pub(crate) seated: bool,
    pub(crate) sample: Slot,
}

impl Turn {
    pub(crate) fn on_replica(&self) -> bool {
        matches!(self.state, TurnState::Running | TurnState::Aborting | TurnState::Cancelled)
    }
}

/// How old a sample may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// η.
    pub(crate) eta: u32,
    /// Nothing above η is trained.
    pub(crate) strict: bool,
    /// `stale_filter_steps`; the largest number where there is no filter.
    pub(crate) filter: u32,
}

impl Limits {
    /// A sample above this is discarded.
    pub(crate) fn lowest(self) -> u32 {
        if self.strict { self.eta.min(self.filter) } else { self.filter }
    }

    /// Why a sample above [`lowest`](Self::lowest) is discarded.
    pub(crate) fn reason(self) -> Discard {
        if self.strict && self.eta <= self.filter { Discard::Late } else { Discard::StaleFilter }
    }
}

/// A sample with the core's own bookkeeping.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) sample: Sample,
    pub(crate) state: SampleState,
    /// Its turns that are under way.
    pub(crate) turns: List,
    /// Version of the first token of what was generated.
    pub(crate) first: RolloutVersion,
    pub(crate) session: Slot,
    pub(crate) group: Slot,
    pub(crate) ballot: Slot,
    /// Rank in the queue it is in.
    pub(crate) rank: u64,
    /// When it entered its queue, as an ordinal.
    pub(crate) entered: u64,
    pub(crate) reserved_rollout: bool,
    pub(crate) reserved_output: bool,
    /// It counts as a running rollout although it is generated.
    pub(crate) keeps_slot: bool,
    /// It has its next state, and waits for a place to come back to.
    pub(crate) returning: bool,
    /// Since when it waits for its next state.
    pub(crate) waiting_since: Time,
    /// A short step cannot make it late: it would be in its batch, or has no place.
    pub(crate) exempt: bool,
    /// What binds it: the configuration it was admitted under.
    pub(crate) limits: Limits,
}

impl Entry {
    pub(crate) fn new(sample: Sample, session: Slot, group: Slot, limits: Limits) -> Self {
        Self {
            first: sample.head,
            sample,
            state: SampleState::Generating,
            turns: List::default(),
            session,
            group,
            ballot: NONE,
            rank: 0,
            entered: 0,
            reserved_rollout: false,
            reserved_output: false,
            keeps_slot: false,
            returning: false,
            waiting_since: Time::ZERO,
            exempt: false,
            limits,
        }
    }

    pub(crate) fn stamp(&mut self, stage: Stage, now: Time, learner: LearnerVersion) {
        self.sample.stamp(stage, now, learner);
    }
}

/// The rollouts of one prompt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) id: GroupId,
    /// Members it will have.
    pub(crate) size: u32,
    /// Members that were requested: waiting, admitted, or refused because it takes none.
    pub(crate) requested: u32,
    /// Of these, members that wait for nothing more: admitted, or refused because it takes none.
    pub(crate) consumed: u32,
    /// Members whose score is known.
    pub(crate) scored: u32,
    /// Members alive, in the order of admission.
    pub(crate) members: List,
    /// Members generate with these weights or newer ones.
    pub(crate) floor: DeployVersion,
    /// The request that is held for the whole group, until it has a place.
    pub(crate) representative: Slot,
    /// Its requests that wait behind the one that is held.
    pub(crate) held: List,
    /// It holds a place.
    pub(crate) placed: bool,
    /// Its result is known.
    pub(crate) ready: bool,
    /// It waits for nobody any more; members yet to come are refused.
    pub(crate) closed: bool,
    /// It is over: discarded, or trained without all of its members. Those yet to come are refused.
    pub(crate) dead: bool,
    /// Which place it took, as the ordinal of its first sample.
    pub(crate) admission: u64,
    /// When it got its place; once it is dead, since when it is remembered.
    pub(crate) since: Time,
    /// It stands among the timers of groups.
    pub(crate) timed: bool,
    /// Since when it has waited for its stragglers alone.
    pub(crate) enough_since: Option<Time>,
    /// Room reserved in the rollout queue that no member has claimed.
    pub(crate) reserved_rollout: u32,
    /// Room reserved in the output queue that no member has claimed.
    pub(crate) reserved_output: u32,
}

/// Where a session's environment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Environment {
    /// It has none.
    None,
    /// It waits for a free one.
    Waiting,
    /// It is being reset.
    Resetting,
    /// It waits for the session's next turn.
    Idle,
    /// It is being stepped.
    Stepping,
}

/// The turns of one conversation or episode.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) ended: bool,
    /// Turns held or served.
    pub(crate) turns: u32,
    /// Samples not yet judged.
    pub(crate) samples: u32,
    /// Samples that wait for their next state.
    pub(crate) awaiting_state: List,
    /// Samples that wait for the session's end.
    pub(crate) awaiting_end: List,
    /// The trajectory that its turns go on with; none where a sample is a turn.
    pub(crate) trajectory: Slot,
    /// It has had its sample, or its chance of one: what it asks is served and not recorded.
    pub(crate) unrecorded: bool,
    /// The group whose seat it has, where a sample is a session.
    pub(crate) seat: Option<GroupId>,
    /// Turns that took the seat.
    pub(crate) seat_turns: u32,
    /// A judged turn has counted.
    pub(crate) counted: bool,
    /// The replica that served its last turn.
    pub(crate) last_replica: Option<ReplicaId>,
    pub(crate) last_active: Time,
    pub(crate) environment: Environment,
    pub(crate) environment_attempt: u32,
    pub(crate) environment_tries: u32,
    pub(crate) environment_since: Time,
}

/// A sample's votes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ballot {
    pub(crate) sample: Slot,
    /// Votes it was opened for.
    pub(crate) needed: u32,
    /// A bit per vote that is to be started.
    pub(crate) waiting: u16,
    /// Votes in flight, by index.
    pub(crate) in_flight: [Slot; MAX_VOTES],
    /// Tries of each vote.
    pub(crate) tries: [u32; MAX_VOTES],
    /// The valid scores, in the order in which they came.
    pub(crate) scores: [Score; MAX_VOTES],
    pub(crate) valid: u32,
    /// It stands in the line of ballots that have votes to start.
    pub(crate) in_line: bool,
}

impl Ballot {
    /// A vote was valid.
    pub(crate) fn count(&mut self, score: Score) {
        if let Some(place) = self.scores.get_mut(self.valid as usize) {
            *place = score;
            self.valid += 1;
        }
    }
}

/// A vote in flight.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Vote {
    pub(crate) id: VoteId,
    pub(crate) ballot: Slot,
    pub(crate) index: usize,
    pub(crate) started: Time,
}

/// What a replica does for the publication under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sync {
    /// Nothing.
    Idle,
    /// It waits for its turn, or for the others to be drained.
    Waiting,
    /// Its turns end.
    Draining(Time),
    /// Its turns were aborted, and end.
    Aborting,
    /// It fetches the weights.
    Transferring(Time),
    /// It loads them.
    Loading(Time),
}

impl Sync {
    /// Its turns end before it loads.
    pub(crate) fn drains(self) -> bool {
        matches!(self, Self::Draining(_) | Self::Aborting)
    }

    /// It fetches or loads weights.
    pub(crate) fn loads(self) -> bool {
        matches!(self, Self::Transferring(_) | Self::Loading(_))
    }
}

/// A serving replica.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Replica {
    pub(crate) id: ReplicaId,
    pub(crate) deploy: DeployVersion,
    /// Its process is there.
    pub(crate) alive: bool,
    /// It holds whole weights.
    pub(crate) whole: bool,
    /// It takes no new turns, for a weight sync.
    pub(crate) closed: bool,
    pub(crate) sync: Sync,
    /// Turns on it, oldest first.
    pub(crate) turns: List,
}

impl Replica {
    pub(crate) fn up(&self) -> bool {
        self.alive && self.whole
    }

    pub(crate) fn open(&self) -> bool {
        self.up() && !self.closed
    }
}

//! An observer with books of its own: what is under way, what each sample holds and deserves, who
//! has a place. It knows each input, the actions that it caused, and what everyone may see of the
//! core ([`Scheduler`]'s getters), and says what does not fit.
//!
//! Tests and torture use it: it costs more than the core does.

mod actions;
mod ballots;
mod checks;
mod ends;
mod inputs;
mod labels;
mod places;
mod reasons;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::action::{Action, Refusal, Reply};
use crate::config::{Config, SampleUnit, SyncMode};
use crate::core::Scheduler;
use crate::id::{PublicationId, ReplicaId, RequestId, SampleId, SessionId, StepId, VoteId};
use crate::input::Input;
use crate::time::Time;
use ballots::Ballot;
use labels::{Label, Turned};

/// What does not fit, in a sentence; nothing if all does.
type Checked = Result<(), String>;

/// What must hold.
macro_rules! must {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            return Err(format!($($what)+));
        }
    };
}
use must;

/// What was decided about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It was never given.
    Unknown,
    /// It is being generated, or was.
    Started {
        /// Where.
        replica: ReplicaId,
        /// The sample it is part of.
        sample: Option<SampleId>,
    },
    /// It was refused.
    Refused(Refusal),
    /// It waits.
    Held,
}

/// A generation under way.
#[derive(Clone, Debug)]
pub struct Generation {
    /// Where.
    pub replica: ReplicaId,
    /// When it started.
    pub started: Time,
    /// The versions it met so far, oldest first.
    pub versions: Vec<u32>,
    /// It was aborted, and has not ended.
    pub aborted: bool,
    sample: Option<SampleId>,
    since: u64,
}

/// A replica.
#[derive(Clone, Copy, Debug)]
struct Engine {
    holds: u32,
    alive: bool,
    whole: bool,
}

/// A vote under way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    since: u64,
    started: Time,
}

/// A sample that was admitted and has neither been trained nor discarded.
#[derive(Clone, Debug, Default)]
struct Life {
    session: Option<SessionId>,
    label: Label,
    /// Its judging, from its first vote on.
    ballot: Option<Ballot>,
    /// It went on from the tokens of an aborted attempt.
    resumed: bool,
    in_step: bool,
}

/// The observer.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Generations that have not ended, with their attempt.
    pub generations: BTreeMap<(RequestId, u32), Generation>,
    /// Votes neither ended nor cancelled.
    pub votes: BTreeMap<VoteId, SampleId>,
    /// The attempt that a session's environment works on.
    pub environments: BTreeMap<SessionId, u32>,
    /// The step that trains.
    pub step: Option<StepId>,
    /// The newest publication.
    pub publication: Option<PublicationId>,
    /// Its export is under way.
    pub saving: bool,
    /// Loads under way, with the version that they bring.
    pub loads: BTreeMap<(PublicationId, ReplicaId), u32>,
    /// How each turn ended for its client.
    pub replies: BTreeMap<RequestId, Reply>,
    /// The run was ended by the core.
    pub failed: bool,
    /// A publication was under way after the last input.
    publishing: bool,
    engines: BTreeMap<ReplicaId, Engine>,
    asked: BTreeMap<VoteId, Asked>,
    last_vote: Option<VoteId>,
    decisions: BTreeMap<RequestId, Decision>,
    /// Requests that wait for a place or a replica.
    waiting: VecDeque<RequestId>,
    /// The session of each request; none of one whose identity came twice.
    sessions: BTreeMap<RequestId, Option<SessionId>>,
    /// Versions of the tokens that an aborted request has.
    carried: BTreeMap<RequestId, Vec<u32>>,
    samples: BTreeMap<SampleId, Life>,
    trained: u64,
    discarded: u64,
    next_sample: u64,
    learner: u32,
    /// The version that the step under way, or the last one, started from.
    step_from: u32,
    /// Steps that failed in a row.
    step_failures: u32,
    /// Every configuration that was in force; the last one is.
    configs: Vec<Config>,
    widest_bound: u32,
    mixes: bool,
    paused: bool,
    exhausted: bool,
    /// The learner went back to an older checkpoint at some time.
    restored: bool,
    /// The request of the last input, if it was one.
    last_request: Option<RequestId>,
    /// A failed step has given its samples back to the output queue at some time.
    gave_back: bool,
    /// The last request came with the identity of one that is being generated.
    reused: bool,
    /// The generation that the last input ended.
    turned: Option<Turned>,
    /// Samples that had something to do with votes in the last input.
    polled: BTreeSet<SampleId>,
    /// Ticks in a row that left something due.
    idle_ticks: u32,
    /// Samples in the rollout queue, in the output queue, and in training.
    lengths: (u32, u32, u32),
    /// Samples that are parked, and how often one was.
    parked: (u64, u64),
    inputs: u64,
    /// The first input from which on nothing breaks.
    calm: Option<u64>,
}

impl Watch {
    /// Begins at the start of a run.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            generations: BTreeMap::new(),
            votes: BTreeMap::new(),
            environments: BTreeMap::new(),
            step: None,
            publication: None,
            saving: false,
            loads: BTreeMap::new(),
            replies: BTreeMap::new(),
            failed: false,
            publishing: false,
            engines: BTreeMap::new(),
            asked: BTreeMap::new(),
            last_vote: None,
            decisions: BTreeMap::new(),
            waiting: VecDeque::new(),
            sessions: BTreeMap::new(),
            carried: BTreeMap::new(),
            samples: BTreeMap::new(),
            trained: 0,
            discarded: 0,
            next_sample: 0,
            learner: 0,
            step_from: 0,
            step_failures: 0,
            widest_bound: widest(&config),
            mixes: mixes(&config),
            configs: vec![config],
            paused: false,
            exhausted: false,
            restored: false,
            last_request: None,
            gave_back: false,
            reused: false,
            turned: None,
            polled: BTreeSet::new(),
            idle_ticks: 0,
            lengths: (0, 0, 0),
            parked: (0, 0),
            inputs: 0,
            calm: None,
        }
    }

    /// What was decided last about a request.
    #[must_use]
    pub fn decision(&self, request: RequestId) -> Decision {
        self.decisions.get(&request).copied().unwrap_or(Decision::Unknown)
    }

    /// The newest attempt of a request that is under way.
    #[must_use]
    pub fn attempt(&self, request: RequestId) -> Option<u32> {
        let range = (request, 0)..=(request, u32::MAX);
        self.generations.range(range).next_back().map(|((_, attempt), _)| *attempt)
    }

    /// The requests that are being generated and shall be.
    pub fn running(&self) -> impl Iterator<Item = RequestId> + '_ {
        let wanted = self.generations.iter().filter(|(_, generation)| !generation.aborted);
        wanted.map(|((request, _), _)| *request)
    }

    /// The newest publication that a replica is told to load and has not.
    #[must_use]
    pub fn load_of(&self, replica: ReplicaId) -> Option<PublicationId> {
        self.loads.keys().rev().find(|(_, of)| *of == replica).map(|(publication, _)| *publication)
    }

    /// A replica that has something to load.
    #[must_use]
    pub fn loading(&self) -> Option<ReplicaId> {
        self.loads.keys().next_back().map(|(_, replica)| *replica)
    }

    /// From the next input on nothing breaks: what starts has its end.
    pub fn calm(&mut self) {
        self.calm.get_or_insert(self.inputs);
    }

    /// The core has handled an input, which caused these actions.
    ///
    /// # Errors
    /// What does not fit, in a sentence. The books are of no use any more.
    pub fn observe(
        &mut self,
        now: Time,
        input: &Input,
        actions: &[Action],
        core: &Scheduler,
    ) -> Result<(), String> {
        self.inputs += 1;
        if core.config() != self.config() {
            self.configs.push(core.config().clone());
            self.widest_bound = self.widest_bound.max(widest(core.config()));
            self.mixes |= mixes(core.config());
        }
        let step_before = self.step;
        self.on_input(input, core);
        self.check_told(input, actions, core)?;
        for action in actions {
            self.on_action(now, action, core)?;
        }
        self.check_answered(input, actions)?;
        self.check_turned(actions, core)?;
        self.check_polled(core)?;
        let failed = step_before.is_some_and(|step| self.step != Some(step));
        let gave_back = failed && !matches!(input, Input::StepEnded { ok: true, .. });
        self.check_core(gave_back, core)?;
        self.check_open(core)?;
        self.check_woken(now, core)?;
        let overdue = core.poll_timeout().is_some_and(|due| due <= now);
        self.idle_ticks =
            if matches!(input, Input::Tick) && overdue { self.idle_ticks + 1 } else { 0 };
        must!(self.idle_ticks < 3, "ticks do not end what is due at {now}");
        Ok(())
    }

    fn config(&self) -> &Config {
        // There is always one.
        &self.configs[self.configs.len() - 1]
    }

    fn reconfigured(&self) -> bool {
        self.configs.len() > 1
    }

    /// Whether it was so under some configuration.
    fn ever(&self, so: impl FnMut(&Config) -> bool) -> bool {
        self.configs.iter().any(so)
    }

    fn unit(&self) -> SampleUnit {
        self.config().policy_training.sample_unit
    }
}

/// The largest bound that may come into force.
fn widest(config: &Config) -> u32 {
    let bound = config.bound_versions();
    if config.adaptive.is_on() { bound.max(config.adaptive.max) } else { bound }
}

/// Whether a turn may meet several versions without being aborted.
fn mixes(config: &Config) -> bool {
    matches!(config.policy_serving.sync_mode, SyncMode::InFlight | SyncMode::PauseKeep)
}

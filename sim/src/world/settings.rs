//! `[world]`: what a scenario says about everything that is not the scheduling core.
//!
//! A `Distribution` of a time is in seconds, one of a length in tokens. A share is from 0 to 1.

use std::fmt;
use std::sync::Arc;

use headway_shared::time::{Span, Time};

use crate::kernel::sampler::Distribution;
use crate::world::replica::ReplicaSpec;

/// `[world]`
#[derive(Clone, Debug, PartialEq)]
pub struct WorldConfig {
    /// `[world.serving]`
    pub serving: Serving,
    /// `[world.clients]`
    pub clients: Clients,
    /// `[world.environment]`
    pub environment: Environment,
    /// `[world.judge]`
    pub judge: Judge,
    /// `[world.trainer]`
    pub trainer: Trainer,
    /// `[world.weights]`
    pub weights: Weights,
    /// `[world.faults]`
    pub faults: Faults,
}

impl WorldConfig {
    /// How many replicas there ever are: those at the start, and those that come later.
    #[must_use]
    pub fn replicas_ever(&self) -> u32 {
        let named = self.faults.at.iter().filter_map(|scheduled| match scheduled.fault {
            Fault::ReplicaDown { replica, .. } | Fault::ReplicaUp { replica } => Some(replica + 1),
            _ => None,
        });
        named.fold(self.serving.replicas, u32::max)
    }
}

/// `[world.serving]`
#[derive(Clone, Debug, PartialEq)]
pub struct Serving {
    /// How many replicas there are at the start.
    pub replicas: u32,
    /// What one of them can do.
    pub replica: ReplicaSpec,
    /// Decode speed while a train step runs, as a share of the full speed.
    pub speed_during_step: f64,
    /// Decode speed of a replica that is loading weights, as a share of the full speed.
    pub speed_during_load: f64,
}

/// `[world.clients]`: the lengths, and who asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Clients {
    /// Turns of a session.
    pub turns: Distribution,
    /// Prompt of a session's first turn.
    pub prompt_tokens: Distribution,
    /// What a next state (a user's reply, a tool's output) adds to the prompt, beside the turn
    /// before.
    pub growth_tokens: Distribution,
    /// What the policy generates in a turn.
    pub output_tokens: Distribution,
    /// A longer turn is cut here; 0: no limit.
    pub max_output_tokens: u32,
    /// Share of turns that are streamed.
    pub streamed_share: f64,
    /// Sessions (or tasks) that come; 0: no limit.
    pub limit: u64,
    /// Who asks.
    pub kind: ClientKind,
}

/// `kind` of `[world.clients]`
#[derive(Clone, Debug, PartialEq)]
pub enum ClientKind {
    /// People and agents that come, think, and leave.
    Sessions(Sessions),
    /// A closed loop, as batch RL has it.
    Slots(Slots),
}

/// Clients with `kind = "sessions"`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sessions {
    /// When sessions begin.
    pub arrivals: Arrivals,
    /// From the end of a turn to the user's next request.
    pub think: Distribution,
    /// The same, where a tool answers.
    pub tool: Distribution,
    /// Share of turns that a tool answers.
    pub tool_share: f64,
    /// Share of turns marked `side`.
    pub side_share: f64,
    /// Share of sessions that mark their last turn as the last one.
    pub done_share: f64,
    /// What a client does when it is refused.
    pub retries: Retries,
}

/// When sessions begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// At random, independently of each other.
    Poisson {
        /// Sessions per hour.
        per_hour: f64,
    },
    /// A fixed population: each user starts a session after a pause.
    Users {
        /// How many users there are.
        users: u32,
        /// From the end of a session to the user's next one.
        pause: Distribution,
    },
    /// At recorded times.
    Replay {
        /// When each begins, in order.
        times: Arc<[Time]>,
    },
}

/// What an official OpenAI client does when it is refused, and what its user does after that.
#[derive(Clone, Debug, PartialEq)]
pub struct Retries {
    /// Retries of one request.
    pub max_retries: u32,
    /// Wait before the first retry without `Retry-After`; doubled each time.
    pub backoff: Span,
    /// Its largest value.
    pub backoff_max: Span,
    /// A longer `Retry-After` is not honoured.
    pub retry_after_max: Span,
    /// How long a client waits for its answer; 0: as long as it takes.
    pub timeout: Span,
    /// Share of users who try again after the last retry; the others leave the session.
    pub return_share: f64,
    /// How long those wait.
    pub return_after: Distribution,
}

/// Clients with `kind = "slots"`.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    /// How many there are; each asks for its next task as soon as its turn has ended.
    pub slots: u32,
    /// Whether an environment answers a turn; needed for more than one turn.
    pub environment: bool,
    /// Whether a slot takes a whole group at once, and the next when all of its tasks have ended.
    pub whole_groups: bool,
}

impl Slots {
    /// Tasks that they hold together at most, with groups of so many.
    #[must_use]
    pub const fn tasks(&self, group_size: u32) -> u32 {
        if self.whole_groups { self.slots.saturating_mul(group_size) } else { self.slots }
    }
}

/// `[world.environment]`
#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    /// Time of a reset.
    pub reset: Distribution,
    /// Time of a step.
    pub step: Distribution,
    /// Share of resets and steps that fail.
    pub failure_share: f64,
    /// Share of resets and steps that never end.
    pub hang_share: f64,
}

/// `[world.judge]`
#[derive(Clone, PartialEq)]
pub struct Judge {
    /// How long a vote takes at the endpoint.
    pub latency: JudgeLatency,
    /// What a judge writes.
    pub verdict_tokens: Distribution,
    /// Requests that the endpoint serves at once; it queues the others. 0: no limit.
    pub quota: u32,
    /// The endpoint finishes votes that nobody waits for any more.
    pub finishes_abandoned: bool,
    /// Share of votes without a readable score.
    pub invalid_share: f64,
    /// Share of votes that end with an error.
    pub failed_share: f64,
    /// Share of votes that never end.
    pub hang_share: f64,
    /// Share of samples that deserve 1; where they grow, of version 0, of prompts like the median one.
    pub positive_share: f64,
    /// Share of samples that deserve -1; the rest deserve 0.
    pub negative_share: f64,
    /// Share of votes that say what the sample deserves; the others follow the two shares.
    pub agreement: f64,
    /// Share of prompts that every member of their group solves: all deserve 1.
    pub solved_share: f64,
    /// Share of prompts that no member of their group solves: all deserve 0.
    pub hopeless_share: f64,
    /// How rewards rise while the policy learns.
    pub learning: Learning,
}

/// As derived, but without learning that is none: a scenario's digest, which random streams are keyed with,
/// is made of this text, and files that were there before it keep theirs.
impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            latency,
            verdict_tokens,
            quota,
            finishes_abandoned,
            invalid_share,
            failed_share,
            hang_share,
            positive_share,
            negative_share,
            agreement,
            solved_share,
            hopeless_share,
            learning,
        } = self;
        let mut text = f.debug_struct("Judge");
        text.field("latency", latency)
            .field("verdict_tokens", verdict_tokens)
            .field("quota", quota)
            .field("finishes_abandoned", finishes_abandoned)
            .field("invalid_share", invalid_share)
            .field("failed_share", failed_share)
            .field("hang_share", hang_share)
            .field("positive_share", positive_share)
            .field("negative_share", negative_share)
            .field("agreement", agreement)
            .field("solved_share", solved_share)
            .field("hopeless_share", hopeless_share);
        if *learning != Learning::default() {
            text.field("learning", learning);
        }
        text.finish()
    }
}

/// How rewards rise while the policy learns: what was generated by version v for a prompt deserves 1
/// with the log-odds `log(s / (1 - s)) + positive_growth v + prompt_spread z`, s being the positive share and z a standard
/// normal of the prompt's own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Learning {
    /// How much the log-odds grow per version.
    pub positive_growth: f64,
    /// The standard deviation of the log-odds between prompts.
    pub prompt_spread: f64,
}

/// How long a vote takes.
#[derive(Clone, Debug, PartialEq)]
pub enum JudgeLatency {
    /// So long.
    Time(Distribution),
    /// A fixed part, and reading (prompt and turn) and writing (verdict) at these rates.
    Tokens {
        /// The fixed part, in seconds.
        base_sec: f64,
        /// Tokens read per second.
        read_per_sec: f64,
        /// Tokens written per second.
        write_per_sec: f64,
    },
}

/// `[world.trainer]`
#[derive(Clone, Debug, PartialEq)]
pub struct Trainer {
    /// How long a step takes.
    pub step: StepTime,
    /// Every so many steps an evaluation lengthens the step; 0: never.
    pub evaluate_every: u32,
    /// By how much.
    pub evaluate: Distribution,
    /// Every so many steps a checkpoint is written at the step's end; 0: never.
    pub checkpoint_every: u32,
    /// How long that takes.
    pub checkpoint: Distribution,
}

/// How long a train step takes.
#[derive(Clone, Debug, PartialEq)]
pub enum StepTime {
    /// So long.
    Time(Distribution),
    /// `base_sec + sec_per_token * tokens / gpus`.
    Tokens {
        /// The fixed part, in seconds.
        base_sec: f64,
        /// Seconds of one GPU per token of the batch (prompts included).
        sec_per_token: f64,
        /// GPUs that share the work.
        gpus: u32,
    },
}

/// `[world.weights]`
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// How long exporting takes.
    pub save: Distribution,
    /// How long a replica takes to fetch them.
    pub transfer: Transfer,
    /// How long a replica takes to load them.
    pub load: Distribution,
}

/// How long fetching the weights takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Transfer {
    /// So long, for each replica at once.
    Time(Distribution),
    /// Over a link.
    Link {
        /// Seconds that one copy takes.
        copy_sec: f64,
        /// All replicas fetch over one link, one after the other; else each has its own.
        shared: bool,
    },
}

/// `[world.faults]`
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// Mean time between deaths of a replica; 0: it never dies by itself.
    pub replica_mtbf: Span,
    /// From a replica's death to its return.
    pub replica_restart: Distribution,
    /// A replica comes back with the newest saved weights; else with those it had.
    pub restart_newest: bool,
    /// Share of generations that fail.
    pub failed_generation: f64,
    /// Share of generations whose end nobody hears of.
    pub lost_completion: f64,
    /// Share of generations whose end is reported twice.
    pub duplicate_completion: f64,
    /// Share of train steps that fail.
    pub failed_step: f64,
    /// Share of weight exports that fail.
    pub failed_save: f64,
    /// Share of transfers that fail.
    pub failed_transfer: f64,
    /// Share of loads that fail and leave the old weights whole.
    pub failed_load: f64,
    /// Share of loads that break half-way: the replica holds no whole weights.
    pub broken_load: f64,
    /// Faults at given times, in order.
    pub at: Vec<Scheduled>,
}

/// A fault at a given time.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduled {
    /// When.
    pub time: Time,
    /// What.
    pub fault: Fault,
}

/// What happens at a given time.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// A replica goes.
    ReplicaDown {
        /// Which.
        replica: u32,
        /// For how long; `None`: until `ReplicaUp`.
        lasting: Option<Span>,
    },
    /// A replica comes, or comes back.
    ReplicaUp {
        /// Which.
        replica: u32,
    },
    /// No judge answers.
    JudgeHang {
        /// For how long.
        lasting: Span,
    },
    /// Votes that start take longer.
    JudgeSlow {
        /// For how long.
        lasting: Span,
        /// How many times as long.
        factor: f64,
    },
    /// Every score is 1.
    EqualScores {
        /// For how long.
        lasting: Span,
    },
    /// A train step that runs now, or the next one, takes longer.
    TrainerPause {
        /// By how much.
        lasting: Span,
    },
    /// The next exports, transfers or loads go wrong.
    WeightsFail {
        /// Where.
        stage: WeightsStage,
        /// How many.
        times: u32,
    },
    /// The learner goes back to an older checkpoint.
    Rollback {
        /// How many versions back; to version 0 at most.
        steps: u32,
    },
    /// An operator closes the gate.
    OperatorPause,
    /// An operator opens it.
    OperatorResume,
    /// An operator replaces the configuration.
    Reconfigure(Box<headway_shared::config::Config>),
}

/// Where a publication goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsStage {
    /// The export fails.
    Save,
    /// A transfer fails.
    Transfer,
    /// A load fails; the old weights are whole.
    Load,
    /// A load breaks half-way.
    Broken,
    /// A load never ends.
    Hang,
}

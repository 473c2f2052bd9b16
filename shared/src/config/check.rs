//! The rules between keys. What passes them makes progress in a world that answers.

pub(super) mod adaptive;
pub(super) mod gates;

use super::choices::{
    Bound, Correction, DropPolicy, GateKind, GroupFilter, JudgeMode, JudgeNeeds, Late, QueueOrder,
    SampleUnit, Surplus, ZeroScore,
};
use super::diagnostic::Severity;
use super::sections::{Config, MILLION, Queue};
use crate::time::Span;
pub use adaptive::AdaptiveProblem;

/// Which of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueName {
    /// Generated, not yet judged.
    Rollout,
    /// Scored, not yet trained.
    Output,
}

/// A rule that a configuration breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Problem {
    /// The key (a path) must be above 0.
    Zero(&'static str),
    /// `votes` is above 15.
    TooManyVotes,
    /// `min_votes` is above `votes`: no sample gets a score.
    MinVotesAboveVotes,
    /// `min_group_size` is above `group_size`: every group is discarded.
    MinGroupAboveGroup,
    /// `min_batch_size` is above `batch_size`.
    MinBatchAboveBatch,
    /// `min_batch_size` is above the places that η gives, so that no batch fills.
    MinBatchAbovePlaces,
    /// A batch does not fit into the output queue, so that it never fills.
    BatchAboveQueue,
    /// A group does not fit into the rollout queue, so that none is admitted.
    GroupAboveQueue,
    /// η ends before the first publication is due, so that it never comes.
    NeverPublishes,
    /// The filter ends before the first publication is due, so that it never comes.
    FilterNeverPublishes,
    /// The filter discards what η admits.
    FilterBelowBound,
    /// The `sync` gate waits for weights that come after further steps only.
    SyncGateNeverPublishes,
    /// The `roll` gate's budget ends before the first publication is due.
    RollNeverPublishes,
    /// The `one_step_off` gate pushes weights after every step.
    OneStepPublishes,
    /// The `verl` gate counts what the output queue drops, until too little is left for a period.
    VerlLosesPlaces,
    /// The `verl` gate's queue drops its oldest, and this one does not.
    VerlDropsOldest,
    /// The key (a path) means nothing to the gate.
    UnreadByGate(&'static str),
    /// The `areal` gate takes no limit for a limit of 1.
    ArealNeedsLimit,
    /// Discarded samples take places of the `areal` gate for good, until it is shut.
    ArealLosesPlaces,
    /// Turns keep their slots until their session ends, which needs slots for its next turns.
    SlotsUntilSessionEnd,
    /// The correction's band is empty.
    EmptyBand,
    /// `late = "wait"` binds nothing without `bound = "strict"`.
    WaitWithoutStrict,
    /// The order of this queue starves old samples.
    StarvingOrder(QueueName),
    /// Samples may be off-policy, and nothing corrects it.
    LagWithoutCorrection,
    /// Members of a group are never parked.
    GroupsDoNotPark,
    /// A sample alone has no variance: the filter would discard everything.
    FilterWithoutGroups,
    /// `over_sampling` is below 1.
    UnderSampling,
    /// Places cannot be dropped where the gate does not count them by state against η.
    DropWithoutPlaces,
    /// Groups need all of their members, so that they never go on without a straggler.
    NoStragglers,
    /// Zero scores do not count, and of two scores one is left.
    FilterSeesOneScore,
    /// The gate gives as many places as are asked for.
    OverSamplingWithoutPlaces,
    /// What over-sampling brings beyond a batch is too old for the next.
    SurplusTooOld,
    /// What would be late is dropped as surplus.
    WaitForSurplus,
    /// Trajectories are never parked.
    TrajectoriesDoNotPark,
    /// A trajectory is the only sample of its session.
    AtLeastOneTrajectory,
    /// A session that falls silent keeps its place for ever.
    SilentSessions,
    /// Something about the adaptive bound.
    Adaptive(AdaptiveProblem),
}

impl Problem {
    /// Whether a run is refused because of it.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self {
            Self::Adaptive(problem) => problem.severity(),
            Self::WaitWithoutStrict
            | Self::StarvingOrder(_)
            | Self::LagWithoutCorrection
            | Self::GroupsDoNotPark
            | Self::VerlDropsOldest
            | Self::UnreadByGate(_)
            | Self::NoStragglers
            | Self::FilterSeesOneScore
            | Self::OverSamplingWithoutPlaces
            | Self::SurplusTooOld
            | Self::WaitForSurplus
            | Self::TrajectoriesDoNotPark
            | Self::AtLeastOneTrajectory
            | Self::SilentSessions => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// The paths of the keys that take part, the one to look at first being first.
    #[must_use]
    pub fn keys(self) -> Vec<&'static str> {
        const ETA: &str = "policy_training.max_head_off_policyness";
        const OUTPUT: &str = "queue.output.max_size";
        const DROPS: &str = "queue.output.drop_policy";
        const FILTER: &str = "policy_training.stale_filter_steps";
        const RATIO: &str = gates::RATIO;
        const INTERVAL: &str = "policy_training.publish_interval";
        const GATE: &str = "policy_training.gate";
        const BOUND: &str = "policy_training.bound";
        const GROUP: &str = "policy_training.group_size";
        const BATCH: &str = "policy_training.batch_size";
        const MIN_BATCH: &str = "policy_training.min_batch_size";
        const UNIT: &str = "policy_training.sample_unit";
        const LIMIT: &str = "policy_serving.max_concurrent_rollouts";
        const EQUAL: &str = "policy_training.filter";
        const OVER: &str = "policy_training.over_sampling";
        const SURPLUS: &str = "policy_training.surplus";
        match self {
            Self::Zero(key) => vec![key],
            Self::TooManyVotes => vec!["reward_judging.votes"],
            Self::MinVotesAboveVotes => vec!["reward_judging.min_votes", "reward_judging.votes"],
            Self::MinGroupAboveGroup => vec!["policy_training.min_group_size", GROUP],
            Self::MinBatchAboveBatch => vec![MIN_BATCH, BATCH],
            Self::MinBatchAbovePlaces => vec![MIN_BATCH, BATCH, ETA, INTERVAL],
            Self::BatchAboveQueue => vec![BATCH, GROUP, OUTPUT],
            Self::GroupAboveQueue => vec![GROUP, "queue.rollout.max_size"],
            Self::NeverPublishes => vec![ETA, INTERVAL],
            Self::FilterNeverPublishes => vec![FILTER, INTERVAL],
            Self::FilterBelowBound => vec![FILTER, ETA],
            Self::SyncGateNeverPublishes => vec![INTERVAL, GATE],
            Self::ArealNeedsLimit => vec![LIMIT, GATE],
            Self::ArealLosesPlaces => vec![FILTER, BOUND, DROPS, GATE],
            Self::RollNeverPublishes => vec![RATIO, INTERVAL, GATE],
            Self::OneStepPublishes => vec![INTERVAL, GATE],
            Self::VerlLosesPlaces => vec![OUTPUT, DROPS, INTERVAL, GATE],
            Self::VerlDropsOldest => vec![DROPS, OUTPUT, GATE],
            Self::UnreadByGate(key) => vec![key, GATE],
            Self::SlotsUntilSessionEnd => {
                vec!["reward_judging.fire_on_turn_end", "reward_judging.mode", LIMIT]
            }
            Self::EmptyBand => {
                vec!["policy_training.correction_low", "policy_training.correction_high"]
            }
            Self::WaitWithoutStrict => vec!["policy_training.late", BOUND],
            Self::StarvingOrder(QueueName::Rollout) => vec!["queue.rollout.queue_type", FILTER],
            Self::StarvingOrder(QueueName::Output) => vec!["queue.output.queue_type", FILTER],
            Self::LagWithoutCorrection => vec!["policy_training.correction", ETA],
            Self::GroupsDoNotPark => vec!["policy_training.park_after_sec", GROUP],
            Self::FilterWithoutGroups => vec![EQUAL, GROUP],
            Self::UnderSampling => vec![OVER],
            Self::DropWithoutPlaces => vec![SURPLUS, GATE],
            Self::NoStragglers => {
                vec!["policy_training.straggler_wait_sec", "policy_training.min_group_size", GROUP]
            }
            Self::FilterSeesOneScore => vec![EQUAL, "reward_judging.zero_score"],
            Self::OverSamplingWithoutPlaces => vec![OVER, GATE],
            Self::SurplusTooOld => vec![SURPLUS, BOUND, ETA],
            Self::WaitForSurplus => vec!["policy_training.late", SURPLUS],
            Self::TrajectoriesDoNotPark => vec!["policy_training.park_after_sec", UNIT],
            Self::AtLeastOneTrajectory => vec!["reward_judging.at_least_one", UNIT],
            Self::SilentSessions => vec!["environment_hosting.session_idle_sec"],
            Self::Adaptive(problem) => problem.keys(),
        }
    }
}

/// Every rule that `config` breaks, errors and warnings.
#[must_use]
pub fn check(config: &Config) -> Vec<Problem> {
    let mut problems = zeros(config);
    if !problems.is_empty() {
        // The other rules divide a batch into places and groups, which there are none of.
        return problems;
    }
    let rules: &[(Problem, bool)] = &[
        (Problem::TooManyVotes, config.reward_judging.votes > MAX_VOTES),
        (
            Problem::MinVotesAboveVotes,
            config.reward_judging.min_votes > config.reward_judging.votes,
        ),
        (
            Problem::MinGroupAboveGroup,
            config.policy_training.min_group_size > config.policy_training.group_size,
        ),
        (
            Problem::GroupAboveQueue,
            config.policy_training.group_size > config.queue.rollout.max_size,
        ),
        (Problem::EmptyBand, band_is_empty(config)),
        (Problem::SlotsUntilSessionEnd, keeps_slots_until_session_end(config)),
    ];
    problems.extend(rules.iter().filter(|(_, broken)| *broken).map(|(problem, _)| *problem));
    problems.extend(batch(config));
    problems.extend(publication(config));
    problems.extend(areal(config));
    problems.extend(gates::check(config));
    problems.extend(warnings(config));
    problems.extend(groups(config));
    problems.extend(adaptive::check(config).into_iter().map(Problem::Adaptive));
    problems
}

/// The most votes that a sample may have.
pub const MAX_VOTES: u32 = 15;

fn zeros(config: &Config) -> Vec<Problem> {
    let Config {
        policy_serving: serving, reward_judging: judging, policy_training: training, ..
    } = config;
    let counts = [
        ("reward_judging.judge_concurrency", judging.judge_concurrency),
        ("reward_judging.votes", judging.votes),
        ("reward_judging.min_votes", judging.min_votes),
        ("policy_training.batch_size", training.batch_size),
        ("policy_training.min_batch_size", training.min_batch_size),
        ("policy_training.group_size", training.group_size),
        ("policy_training.min_group_size", training.min_group_size),
        ("policy_training.publish_interval", training.publish_interval),
        ("policy_training.updates_per_step", training.updates_per_step),
        ("queue.rollout.max_size", config.queue.rollout.max_size),
        ("queue.output.max_size", config.queue.output.max_size),
        ("policy_training.adaptive.increase", config.adaptive.increase),
        ("policy_training.adaptive.every_steps", config.adaptive.every_steps),
    ];
    let spans = [
        ("policy_serving.abort_timeout_sec", serving.abort_timeout),
        ("policy_serving.save_timeout_sec", serving.save_timeout),
        ("policy_serving.transfer_timeout_sec", serving.transfer_timeout),
        ("policy_serving.load_timeout_sec", serving.load_timeout),
    ];
    let counts = counts.iter().filter(|(_, count)| *count == 0).map(|(key, _)| *key);
    let spans = spans.iter().filter(|(_, span)| *span == Span::ZERO).map(|(key, _)| *key);
    counts.chain(spans).map(Problem::Zero).collect()
}

/// The gate counts places by η.
fn counts_places(config: &Config) -> bool {
    let gate = config.policy_training.gate;
    matches!(gate, GateKind::Headway | GateKind::Areal | GateKind::Skyrl)
}

/// Places that the gate gives at the largest publish lag that steps alone can cause:
/// (η + 1 - (publish_interval - 1)) * B; negative where it is shut before that.
pub(super) fn places_before_publication(config: &Config) -> i64 {
    let training = &config.policy_training;
    let versions =
        i64::from(training.max_head_off_policyness) + 2 - i64::from(training.publish_interval);
    versions.saturating_mul(i64::from(training.batch_size))
}

fn batch(config: &Config) -> Vec<Problem> {
    let training = &config.policy_training;
    let mut problems = Vec::new();
    let min = i64::from(training.min_batch_size);
    if training.min_batch_size > training.batch_size {
        let places = places_before_publication(config);
        let above_places = counts_places(config) && places > 0 && min > places;
        problems.push(if above_places {
            Problem::MinBatchAbovePlaces
        } else {
            Problem::MinBatchAboveBatch
        });
    }
    if config.samples_per_batch() > u64::from(config.queue.output.max_size) {
        problems.push(Problem::BatchAboveQueue);
    }
    problems
}

/// Steps go on until a publication is due only while something is admitted (and not discarded at
/// once) at a publish lag of `publish_interval - 1`.
fn publication(config: &Config) -> Vec<Problem> {
    let training = &config.policy_training;
    let lag = training.publish_interval - 1;
    let bound = config.bound_versions();
    let mut problems = Vec::new();
    if bound < lag && training.gate == GateKind::Roll {
        problems.push(Problem::RollNeverPublishes);
    } else if bound < lag && (counts_places(config) || config.is_strict()) {
        problems.push(Problem::NeverPublishes);
    }
    if lag > 0 && training.gate == GateKind::Sync {
        problems.push(Problem::SyncGateNeverPublishes);
    }
    match training.stale_filter_steps {
        Some(filter) if filter < bound && gates::needs_all_it_binds(config) => {
            problems.push(Problem::FilterBelowBound);
        }
        Some(filter) if filter < lag => problems.push(Problem::FilterNeverPublishes),
        _ => {}
    }
    problems
}

/// Its count of accepted samples never falls, so that each accepted and discarded one takes a place
/// for good.
fn areal(config: &Config) -> Vec<Problem> {
    let training = &config.policy_training;
    if training.gate != GateKind::Areal {
        return Vec::new();
    }
    let mut problems = Vec::new();
    if config.policy_serving.max_concurrent_rollouts == 0 {
        problems.push(Problem::ArealNeedsLimit);
    }
    let adaptive = &config.adaptive;
    let eta = training.max_head_off_policyness;
    let eta = if adaptive.is_on() { eta.max(adaptive.max) } else { eta };
    let versions = u64::from(eta) + 1;
    let most_waiting = versions.saturating_mul(config.samples_per_batch());
    let output = &config.queue.output;
    let drops = matches!(output.drop_policy, DropPolicy::DropOldest | DropPolicy::DropNewest)
        && u64::from(output.max_size) < most_waiting;
    if training.stale_filter_steps.is_some() || training.bound == Bound::Strict || drops {
        problems.push(Problem::ArealLosesPlaces);
    }
    problems
}

fn keeps_slots_until_session_end(config: &Config) -> bool {
    // The later turns of a trajectory need no slot.
    config.policy_training.sample_unit == SampleUnit::Turn
        && config.reward_judging.mode == JudgeMode::Sync
        && !config.reward_judging.fire_on_turn_end
        && config.policy_serving.max_concurrent_rollouts > 0
}

/// Truncated importance sampling has an upper threshold only; the others a band.
fn band_is_empty(config: &Config) -> bool {
    let training = &config.policy_training;
    match training.correction {
        Correction::None => false,
        Correction::Tis => training.correction_high == 0,
        _ => training.correction_high == 0 || training.correction_low > training.correction_high,
    }
}

fn starves(queue: &Queue) -> bool {
    matches!(queue.queue_type, QueueOrder::Lifo | QueueOrder::FreshestFirst)
}

fn may_lag(config: &Config) -> bool {
    match config.policy_training.gate {
        GateKind::None | GateKind::Openclaw => true,
        _ if config.adaptive.is_on() => config.adaptive.max > 0,
        _ => config.bound_versions() > 0,
    }
}

/// The rules about groups and over-sampling.
fn groups(config: &Config) -> Vec<Problem> {
    let training = &config.policy_training;
    let filters = training.filter == GroupFilter::ZeroVariance;
    let over = training.over_sampling > MILLION;
    let drops = over && training.surplus == Surplus::Drop;
    let by_state = matches!(training.gate, GateKind::Headway | GateKind::Sync);
    let unlimited = matches!(
        training.gate,
        GateKind::Openclaw | GateKind::None | GateKind::PrimeRl | GateKind::NemoRlWindow
    );
    let strict = config.is_strict() || training.gate == GateKind::Sync;
    let needs_all = training.min_group_size >= training.group_size;
    let rules = [
        (Problem::FilterWithoutGroups, filters && training.group_size == 1),
        (Problem::UnderSampling, training.over_sampling < MILLION),
        (Problem::DropWithoutPlaces, drops && !by_state),
        (Problem::NoStragglers, training.straggler_wait > Span::ZERO && needs_all),
        (
            Problem::FilterSeesOneScore,
            filters && config.reward_judging.zero_score != ZeroScore::Train,
        ),
        (Problem::OverSamplingWithoutPlaces, over && !drops && unlimited),
        (Problem::SurplusTooOld, over && !drops && strict && !unlimited),
        (Problem::WaitForSurplus, drops && by_state && strict && training.late == Late::Wait),
    ];
    rules.iter().filter(|(_, broken)| *broken).map(|(problem, _)| *problem).collect()
}

fn warnings(config: &Config) -> Vec<Problem> {
    let training = &config.policy_training;
    let strict = config.is_strict();
    let ages_out = strict || training.stale_filter_steps.is_some();
    let holds_place = training.park_after == Span::ZERO || training.group_size > 1;
    let trajectories = training.sample_unit == SampleUnit::Session;
    let waits_for_session = trajectories
        || !config.reward_judging.fire_on_turn_end
        || (config.reward_judging.judge_needs == JudgeNeeds::NextState && holds_place);
    let rules = [
        (Problem::WaitWithoutStrict, training.late == Late::Wait && !strict),
        (Problem::StarvingOrder(QueueName::Rollout), starves(&config.queue.rollout) && !ages_out),
        (Problem::StarvingOrder(QueueName::Output), starves(&config.queue.output) && !ages_out),
        (Problem::LagWithoutCorrection, training.correction == Correction::None && may_lag(config)),
        (
            Problem::GroupsDoNotPark,
            training.park_after > Span::ZERO && training.group_size > 1 && !trajectories,
        ),
        (Problem::TrajectoriesDoNotPark, training.park_after > Span::ZERO && trajectories),
        (Problem::AtLeastOneTrajectory, config.reward_judging.at_least_one && trajectories),
        (
            Problem::SilentSessions,
            config.environment_hosting.session_idle == Span::ZERO && waits_for_session,
        ),
    ];
    rules.iter().filter(|(_, broken)| *broken).map(|(problem, _)| *problem).collect()
}

//! What a broken rule means for a reader, and what to write instead.

use super::check::gates::reads_eta;
use super::check::{Problem, QueueName, places_before_publication};
use super::choices::Choice;
use super::sections::{Config, MILLION};

/// What is wrong, with the numbers.
pub(super) fn message(problem: Problem, config: &Config) -> String {
    let judging = &config.reward_judging;
    let training = &config.policy_training;
    let eta = training.max_head_off_policyness;
    let interval = training.publish_interval;
    let filter = training.stale_filter_steps.unwrap_or(0);
    match problem {
        Problem::Zero(key) => format!("`{}` must be above 0", last_name(key)),
        Problem::TooManyVotes => format!("`votes` is {}; at most 15 can be asked", judging.votes),
        Problem::MinVotesAboveVotes => format!(
            "`min_votes` is {} with {} votes a sample, so that no sample gets a score",
            judging.min_votes, judging.votes
        ),
        Problem::MinGroupAboveGroup => format!(
            "`min_group_size` is {} in groups of {}, so that every group is discarded",
            training.min_group_size, training.group_size
        ),
        Problem::MinBatchAboveBatch => format!(
            "`min_batch_size` is {}, above a `batch_size` of {}",
            training.min_batch_size, training.batch_size
        ),
        Problem::MinBatchAbovePlaces => format!(
            "`min_batch_size` is {}, but η = {eta} gives {} places until a publication is due \
             ((η + 1 - (publish_interval - 1)) * batch_size), so that no batch fills",
            training.min_batch_size,
            places_before_publication(config)
        ),
        Problem::BatchAboveQueue => format!(
            "a batch of {} samples does not fit into the output queue of {}, so that it never fills",
            config.samples_per_batch(),
            config.queue.output.max_size
        ),
        Problem::GroupAboveQueue => format!(
            "a group of {} samples does not fit into the rollout queue of {}, so that none is \
             admitted",
            training.group_size, config.queue.rollout.max_size
        ),
        Problem::NeverPublishes => format!(
            "with η = {eta} the samples of one version last for {} train steps, but weights are \
             published after {interval}: the run would wait for ever",
            u64::from(eta) + 1
        ),
        Problem::FilterNeverPublishes => format!(
            "samples older than {filter} versions are discarded, but weights are published after \
             {interval} train steps: the run would discard everything for ever"
        ),
        Problem::FilterBelowBound => format!(
            "`stale_filter_steps` is {filter}, below {}: what the gate admits would be discarded",
            the_bound(config)
        ),
        Problem::SyncGateNeverPublishes => format!(
            "the `sync` gate waits for new weights after every step, but they are published after \
             {interval}: the run would wait for ever"
        ),
        Problem::RollNeverPublishes => format!(
            "the `roll` gate gives {} places beside a batch per step, but weights are published \
             after {interval} steps: the run would wait for ever",
            config.roll_ahead()
        ),
        Problem::OneStepPublishes => format!(
            "the `one_step_off` gate pushes the weights after every step, but they are published \
             after {interval}"
        ),
        Problem::VerlLosesPlaces => format!(
            "the `verl` gate counts what the output queue drops until the next sync: a queue of {} \
             samples can lose so much that {interval} batches are never filled",
            config.queue.output.max_size
        ),
        Problem::VerlDropsOldest => format!(
            "verl's queue drops its oldest when it is full, and `{}` does not",
            config.queue.output.drop_policy.word()
        ),
        Problem::UnreadByGate(key) => format!(
            "`{}` has no effect: the `{}` gate does not read it",
            last_name(key),
            training.gate.word()
        ),
        Problem::ArealNeedsLimit => "the `areal` gate reads `max_concurrent_rollouts = 0` as 1: \
             one rollout at a time"
            .to_owned(),
        Problem::ArealLosesPlaces => "the `areal` gate counts every accepted sample for ever, so \
             that each one discarded later takes a place, until none is left"
            .to_owned(),
        Problem::SlotsUntilSessionEnd => format!(
            "turns keep their serving slots until their session ends, which needs a slot for its \
             next turn: {} sessions block each other for ever",
            config.policy_serving.max_concurrent_rollouts
        ),
        Problem::EmptyBand => format!(
            "the thresholds of `correction = \"{}\"` leave no ratio between them",
            training.correction.word()
        ),
        Problem::WaitWithoutStrict => {
            "`late = \"wait\"` has no effect: nothing is late under `bound = \"aggregate\"`"
                .to_owned()
        }
        Problem::StarvingOrder(queue) => {
            let (name, order) = match queue {
                QueueName::Rollout => ("rollout", config.queue.rollout.queue_type),
                QueueName::Output => ("output", config.queue.output.queue_type),
            };
            format!(
                "`{}` leaves old samples at the end of the {name} queue, where they hold places \
                 for ever",
                order.word()
            )
        }
        Problem::LagWithoutCorrection => {
            "samples may be off-policy, and no correction is applied".to_owned()
        }
        Problem::GroupsDoNotPark => {
            "`park_after_sec` has no effect: members of a group are never parked".to_owned()
        }
        Problem::FilterWithoutGroups => "`filter = \"zero_variance\"` compares the scores of a \
             group, and the scores of one sample are all equal: everything would be discarded"
            .to_owned(),
        Problem::UnderSampling => format!(
            "`over_sampling` is {}, so that less than a batch is admitted for a batch",
            f64::from(training.over_sampling) / f64::from(MILLION)
        ),
        Problem::DropWithoutPlaces => format!(
            "`surplus = \"drop\"` drops places beyond those that η gives, and the `{}` gate does \
             not count places against η",
            training.gate.word()
        ),
        Problem::NoStragglers => format!(
            "`straggler_wait_sec` has no effect: a group needs all of its {} members",
            training.group_size
        ),
        Problem::FilterSeesOneScore => format!(
            "`zero_score = \"{}\"` leaves members with a score other than 0 for `filter` to \
             compare: where scores are 0 or 1, no group trains",
            judging.zero_score.word()
        ),
        Problem::OverSamplingWithoutPlaces => format!(
            "`over_sampling` has no effect: the `{}` gate gives as many places as are asked for",
            training.gate.word()
        ),
        Problem::SurplusTooOld => "`surplus = \"recycle\"` keeps what `over_sampling` brings \
             beyond a batch, and by the next step it is older than the bound"
            .to_owned(),
        Problem::WaitForSurplus => "`late = \"wait\"` has no effect: with `surplus = \"drop\"` a \
             step leaves behind what would be late, and waits for none of it"
            .to_owned(),
        Problem::TrajectoriesDoNotPark => {
            "`park_after_sec` has no effect: a trajectory keeps its place until its session ends"
                .to_owned()
        }
        Problem::AtLeastOneTrajectory => {
            "`at_least_one` has no effect: a trajectory is the only sample of its session"
                .to_owned()
        }
        Problem::Adaptive(problem) => problem.message(config),
        Problem::SilentSessions => {
            "a session that falls silent is never ended, and its turns hold their places for ever"
                .to_owned()
        }
    }
}

/// What to write instead.
pub(super) fn remedy(problem: Problem, config: &Config) -> String {
    let judging = &config.reward_judging;
    let training = &config.policy_training;
    let eta = training.max_head_off_policyness;
    let lag = training.publish_interval.saturating_sub(1);
    match problem {
        Problem::Zero(key) => format!("write `{} = 1` or more", last_name(key)),
        Problem::TooManyVotes => "write `votes = 15` or less".to_owned(),
        Problem::MinVotesAboveVotes => format!("write `min_votes = {}` or less", judging.votes),
        Problem::MinGroupAboveGroup => {
            format!("write `min_group_size = {}` or less", training.group_size)
        }
        Problem::MinBatchAboveBatch | Problem::MinBatchAbovePlaces => {
            format!("write `min_batch_size = {}` or less", training.batch_size)
        }
        Problem::BatchAboveQueue => format!(
            "write `max_size = {}` or more, or a smaller `batch_size`",
            config.samples_per_batch()
        ),
        Problem::GroupAboveQueue => format!("write `max_size = {}` or more", training.group_size),
        Problem::NeverPublishes => format!(
            "write `max_head_off_policyness = {lag}` or more, or `publish_interval = {}` or less",
            u64::from(eta) + 1
        ),
        Problem::FilterNeverPublishes => format!("write `stale_filter_steps = {lag}` or more"),
        Problem::FilterBelowBound if !reads_eta(training.gate) => {
            format!("write `stale_filter_steps = {}` or more", config.bound_versions())
        }
        Problem::FilterBelowBound => format!(
            "write `stale_filter_steps = {eta}` or more, or lower `max_head_off_policyness`"
        ),
        Problem::SyncGateNeverPublishes => {
            "write `publish_interval = 1`, or `gate = \"headway\"`".to_owned()
        }
        Problem::RollNeverPublishes => format!(
            "write `async_generation_ratio = {lag}` or more, or a smaller `publish_interval`"
        ),
        Problem::OneStepPublishes => {
            "write `publish_interval = 1`, or `gate = \"slime_train_async\"`".to_owned()
        }
        Problem::VerlLosesPlaces => format!(
            "write `queue.output.max_size = {}` or more, or a smaller `publish_interval`",
            config.verl_budget().saturating_mul(u64::from(training.group_size))
        ),
        Problem::VerlDropsOldest => "write `queue.output.drop_policy = \"drop_oldest\"`".to_owned(),
        Problem::UnreadByGate(key) => format!("leave out `{}`", last_name(key)),
        Problem::ArealNeedsLimit => "write `max_concurrent_rollouts` under [policy_serving]; \
             AReaL's own configurations have the number of parallel rollouts there"
            .to_owned(),
        Problem::ArealLosesPlaces => "leave out `stale_filter_steps`, `bound = \"strict\"` and \
             dropping from the output queue, or write `gate = \"headway\"`"
            .to_owned(),
        Problem::SlotsUntilSessionEnd => "write `fire_on_turn_end = true`, `mode = \"async\"`, or \
             `max_concurrent_rollouts = 0`"
            .to_owned(),
        Problem::EmptyBand => {
            "write a `correction_high` above 0 and above `correction_low`".to_owned()
        }
        Problem::WaitWithoutStrict => "add `bound = \"strict\"`, or leave out `late`".to_owned(),
        Problem::StarvingOrder(_) => {
            "add `stale_filter_steps` or `bound = \"strict\"`, or write `queue_type = \"fifo\"`"
                .to_owned()
        }
        Problem::LagWithoutCorrection => {
            "write `correction = \"ppo_clip\"` or another, or `max_head_off_policyness = 0`"
                .to_owned()
        }
        Problem::GroupsDoNotPark => "leave out `park_after_sec`".to_owned(),
        Problem::FilterWithoutGroups => {
            "write `group_size = 8`, or another above 1; or leave out `filter`".to_owned()
        }
        Problem::UnderSampling => "write `over_sampling = 1` or more".to_owned(),
        Problem::DropWithoutPlaces => {
            "write `surplus = \"recycle\"`, or `gate = \"headway\"`".to_owned()
        }
        Problem::NoStragglers => match training.group_size {
            1 => "leave out `straggler_wait_sec`, or add a `group_size` above 1".to_owned(),
            size => format!("write `min_group_size = {}` or less", size - 1),
        },
        Problem::FilterSeesOneScore => "write `zero_score = \"train\"`".to_owned(),
        Problem::OverSamplingWithoutPlaces => {
            "leave out `over_sampling`, or write `gate = \"headway\"`".to_owned()
        }
        Problem::SurplusTooOld => "write `surplus = \"drop\"`".to_owned(),
        Problem::WaitForSurplus => "leave out `late`, or write `surplus = \"recycle\"`".to_owned(),
        Problem::TrajectoriesDoNotPark => {
            "leave out `park_after_sec`; `session_idle_sec` ends sessions that fall silent"
                .to_owned()
        }
        Problem::AtLeastOneTrajectory => "leave out `at_least_one`".to_owned(),
        Problem::Adaptive(problem) => problem.remedy(config),
        Problem::SilentSessions => "write `session_idle_sec = 3600`, or another limit".to_owned(),
    }
}

/// What the gate binds, as its user writes it.
fn the_bound(config: &Config) -> String {
    let versions = config.bound_versions();
    match reads_eta(config.policy_training.gate) {
        true => format!("η = {versions}"),
        false => {
            format!("the {versions} versions of the `{}` gate", config.policy_training.gate.word())
        }
    }
}

fn last_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

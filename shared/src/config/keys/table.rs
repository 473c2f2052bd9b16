//! Every key of the scheduling sections, once: the parser reads by this table, and the reference
//! is printed from it.

use super::Effect::{AtOnce, NextAdmission, NextPublication, NextStep, Restart};
use super::Key;
use super::field::{Field, Millionths};
use crate::config::choices::SyncMode;
use crate::config::sections::Config;

/// `key!(SECTION.NAME = FIELD, EFFECT, ABOUT)`. After the field, `[TEXT = VALUE]` says how the
/// default follows from other keys, `as TYPE` that the file uses other units, and `and FIELD` that
/// the key sets another field too.
macro_rules! key {
    ($section:literal . $name:literal = $($f:ident).+, $effect:ident, $about:literal) => {
        key!(@ $section, $name, $effect, $about, None,
            |config| config.$($f).+.describe(),
            |reader, key, config| {
                let default = config.$($f).+.clone();
                config.$($f).+ = Field::read(reader, key, default);
            })
    };
    ($section:literal . $name:literal = $($f:ident).+ [$text:literal = $default:expr],
        $effect:ident, $about:literal) => {
        key!(@ $section, $name, $effect, $about, Some($text),
            |config| config.$($f).+.describe(),
            |reader, key, config| {
                let default: fn(&Config) -> _ = $default;
                config.$($f).+ = Field::read(reader, key, default(config));
            })
    };
    ($section:literal . $name:literal = $($f:ident).+ as $wrapper:ident,
        $effect:ident, $about:literal) => {
        key!(@ $section, $name, $effect, $about, None,
            |config| $wrapper(config.$($f).+).describe(),
            |reader, key, config| {
                let default = $wrapper(config.$($f).+);
                config.$($f).+ = $wrapper::read(reader, key, default).0;
            })
    };
    ($section:literal . $name:literal = $($f:ident).+ and $($g:ident).+,
        $effect:ident, $about:literal) => {
        key!(@ $section, $name, $effect, $about, None,
            |config| config.$($f).+.describe(),
            |reader, key, config| {
                config.$($f).+ = Field::read(reader, key, config.$($f).+);
                config.$($g).+ = config.$($f).+;
            })
    };
    (@ $section:literal, $name:literal, $effect:ident, $about:literal, $text:expr,
        $describe:expr, $read:expr) => {
        Key {
            section: $section,
            name: $name,
            effect: $effect,
            about: $about,
            default_text: $text,
            describe: $describe,
            read: $read,
        }
    };
}

/// The keys, in the order in which they are read: what a default follows from comes first.
pub(super) const KEYS: &[Key] = &[
    key!("policy_serving"."engine" = policy_serving.engine, Restart,
        "The serving engine (live only)."),
    key!("policy_serving"."host" = policy_serving.host, Restart,
        "The address to listen on (live only)."),
    key!("policy_serving"."port" = policy_serving.port, Restart,
        "The port to listen on (live only)."),
    Key {
        section: "policy_serving",
        name: "weight_sync_pause",
        effect: NextPublication,
        about: "Whether requests get a 503 during a weight sync: `true` means \
                `sync_mode = \"pause_drain\"`, `false` means `\"in_flight\"`. Say it once: here or \
                by `sync_mode`.",
        default_text: Some("follows `sync_mode`"),
        describe: |config| config.policy_serving.sync_mode.pauses().describe(),
        read: |reader, key, config| {
            let given = reader.has(key);
            let pause = reader.boolean(key, true);
            if given {
                config.policy_serving.sync_mode =
                    if pause { SyncMode::PauseDrain } else { SyncMode::InFlight };
            }
        },
    },
    key!("policy_serving"."sync_mode" = policy_serving.sync_mode, NextPublication,
        "How new weights reach the replicas."),
    key!("policy_serving"."pause_timeout_sec" = policy_serving.pause_timeout, AtOnce,
        "How long in-flight turns may take to end before they are aborted."),
    key!("policy_serving"."abort_timeout_sec" = policy_serving.abort_timeout, AtOnce,
        "How long an aborted turn may take to stop before it is given up."),
    key!("policy_serving"."transfer_timeout_sec" = policy_serving.transfer_timeout,
        AtOnce, "How long a transfer of weights to a replica may take."),
    key!("policy_serving"."load_timeout_sec" = policy_serving.load_timeout, AtOnce,
        "How long loading weights on a replica may take."),
    key!("policy_serving"."save_timeout_sec" = policy_serving.save_timeout, AtOnce,
        "How long exporting the weights may take."),
    key!("policy_serving"."publish_retries" = policy_serving.publish_retries, AtOnce,
        "How often a failed publication is tried again before the run ends."),
    key!("policy_serving"."publish_retry_delay_sec" = policy_serving.publish_retry_delay, AtOnce,
        "The wait before the first retry; doubled each time, at most 60 s."),
    key!("policy_serving"."aborted" = policy_serving.aborted, AtOnce,
        "What becomes of a turn that a weight sync aborted."),
    key!("policy_serving"."kv_on_sync" = policy_serving.kv_on_sync, NextPublication,
        "What happens to the KV cache of a turn whose replica swaps weights under it."),
    key!("policy_serving"."routing" = policy_serving.routing, NextAdmission,
        "Which replica takes a request."),
    key!("policy_serving"."max_concurrent_rollouts" = policy_serving.max_concurrent_rollouts,
        NextAdmission, "How many main turns may be running; 0: no limit."),
    key!("policy_serving"."generation_timeout_sec" = policy_serving.generation_timeout,
        AtOnce, "How long a generation may take; 0: no limit."),
    key!("policy_serving"."over_limit" = policy_serving.over_limit, NextAdmission,
        "What happens to a request for which there is no capacity."),
    key!("policy_serving"."hold_sec" = policy_serving.hold, AtOnce,
        "How long a request may be held; 0: as long as it takes."),
    key!("environment_hosting"."max_envs" = environment_hosting.max_envs, AtOnce,
        "How many environments there are; 0: no limit."),
    key!("environment_hosting"."step_timeout_sec" = environment_hosting.step_timeout, AtOnce,
        "How long a step may take; 0: no limit."),
    key!("environment_hosting"."reset_timeout_sec" = environment_hosting.reset_timeout, AtOnce,
        "How long a reset may take; 0: no limit."),
    key!("environment_hosting"."retries" = environment_hosting.retries, AtOnce,
        "How often a failed reset or step is tried again."),
    key!("environment_hosting"."session_idle_sec" = environment_hosting.session_idle, AtOnce,
        "How long a session may be silent before it is ended; 0: for ever."),
    key!("reward_judging"."rule" = reward_judging.rule, Restart,
        "The [rule](judging.md) that judges, such as `exact`, with no endpoint and no key (live \
         only); empty: the endpoint of `settings.json` judges."),
    key!("reward_judging"."mode" = reward_judging.mode, AtOnce,
        "Whether a turn keeps its serving slot until it is judged."),
    key!("reward_judging"."judge_concurrency" = reward_judging.judge_concurrency, AtOnce,
        "How many votes may be in flight."),
    key!("reward_judging"."judge_timeout_sec" = reward_judging.judge_timeout, AtOnce,
        "How long a vote may take; 0: no limit."),
    key!("reward_judging"."judge_retries" = reward_judging.judge_retries, AtOnce,
        "How often a failed vote is tried again."),
    key!("reward_judging"."fire_on_turn_end" = reward_judging.fire_on_turn_end, AtOnce,
        "`true`: a turn is judged as soon as what its judge needs is there; `false`: all turns of \
         a session when it ends."),
    key!("reward_judging"."judge_needs" = reward_judging.judge_needs, AtOnce,
        "What a judge has to see."),
    key!("reward_judging"."votes" = reward_judging.votes, AtOnce,
        "Votes per sample, 1 to 15; a sample whose votes have begun keeps its number."),
    key!("reward_judging"."min_votes" = reward_judging.min_votes
        ["a majority of `votes`" = |config| config.reward_judging.votes.saturating_add(1) / 2],
        AtOnce, "Valid votes that make a score."),
    key!("reward_judging"."aggregate" = reward_judging.aggregate, AtOnce,
        "How votes make a score."),
    key!("reward_judging"."on_tie" = reward_judging.on_tie, AtOnce,
        "What a tie of `aggregate = \"majority\"` means."),
    key!("reward_judging"."on_judge_failure" = reward_judging.on_judge_failure, AtOnce,
        "What happens to a sample with fewer than `min_votes` valid votes."),
    key!("reward_judging"."zero_score" = reward_judging.zero_score, AtOnce,
        "What a score of 0 means."),
    key!("reward_judging"."at_least_one" = reward_judging.at_least_one, AtOnce,
        "In a session where nothing would count, the first judged turn does."),
    key!("policy_training"."engine" = policy_training.engine, Restart,
        "The training engine (live only)."),
    key!("policy_training"."gate" = policy_training.gate, NextAdmission,
        "The rule that admits requests."),
    key!("policy_training"."max_head_offpolicyness" = policy_training.max_head_off_policyness
        ["see `max_head_off_policyness`" = |config| config.policy_training.max_head_off_policyness],
        NextAdmission, "AReaL's spelling of `max_head_off_policyness`."),
    key!("policy_training"."max_head_off_policyness" = policy_training.max_head_off_policyness,
        NextAdmission,
        "η, the bound on staleness in learner versions; beyond it requests are refused (429). 0 is \
         synchronous."),
    key!("policy_training"."staleness_threshold" = policy_training.staleness_threshold as Millionths,
        NextAdmission,
        "The `verl` gate's bound: by which fraction of a sync period production may be ahead."),
    key!("policy_training"."async_generation_ratio"
        = policy_training.async_generation_ratio as Millionths, NextAdmission,
        "The `roll` gate's bound: by how many batches production may be ahead."),
    key!("policy_training"."max_lag_samples" = policy_training.max_lag_samples, NextAdmission,
        "The `pipeline_rl` gate's bound: by how many samples production may be ahead."),
    key!("policy_training"."bound" = policy_training.bound, NextAdmission,
        "What η bounds. With the `headway` gate, η = 0 binds every sample whatever this says."),
    key!("policy_training"."late" = policy_training.late, AtOnce,
        "What `bound = \"strict\"` does with a sample that would become too old."),
    key!("policy_training"."late_wait_sec" = policy_training.late_wait, AtOnce,
        "How long a step waits for a late sample."),
    key!("policy_training"."stale_filter_steps" = policy_training.stale_filter_steps,
        NextAdmission,
        "Samples older than this, in learner versions, are discarded; absent: no filter."),
    key!("policy_training"."park_after_sec" = policy_training.park_after, AtOnce,
        "A turn that waits longer for its next state gives its place back; 0: never."),
    key!("policy_training"."sample_unit" = policy_training.sample_unit, Restart,
        "What a sample is."),
    key!("policy_training"."batch_size" = policy_training.batch_size, NextStep,
        "Samples (or groups, where `group_size` is above 1) per train step."),
    key!("policy_training"."group_size" = policy_training.group_size, NextAdmission,
        "Samples per group: the rollouts of one prompt."),
    key!("policy_training"."min_group_size" = policy_training.min_group_size
        ["`group_size`" = |config| config.policy_training.group_size],
        AtOnce, "A group with fewer scored members is discarded whole."),
    key!("policy_training"."straggler_wait_sec" = policy_training.straggler_wait, AtOnce,
        "How long a group waits for its stragglers once `min_group_size` members are scored; 0: as \
         long as it takes."),
    key!("policy_training"."group_timeout_sec" = policy_training.group_timeout, AtOnce,
        "How long a group may take from its first admission; then it goes on with its scored \
         members, if they are at least `min_group_size`; 0: no limit."),
    key!("policy_training"."filter" = policy_training.filter, AtOnce,
        "Which complete groups are not trained."),
    key!("policy_training"."over_sampling" = policy_training.over_sampling as Millionths,
        NextAdmission,
        "How many batches' worth is admitted for one batch, at least 1: a reserve for what the \
         filter takes."),
    key!("policy_training"."surplus" = policy_training.surplus, NextStep,
        "What happens, when a step starts, to what `over_sampling` brought beyond a batch."),
    key!("policy_training"."batch_counts" = policy_training.batch_counts, NextStep,
        "What fills a batch."),
    key!("policy_training"."max_batch_wait_sec" = policy_training.max_batch_wait, NextStep,
        "How long a step waits for a full batch before it takes a short one; 0: as long as it \
         takes."),
    key!("policy_training"."min_batch_size" = policy_training.min_batch_size, NextStep,
        "The smallest short batch, counted like `batch_size`."),
    key!("policy_training"."publish_interval" = policy_training.publish_interval, AtOnce,
        "Train steps between two publications of weights."),
    key!("policy_training"."updates_per_step" = policy_training.updates_per_step, NextStep,
        "Optimizer updates in one train step."),
    key!("policy_training"."train_retries" = policy_training.train_retries, AtOnce,
        "How often the samples of a failed step are tried again."),
    key!("policy_training"."train_timeout_sec" = policy_training.train_timeout, AtOnce,
        "How long a train step may take; 0: no limit."),
    key!("policy_training"."correction" = policy_training.correction, NextStep,
        "The off-policy correction of the loss."),
    key!("policy_training"."correction_low" = policy_training.correction_low as Millionths,
        NextStep, "The lower threshold of the correction's ratio."),
    key!("policy_training"."correction_high" = policy_training.correction_high as Millionths,
        NextStep, "The upper threshold of the correction's ratio."),
    key!("policy_training"."queue_type" = queue.rollout.queue_type and queue.output.queue_type,
        AtOnce, "Another place for `queue.queue_type`."),
    key!("policy_training.adaptive"."signal" = adaptive.signal, AtOnce,
        "What η [follows](adaptive.md) from step to step, as the trainer measures it. \
         `max_head_off_policyness` is where it begins, and `stale_filter_steps` moves with it."),
    key!("policy_training.adaptive"."target" = adaptive.target as Millionths, AtOnce,
        "Where the signal is to stay: worse, and η falls; better, and it rises. Needed where \
         there is a signal."),
    key!("policy_training.adaptive"."min" = adaptive.min, AtOnce,
        "The smallest η, at least `publish_interval - 1`."),
    key!("policy_training.adaptive"."max" = adaptive.max, AtOnce, "The largest η."),
    key!("policy_training.adaptive"."increase" = adaptive.increase, AtOnce,
        "What is added to η where the signal is better than its target, in versions."),
    key!("policy_training.adaptive"."decrease" = adaptive.decrease as Millionths, AtOnce,
        "What η is multiplied by where the signal is worse, between 0 and 1; rounded down."),
    key!("policy_training.adaptive"."every_steps" = adaptive.every_steps, AtOnce,
        "Train steps that a decision is made of: their mean, without the lowest and the highest \
         where there are three or more. After a move the steps do not count whose samples were \
         admitted before it."),
    key!("queue"."max_size" = queue.rollout.max_size and queue.output.max_size, AtOnce,
        "How many samples each of the two queues holds."),
    key!("queue"."queue_type" = queue.rollout.queue_type and queue.output.queue_type, AtOnce,
        "In which order both queues are taken from."),
    key!("queue"."drop_policy" = queue.rollout.drop_policy and queue.output.drop_policy, AtOnce,
        "What happens when a queue is full."),
    key!("queue.rollout"."max_size" = queue.rollout.max_size
        ["`queue.max_size`" = |config| config.queue.rollout.max_size], AtOnce,
        "How many samples the rollout queue (generated, not yet judged) holds."),
    key!("queue.rollout"."queue_type" = queue.rollout.queue_type
        ["`queue.queue_type`" = |config| config.queue.rollout.queue_type], AtOnce,
        "In which order the judge takes them."),
    key!("queue.rollout"."drop_policy" = queue.rollout.drop_policy
        ["`queue.drop_policy`" = |config| config.queue.rollout.drop_policy], AtOnce,
        "What happens when the rollout queue is full."),
    key!("queue.output"."max_size" = queue.output.max_size
        ["`queue.max_size`" = |config| config.queue.output.max_size], AtOnce,
        "How many samples the output queue (scored, not yet trained) holds."),
    key!("queue.output"."queue_type" = queue.output.queue_type
        ["`queue.queue_type`" = |config| config.queue.output.queue_type], AtOnce,
        "In which order the trainer takes them."),
    key!("queue.output"."drop_policy" = queue.output.drop_policy
        ["`queue.drop_policy`" = |config| config.queue.output.drop_policy], AtOnce,
        "What happens when the output queue is full."),
];

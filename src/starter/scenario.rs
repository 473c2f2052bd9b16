//! A scenario for a configuration: its scheduling sections, and a world that it can run in.

use headway_shared::config::keys::sections_toml;
use headway_shared::config::{Config, JudgeNeeds, SampleUnit};

/// Keys that are written even where they are defaults.
const ALSO: [&str; 6] = [
    "reward_judging.judge_concurrency",
    "reward_judging.judge_timeout_sec",
    "reward_judging.judge_needs",
    "policy_training.max_head_off_policyness",
    "policy_training.batch_size",
    "policy_training.group_size",
];

/// More slots than a small world needs.
const SLOTS: u64 = 4096;

/// The scenario of a configuration, as text.
pub(crate) fn scenario(config: &Config, name: &str, in_sessions: bool) -> String {
    let sections = sections_toml(config, "", &ALSO.map(str::to_owned));
    let clients = if in_sessions { sessions(config) } else { slots(config) };
    let judge = if config.reward_judging.rule.is_empty() {
        "vote = { kind = \"lognormal\", mean_sec = 4, sigma = 0.5 }    # one vote of the judge\n\
         verdict_tokens = { kind = \"constant\", value = 200 }"
    } else {
        "vote = { kind = \"constant\", sec = 0.01 }                    # a rule is quick"
    };
    format!(
        "\
#:schema ./scenario.schema.json
# headway simulate scenario.toml                          one run
# headway sweep scenario.toml --over max_head_off_policyness=0,1,2,4,8
# The numbers of [world] are assumed: measure yours, or let `headway calibrate` fit them to a record.

[scenario]
name = \"{name}\"
title = \"The configuration of {name} in an assumed world\"
assumed = [\"every number of [world]\"]
steps = 40                # train steps
duration_sec = 2592000    # at the latest
warmup_steps = 5          # are left out of the metrics
replications = 4

# The scheduling sections, as config.toml has them.

{sections}
# Serving: each replica decodes all of its turns together.

[world.serving]
replicas = 2
decode_base_sec = 0.012            # a decode step takes this,
decode_per_sequence_sec = 0.0004   # and this for each turn in it
prefill_tokens_per_sec = 10000
max_batch = 64

# Clients: who asks, how long prompts and answers are.

{clients}
[world.judge]
{judge}
positive_share = 0.4               # of the samples deserve a 1
negative_share = 0.3               # and these a -1; the rest 0

# Training: a step takes base_sec + sec_per_token * tokens / gpus.

[world.trainer]
base_sec = 10
sec_per_token = 0.0004
gpus = 4

[world.weights]
save = {{ kind = \"constant\", sec = 2 }}
transfer = {{ kind = \"constant\", sec = 1 }}
load = {{ kind = \"constant\", sec = 3 }}
"
    )
}

/// Whether clients seem to be sessions of people and agents; else a closed loop, as batch RL has it.
pub(crate) fn in_sessions(config: &Config) -> bool {
    config.policy_training.group_size == 1
        && config.reward_judging.judge_needs == JudgeNeeds::NextState
}

fn sessions(config: &Config) -> String {
    let per_hour = config.samples_per_batch().saturating_mul(8).max(60);
    format!(
        "\
[world.clients]
kind = \"sessions\"
arrivals = {{ kind = \"poisson\", per_hour = {per_hour} }}
turns = {{ kind = \"gamma\", shape = 2, mean = 6 }}
prompt_tokens = {{ kind = \"lognormal\", mean = 2000, sigma = 0.6 }}
growth_tokens = {{ kind = \"lognormal\", mean = 400, sigma = 1 }}
output_tokens = {{ kind = \"lognormal\", mean = 400, sigma = 0.99 }}
max_output_tokens = 4096
think = {{ kind = \"lognormal\", median_sec = 20, p99_sec = 300 }}   # until a person answers
tool = {{ kind = \"lognormal\", median_sec = 3, p99_sec = 60 }}      # until a tool does
tool_share = 0.6
"
    )
}

fn slots(config: &Config) -> String {
    let training = &config.policy_training;
    let ahead = u64::from(training.max_head_off_policyness).saturating_add(1);
    let wanted = config.samples_per_batch().saturating_mul(ahead).clamp(16, SLOTS);
    let slots = match config.policy_serving.max_concurrent_rollouts {
        0 => wanted,
        limit => wanted.min(u64::from(limit)),
    };
    let judged_by_state = config.reward_judging.judge_needs == JudgeNeeds::NextState;
    let turns = if judged_by_state || training.sample_unit == SampleUnit::Session {
        "environment = true                 # answers each turn\n\
         turns = { kind = \"constant\", value = 4 }\n\
         growth_tokens = { kind = \"constant\", value = 200 }\n"
    } else {
        ""
    };
    let environment = if turns.is_empty() {
        ""
    } else {
        "\n[world.environment]\nstep = { kind = \"lognormal\", median_sec = 1, p99_sec = 10 }\n"
    };
    format!(
        "\
[world.clients]
kind = \"slots\"                     # a closed loop, as batch RL has it
slots = {slots}
prompt_tokens = {{ kind = \"lognormal\", mean = 400, sigma = 0.4 }}
output_tokens = {{ kind = \"lognormal\", mean = 800, sigma = 0.8 }}
max_output_tokens = 8192
{turns}{environment}"
    )
}

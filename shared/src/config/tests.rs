//! Tests of configurations as people write them.

mod adaptive;
mod guard;
mod judging;
mod keys;
mod layers;
mod properties;
mod rules;
mod users_files;
mod wrong;

use super::{Config, Diagnostics, Layers, load_config};

/// The users' `config.toml`, word for word.
const USERS_CONFIG: &str = r#"
[policy_serving]
engine = "sglang"
host = "0.0.0.0"
port = 30000
weight_sync_pause = true
pause_timeout_sec = 120

[reward_judging]
mode = "async"
judge_concurrency = 4
judge_timeout_sec = 30
fire_on_turn_end = true

[policy_training]
engine = "megatron"
max_head_off_policyness = 2
stale_filter_steps = 8
queue_type = "fifo"

[queue]
max_size = 512
drop_policy = "reject"
"#;

/// The users' `settings.json`, with an endpoint and a model filled in.
const USERS_SETTINGS: &str = r#"{
  "api": { "base_url": "http://judge.internal:8000", "api_key_env": "JUDGE_KEY", "timeout_sec": 60 },
  "serving": { "submission_enabled": true, "pause_on_weight_sync": true },
  "judge": { "model": "judge-7b", "temperature": 0.0, "max_tokens": 512 },
  "logging": { "log_rollout_logprob_diff": true }
}
"#;

fn toml(text: &str) -> Layers {
    Layers::new().toml("config.toml", text)
}

fn load(text: &str) -> Result<(Config, Diagnostics), Diagnostics> {
    load_config(&toml(text))
}

fn valid(layers: &Layers) -> Config {
    match load_config(layers) {
        Ok((config, _)) => config,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

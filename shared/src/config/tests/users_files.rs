use super::{USERS_CONFIG, USERS_SETTINGS, toml, valid};
use crate::config::{
    Config, DropPolicy, JudgeMode, Layers, QueueOrder, Settings, SyncMode, load_live,
};
use crate::time::Span;

fn live(settings: &str) -> Result<(Config, Settings), String> {
    let layers = toml(USERS_CONFIG).json("settings.json", settings);
    match load_live(&layers) {
        Ok(live) => {
            assert!(live.warnings.is_empty(), "{}", live.warnings);
            Ok((live.config, live.settings))
        }
        Err(diagnostics) => Err(diagnostics.to_string()),
    }
}

#[test]
fn the_users_config_loads_unchanged() {
    let config = valid(&toml(USERS_CONFIG));
    assert_eq!(config.policy_serving.sync_mode, SyncMode::PauseDrain);
    assert_eq!(config.policy_serving.pause_timeout, Span::from_secs(120));
    assert_eq!(config.reward_judging.mode, JudgeMode::Async);
    assert_eq!(config.policy_training.max_head_off_policyness, 2);
    assert_eq!(config.policy_training.stale_filter_steps, Some(8));
    for queue in [config.queue.rollout, config.queue.output] {
        assert_eq!(queue.max_size, 512);
        assert_eq!(queue.queue_type, QueueOrder::Fifo);
        assert_eq!(queue.drop_policy, DropPolicy::Reject);
    }
}

#[test]
fn the_users_settings_load_beside_it_without_a_warning() {
    let (_, settings) = live(USERS_SETTINGS).unwrap();
    assert_eq!(settings.api.api_key_env, "JUDGE_KEY");
    assert_eq!(settings.api.timeout, Span::from_secs(60));
    assert!(settings.serving.submission_enabled && settings.serving.pause_on_weight_sync);
    assert_eq!(settings.judge.max_tokens, 512);
    assert!(settings.logging.log_rollout_logprob_diff);
}

#[test]
fn a_base_url_means_the_same_with_and_without_v1() {
    for tail in ["", "/", "/v1", "/v1/"] {
        let text = USERS_SETTINGS.replace(":8000", &format!(":8000{tail}"));
        let (_, settings) = live(&text).unwrap();
        assert_eq!(settings.api.base_url, "http://judge.internal:8000/v1");
    }
}

#[test]
fn an_empty_config_has_every_default() {
    assert_eq!(valid(&Layers::new()), Config::default());
}

#[test]
fn pauses_that_disagree_between_the_files_are_an_error_that_names_both_places() {
    let text =
        USERS_SETTINGS.replace("\"pause_on_weight_sync\": true", "\"pause_on_weight_sync\": false");
    let message = live(&text).unwrap_err();
    let (json, toml) = ("settings.json:3:68: ", "config.toml:6:21: ");
    assert!(message.contains(json) && message.contains(toml), "{message}");
    assert!(
        message.contains("`pause_on_weight_sync` contradicts `weight_sync_pause`"),
        "{message}"
    );
    assert!(message.contains("help: write `\"pause_on_weight_sync\": true`"), "{message}");
}

#[test]
fn a_pause_that_contradicts_the_default_is_an_error_too() {
    let text =
        USERS_SETTINGS.replace("\"pause_on_weight_sync\": true", "\"pause_on_weight_sync\": false");
    let message = load_live(&Layers::new().json("settings.json", text)).unwrap_err().to_string();
    assert!(message.contains("whose default is `weight_sync_pause = true`"), "{message}");
}

#[test]
fn a_key_written_in_place_of_its_variable_is_never_printed() {
    let text = USERS_SETTINGS.replace("JUDGE_KEY", "sk-very-secret");
    let message = live(&text).unwrap_err();
    assert!(message.contains("settings.json:2:69: `api_key_env` must be the name"), "{message}");
    assert!(!message.contains("secret"), "{message}");
}

#[test]
fn settings_without_an_endpoint_or_a_model_say_what_is_missing() {
    let text = "{ \"api\": { \"api_key_env\": \"K\" } }";
    let message = load_live(&Layers::new().json("settings.json", text)).unwrap_err().to_string();
    assert!(message.contains("settings.json:1:3: `base_url` is missing in api"), "{message}");
    assert!(
        message.contains("help: add `\"base_url\": \"http://127.0.0.1:8000/v1\"`"),
        "{message}"
    );
    assert!(message.contains("settings.json:1:1: `model` is missing in judge"), "{message}");
    let section = "help: add `\"judge\": { \"model\": \"the judge's model\" }`";
    assert!(message.contains(section), "{message}");
}

#[test]
fn what_is_missing_in_the_settings_is_said_of_their_file() {
    let message = live("{}").unwrap_err();
    assert!(message.contains("settings.json:1:1: `base_url` is missing in api"), "{message}");
    assert!(message.contains("`\"api\": { \"base_url\": "), "{message}");
    assert!(!message.contains("config.toml:"), "{message}");
}

#[test]
fn a_key_that_is_there_as_something_else_than_a_table_is_said_once() {
    let message = live("{ \"api\": 3, \"judge\": { \"model\": \"m\" } }").unwrap_err();
    assert!(message.contains("`api` must be a table, not a whole number"), "{message}");
    assert!(!message.contains("is missing"), "{message}");
}

#[test]
fn a_base_url_without_a_scheme_is_refused() {
    let message = live(&USERS_SETTINGS.replace("http://", "")).unwrap_err();
    assert!(message.contains("`base_url` is no URL"), "{message}");
}

#[test]
fn a_base_url_that_names_a_request_is_refused_with_what_stands_before_it() {
    let settings = "{ \"api\": { \"base_url\": \"https://judge.internal/v1/chat/completions\" } }";
    let message = live(settings).unwrap_err();
    assert!(message.contains("`base_url` names one request of the API"), "{message}");
    assert!(
        message.contains("write what stands before it: \"https://judge.internal/v1\""),
        "{message}"
    );
}

#[test]
fn engines_listen_at_the_endpoint_unless_they_are_named() {
    let (_, settings) = live(USERS_SETTINGS).unwrap();
    assert_eq!(settings.serving.engine_urls, ["http://judge.internal:8000"]);
    assert_eq!(settings.serving.model_path, None);
    assert_eq!(settings.training.lease, Span::from_secs(600));
    let named = |list: &str| {
        let key = format!("\"serving\": {{ \"engine_urls\": {list},");
        live(&USERS_SETTINGS.replace("\"serving\": {", &key))
    };
    let (_, settings) = named(r#"["http://a:1/", "https://b"]"#).unwrap();
    assert_eq!(settings.serving.engine_urls, ["http://a:1", "https://b"]);
    for wrong in [r#"["a:1"]"#, r#"["http://a:1/v1"]"#] {
        let said = named(wrong).unwrap_err();
        assert!(said.contains("no address of an engine") && said.contains("without /v1"), "{said}");
    }
}

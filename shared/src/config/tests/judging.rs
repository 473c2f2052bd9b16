use super::{Layers, load, toml};
use crate::config::{Live, load_live};

/// What is said of a rule under `[reward_judging]`, which is line 2.
fn said(judging: &str) -> String {
    match load(&format!("[reward_judging]\n{judging}")) {
        Ok((_, warnings)) => warnings.to_string(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn a_rule_that_is_none_is_shown_where_it_is_wrong() {
    let message = said("rule = 'contains(anwser, \"4\")'\njudge_needs = 'turn'");
    assert!(message.starts_with("config.toml:2:18: unknown name `anwser`"), "{message}");
    assert!(message.contains("\n                     ^^^^^^\n"), "{message}");
    assert!(message.contains("help: did you mean `answer`?"), "{message}");
    // In several lines.
    let message = said("rule = '''\nexact and\n  answer + 1\n'''\njudge_needs = 'turn'");
    assert!(message.starts_with("config.toml:4:3: this is a text, not a number"), "{message}");
    // With escapes, all of it.
    let message = said("rule = \"matches(answer, \\\"(\\\")\"\njudge_needs = 'turn'");
    assert!(message.starts_with("config.toml:2:8: the pattern is no"), "{message}");
    let set = Layers::new().set("judge_needs=turn").set("reward_judging.rule=exact +");
    let message = crate::config::load_config(&set).unwrap_err().to_string();
    assert!(message.starts_with("--set:1:28: the rule ends too early"), "{message}");
}

#[test]
fn a_rule_needs_what_it_reads() {
    let message = said("rule = \"contains(next_state, 'x')\"\njudge_needs = \"turn\"");
    assert!(message.starts_with("config.toml:2:8: the rule reads `next_state`"), "{message}");
    assert!(message.contains("config.toml:3:15: with this `judge_needs`"), "{message}");
    assert!(message.contains("help: write `judge_needs = \"next_state\"`"), "{message}");
    let message = said("rule = 'exact'");
    assert!(message.starts_with("config.toml:2:8: warning: the rule does not read"), "{message}");
    assert_eq!(said("rule = 'exact'\njudge_needs = 'turn'"), "");
    assert_eq!(said("rule = \"contains(next_state, 'x')\""), "");
}

#[test]
fn a_rule_needs_no_endpoint_no_model_and_no_key() {
    let rule = "[reward_judging]\nrule = 'exact'\njudge_needs = 'turn'";
    let Live { config, settings, .. } = load_live(&toml(rule).json("settings.json", "{}")).unwrap();
    assert_eq!(config.reward_judging.rule, "exact");
    assert_eq!((settings.api.base_url.as_str(), settings.api.api_key_env.as_str()), ("", ""));
    // What is given is checked all the same.
    let wrong = "{\"api\": {\"base_url\": \"judge\"}}";
    let message = load_live(&toml(rule).json("settings.json", wrong)).unwrap_err().to_string();
    assert!(message.contains("`base_url` is no URL"), "{message}");
}

use super::{load, valid};
use crate::config::keys::{keys, reference, resolve, sections_toml};
use crate::config::{Config, Layers, Signal, Table};

#[test]
fn a_configuration_that_is_written_out_loads_as_itself() {
    let mut config = Config::default();
    config.policy_training.stale_filter_steps = Some(5);
    config.policy_training.correction_high = 1_280_000;
    config.policy_serving.hold = crate::time::Span::from_millis(1_500);
    config.policy_serving.host = "quoted \" \\ host".into();
    config.queue.output.max_size = 77;
    config.reward_judging.votes = 5;
    config.reward_judging.min_votes = 2;
    config.adaptive.signal = Signal::Ess;
    config.adaptive.target = 900_000;
    assert_eq!(load(&sections_toml(&config, "", &[])).unwrap().0, config);
}

#[test]
fn a_written_configuration_says_what_is_needed_and_what_is_asked_for() {
    let mut config = Config::default();
    assert_eq!(sections_toml(&config, "", &[]), "");
    let also = ["policy_training.batch_size".to_owned()];
    assert_eq!(sections_toml(&config, "", &also), "[policy_training]\nbatch_size = 16\n");
    // The default of one follows the other, and is not what is wanted.
    config.reward_judging.votes = 5;
    config.queue.output.max_size = 77;
    assert_eq!(
        sections_toml(&config, "guard.previous", &[]),
        "[guard.previous.reward_judging]\nvotes = 5\nmin_votes = 1\n\n\
         [guard.previous.queue.output]\nmax_size = 77\n"
    );
}

#[test]
fn every_field_of_the_sections_has_a_key() {
    let mut config = Config::default();
    config.adaptive.signal = Signal::Ess;
    let json: serde_json::Value = serde_json::from_str(&config.canonical_json()).unwrap();
    let mut fields = Vec::new();
    for (section, values) in json.as_object().unwrap() {
        for (name, value) in values.as_object().unwrap() {
            match value.as_object() {
                Some(queue) => fields.extend(queue.keys().map(|k| format!("queue.{name}.{k}"))),
                None => fields.push(format!("{section}.{name}")),
            }
        }
    }
    for field in fields {
        let found = keys().iter().any(|key| {
            let path = key.path();
            path == field || path == format!("{field}_sec")
        });
        assert!(found, "{field} has no key");
    }
}

#[test]
fn no_key_is_there_twice() {
    let mut paths: Vec<String> = keys().iter().map(|key| key.path()).collect();
    let all = paths.len();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), all);
}

#[test]
fn short_names_find_their_section_and_the_broader_of_several_queues() {
    for (short, path) in [
        ("max_head_off_policyness", "policy_training.max_head_off_policyness"),
        ("max_size", "queue.max_size"),
        ("output.max_size", "queue.output.max_size"),
        ("queue_type", "queue.queue_type"),
        ("policy_training.queue_type", "policy_training.queue_type"),
        ("world.judge.quota", "world.judge.quota"),
    ] {
        assert_eq!(resolve(short, Table::EMPTY).as_deref(), Ok(path));
    }
}

#[test]
fn defaults_that_follow_other_keys_follow_them() {
    let config = valid(&Layers::new().set("votes=5").set("group_size=8"));
    assert_eq!(config.reward_judging.min_votes, 3);
    assert_eq!(config.policy_training.min_group_size, 8);
}

#[test]
fn the_reference_names_every_key_with_default_and_effect() {
    let text = reference();
    for key in keys() {
        assert!(text.contains(&format!("| `{}` |", key.name)), "{}", key.path());
    }
    for line in [
        "| `pause_timeout_sec` | seconds | `120` | at once |",
        "| `min_votes` | whole number | a majority of `votes` | at once |",
        "| `stale_filter_steps` | whole number | absent | next admission |",
        "| `correction_low` | number, 0 to 4000 | `0.8` | next step |",
        "- `pause_drain`: Close the gate (503), let in-flight turns end, abort the rest, load, reopen.",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

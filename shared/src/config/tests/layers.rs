use super::{USERS_CONFIG, load, toml, valid};
use crate::config::{DropPolicy, Layers, QueueOrder, SyncMode, Table, Value, load_config};

fn tree(layers: &Layers) -> Table {
    layers.merge().unwrap().root
}

#[test]
fn a_later_layer_wins_key_by_key() {
    let layers = toml("[policy_training]\nbatch_size = 8\npublish_interval = 2")
        .toml("over.toml", "policy_training.batch_size = 4");
    let training = valid(&layers).policy_training;
    assert_eq!((training.batch_size, training.publish_interval), (4, 2));
}

#[test]
fn set_takes_a_short_key_and_a_whole_path() {
    let layers = toml(USERS_CONFIG)
        .set("max_head_off_policyness=4")
        .set("reward_judging.votes = 3")
        .set("sync_mode=rolling");
    let config = valid(&layers);
    assert_eq!(config.policy_training.max_head_off_policyness, 4);
    assert_eq!(config.reward_judging.votes, 3);
    assert_eq!(config.policy_serving.sync_mode, SyncMode::Rolling);
}

#[test]
fn set_finds_a_key_that_only_the_document_has() {
    let layers = toml("[world.trainer]\nstep_sec = 60").set("step_sec=5");
    let root = tree(&layers);
    let entry = root.find("world.trainer.step_sec").unwrap();
    assert_eq!(entry.node.value, Value::Integer(5));
}

#[test]
fn aliases_in_a_later_layer_replace_what_they_rival() {
    let lower = toml(
        "policy_serving.sync_mode = \"in_flight\"\n\
         policy_training.max_head_off_policyness = 9\n\
         [queue.output]\nmax_size = 64\nqueue_type = \"lifo\"\ndrop_policy = \"block\"",
    );
    let config = valid(&lower.toml("users.toml", USERS_CONFIG).set("max_head_offpolicyness=3"));
    assert_eq!(config.policy_serving.sync_mode, SyncMode::PauseDrain);
    assert_eq!(config.policy_training.max_head_off_policyness, 3);
    assert_eq!(config.queue.output.max_size, 512);
    assert_eq!(config.queue.output.queue_type, QueueOrder::Fifo);
    assert_eq!(config.queue.output.drop_policy, DropPolicy::Reject);
}

#[test]
fn one_queue_may_differ_from_both() {
    let config = valid(&toml("[queue]\nmax_size = 64\n[queue.output]\nmax_size = 32"));
    assert_eq!((config.queue.rollout.max_size, config.queue.output.max_size), (64, 32));
}

#[test]
fn a_table_of_another_kind_replaces_the_lower_one_whole() {
    let layers = toml("time = { kind = \"lognormal\", median_sec = 18, p99_sec = 60 }")
        .set("time={ kind = \"constant\", sec = 2 }");
    assert_eq!(tree(&layers).find("time").unwrap().node.as_table().unwrap().entries().count(), 2);
    let same = toml("time = { kind = \"constant\", sec = 2, cap_sec = 9 }")
        .set("time={ kind = \"constant\", sec = 3 }");
    assert_eq!(tree(&same).find("time").unwrap().node.as_table().unwrap().entries().count(), 3);
}

#[test]
fn what_a_set_says_is_shown_where_it_was_said() {
    let layers = toml(USERS_CONFIG).set("max_head_off_policyness=x");
    let message = load_config(&layers).unwrap_err().to_string();
    assert_eq!(
        message,
        "--set:1:25: `max_head_off_policyness` must be a whole number, not text\n    \
         max_head_off_policyness=x\n    \
         ........................^\n"
            .replace('.', " ")
            + "help: write `max_head_off_policyness=2`\n"
    );
}

#[test]
fn a_set_that_cannot_be_placed_says_why() {
    for (assignment, message, help) in [
        ("max_head_off_policynes=4", "unknown key", "did you mean `max_head_off_policyness`?"),
        ("engine=x", "several keys", "policy_serving.engine, policy_training.engine"),
        ("votes", "no assignment", "--set key=value"),
        ("=3", "no key stands in front", "--set key=value"),
        ("batch_size 4", "no assignment", "write --set batch_size=4"),
        ("a..b=3", "unknown key", "whole path"),
        ("policy_training.batchsize=4", "unknown key `batchsize`", "did you mean `batch_size`?"),
    ] {
        let text = load_config(&Layers::new().set(assignment)).unwrap_err().to_string();
        assert!(text.starts_with("--set:1:1: "), "{text}");
        assert!(text.contains(message) && text.contains(help), "{text}");
    }
}

#[test]
fn every_error_is_reported_and_not_only_the_first() {
    let diagnostics = load("[queue]\nmax_size = \"a\"\ndrop = 1\n[judge]\nx = 1").unwrap_err();
    assert_eq!(diagnostics.items.len(), 3, "{diagnostics}");
}

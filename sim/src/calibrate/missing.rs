//! What a scenario must say and nothing was measured of.

use super::estimate::{Estimates, Item};

/// Keys that must be there, one of a row; what stands for them, and in words.
const NEEDED: [(&str, &[&str], &str, &str, &str); 7] = [
    (
        "world.serving",
        &["decode_base_sec"],
        "decode_base_sec",
        "0.02",
        "a decode step of 20 ms, whatever the batch",
    ),
    ("world.clients", &["kind"], "kind", "\"sessions\"", "sessions of one turn"),
    (
        "world.clients",
        &["prompt_tokens"],
        "prompt_tokens",
        "{ kind = \"constant\", value = 512 }",
        "prompts of 512 tokens",
    ),
    (
        "world.clients",
        &["output_tokens"],
        "output_tokens",
        "{ kind = \"constant\", value = 256 }",
        "outputs of 256 tokens",
    ),
    ("world.clients.arrivals", &["kind"], "users", "64", "64 users without pauses"),
    (
        "world.judge",
        &["vote"],
        "vote",
        "{ kind = \"constant\", sec = 1 }",
        "a vote of the judge takes 1 s",
    ),
    (
        "world.trainer",
        &["step", "base_sec"],
        "step",
        "{ kind = \"constant\", sec = 30 }",
        "a train step takes 30 s",
    ),
];

/// Adds what is missing, and says so.
pub(super) fn assume(estimates: &mut Estimates, record: bool) -> Vec<String> {
    let mut assumed = Vec::new();
    let hosted = has(estimates, "world.clients", &["slots"]);
    for (table, any, key, value, words) in NEEDED {
        if has(estimates, table, any) || (hosted && table == "world.clients.arrivals") {
            continue;
        }
        if table == "world.clients.arrivals" {
            let kind = Item::setting("assumed", table, "kind", "\"users\"".to_owned(), 0);
            estimates.items.push(kind);
        }
        estimates.items.push(Item::setting("assumed", table, key, value.to_owned(), 0));
        let why = if record { "the record does not show it" } else { "no column says it" };
        assumed.push(format!("{words}: {why}"));
    }
    assumed
}

fn has(estimates: &Estimates, table: &str, keys: &[&str]) -> bool {
    let of = |item: &&Item| item.table == table;
    let values = estimates.items.iter().filter(of).flat_map(|item| &item.values);
    values.map(|(key, _)| key).any(|key| keys.contains(key))
}

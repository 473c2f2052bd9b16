//! What the readers of a scenario ask for, for its [schema](headway_shared::config::schema).

use std::path::Path;

use headway_shared::config::{Asked, Choice, Layers};

use super::{Parts, faults};

/// Texts in which every table of a scenario is there, and every alternative between them. What is
/// missing or wrong in them does not matter: a reader asks for it all the same.
const PROBES: [&str; 3] = [
    r#"
[scenario]
[[scenario.cases]]
[guard]
[guard.previous]
[world.serving]
decode_base_sec = 0.02
[world.clients]
kind = "sessions"
[world.clients.arrivals]
kind = "poisson"
[world.drift]
[[world.drift.windows]]
[plan]
[calibration]
[[calibration.parameters]]
"#,
    r#"
[world.serving]
decode_table = [[1, 60]]
[world.clients]
kind = "slots"
[world.judge]
read_tokens_per_sec = 1
write_tokens_per_sec = 1
[world.trainer]
sec_per_token = 0.1
[world.weights]
size_gb = 1
"#,
    r#"
[world.serving]
decode_rates = "qwen3-8b-h100-vllm-tp1"
"#,
];

/// Distributions, each with the keys of its law, as lengths have them.
const LAWS: [&str; 10] = [
    "kind = \"constant\", value = 1",
    "kind = \"uniform\", min = 1, max = 2",
    "kind = \"exponential\", mean = 1",
    "kind = \"lognormal\", mean = 1, sigma = 1",
    "kind = \"lognormal\", median = 1, sigma = 1",
    "kind = \"lognormal\", median = 1, p99 = 2",
    "kind = \"gamma\", shape = 1, mean = 1",
    "kind = \"pareto\", min = 1, alpha = 2",
    "kind = \"empirical\"",
    "kind = \"replay\"",
];

/// The same as times have them.
fn in_seconds(law: &str) -> String {
    let law = law.replace("value", "sec");
    ["min", "max", "mean", "median", "p99"]
        .iter()
        .fold(law, |law, key| law.replace(&format!("{key} ="), &format!("{key}_sec =")))
}

/// What the readers of a scenario ask for.
#[must_use]
pub fn asked() -> Vec<Asked> {
    let mut texts: Vec<String> = PROBES.map(str::to_owned).to_vec();
    let arrivals = ["users", "replay"];
    texts.extend(arrivals.map(|kind| {
        format!("[world.clients]\nkind = \"sessions\"\n[world.clients.arrivals]\nkind = \"{kind}\"")
    }));
    texts.extend(
        faults::Kind::ALL
            .iter()
            .map(|(kind, _)| format!("[[world.faults.at]]\nkind = \"{kind}\"\nlasting_sec = 1")),
    );
    texts.extend(LAWS.iter().map(|law| {
        let sec = in_seconds(law);
        format!("[world.clients]\nprompt_tokens = {{ {law} }}\n[world.judge]\nvote = {{ {sec} }}")
    }));
    texts.iter().flat_map(|text| asked_of(text)).collect()
}

fn asked_of(text: &str) -> Vec<Asked> {
    let layers = Layers::new().toml("probe", text);
    let Ok(mut document) = layers.merge() else { return Vec::new() };
    document.findings.note_asked();
    let _ = Parts::read(&mut document, &layers, Path::new("."));
    document.findings.take_asked()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use headway_shared::config::Shape;

    use super::*;
    use crate::scenario::distribution::Kind;

    #[test]
    fn every_law_is_probed_in_both_units() {
        for (kind, _) in Kind::ALL {
            assert!(LAWS.iter().any(|law| law.contains(&format!("{kind:?}"))), "{kind}");
        }
        let asked = asked();
        let keys = |table: &str| -> BTreeSet<&str> {
            let of = asked.iter().filter_map(|asked| match asked {
                Asked::Key { path, key, .. } if path == table => Some(*key),
                _ => None,
            });
            of.collect()
        };
        let count = keys("world.clients.prompt_tokens");
        assert_eq!(count.len(), keys("world.judge.vote").len());
        assert!(count.contains("p99") && keys("world.judge.vote").contains("p99_sec"));
        let form = |asked: &&Asked| matches!(asked, Asked::Key { shape: Shape::Form(_), .. });
        assert!(asked.iter().filter(form).count() > 20);
    }
}

//! The scheduling sections out of a tree.

use super::check::check;
use super::choices::Choice;
use super::diagnostic::{Diagnostic, Diagnostics, Origin, Severity};
use super::explain;
use super::judging;
use super::keys::{self, locate, read_section};
use super::layers::{Document, Layers};
use super::node::{Entry, Value};
use super::reader::Reader;
use super::sections::Config;

/// Reads a configuration that holds the scheduling sections and nothing else.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_config(layers: &Layers) -> Result<(Config, Diagnostics), Diagnostics> {
    let document = layers.merge()?;
    let mut reader = document.reader();
    let config = parse_sections(&mut reader);
    reader.finish();
    check_sections(&document, &config);
    document.finish().map(|warnings| (config, warnings))
}

/// Takes the scheduling sections out of a document; its other sections are left to the caller, who
/// then calls [`check_sections`].
pub fn parse_sections(root: &mut Reader<'_>) -> Config {
    let mut config = Config::default();
    for section in ["policy_serving", "environment_hosting", "reward_judging", "policy_training"] {
        let mut reader = root.table(section);
        read_section(section, &mut reader, &mut config);
        if section == "policy_training" {
            let mut adaptive = reader.table("adaptive");
            read_section("policy_training.adaptive", &mut adaptive, &mut config);
            adaptive.finish();
        }
        reader.finish();
    }
    let mut queue = root.table("queue");
    read_section("queue", &mut queue, &mut config);
    for (name, section) in [("rollout", "queue.rollout"), ("output", "queue.output")] {
        let mut reader = queue.table(name);
        read_section(section, &mut reader, &mut config);
        reader.finish();
    }
    queue.finish();
    config
}

/// Applies the rules between keys, settings included; what breaks one is reported at the keys that take part. Does
/// nothing where the keys themselves are wrong.
pub fn check_sections(document: &Document, config: &Config) {
    if document.findings.has_errors() {
        return;
    }
    contradictions(document, config);
    contradicting_pause(document, config);
    judging::check_rule(document, config);
    for problem in check(config) {
        let mut places = problem.keys().into_iter().filter_map(|path| locate(&document.root, path));
        // Defaults break no rule, so that at least one of the keys is given.
        let Some(first) = places.next() else { continue };
        let message = explain::message(problem, config);
        let diagnostic = match problem.severity() {
            Severity::Error => Diagnostic::error(first.node.origin, message),
            Severity::Warning => Diagnostic::warning(first.node.origin, message),
        };
        let diagnostic = diagnostic.help(explain::remedy(problem, config));
        document.findings.push(places.fold(diagnostic, |diagnostic, entry| {
            diagnostic.related(entry.node.origin, format!("with this `{}`", entry.key))
        }));
    }
}

/// Keys that say one thing twice, and differently.
fn contradictions(document: &Document, config: &Config) {
    let root = &document.root;
    let twice = [
        ("policy_training.max_head_offpolicyness", "policy_training.max_head_off_policyness"),
        ("policy_training.queue_type", "queue.queue_type"),
    ];
    for (one, other) in twice {
        if let (Some(one), Some(other)) = (root.find(one), root.find(other))
            && one.node.value != other.node.value
        {
            contradict(document, one, other, "they mean the same: keep one of them");
        }
    }
    let pause = root.find("policy_serving.weight_sync_pause");
    let mode = root.find("policy_serving.sync_mode");
    if let (Some(pause), Some(mode)) = (pause, mode) {
        let pauses = config.policy_serving.sync_mode.pauses();
        if pause.node.value != Value::Boolean(pauses) {
            let word = config.policy_serving.sync_mode.word();
            let help = format!("`{word}` means `weight_sync_pause = {pauses}`: keep one of them");
            contradict(document, pause, mode, &help);
        }
    }
}

fn contradict(document: &Document, one: &Entry, other: &Entry, help: &str) {
    let place = |origin: Origin| {
        let position = document.sources.position(origin);
        format!("{}:{}", document.sources.name(origin.source), position.line)
    };
    let message =
        format!("`{}` contradicts `{}` ({})", one.key, other.key, place(other.node.origin));
    document.findings.push(
        Diagnostic::error(one.node.origin, message)
            .related(other.node.origin, format!("`{}` is here", other.key))
            .help(help),
    );
}

/// A setting of the users' `settings.json` that says again what a section says, and differently.
fn contradicting_pause(document: &Document, config: &Config) {
    let Some(setting) = document.root.find("serving.pause_on_weight_sync") else { return };
    let pauses = config.policy_serving.sync_mode.pauses();
    if setting.node.value == Value::Boolean(pauses) {
        return;
    }
    let help = format!(
        "write `\"pause_on_weight_sync\": {pauses}`, or change `weight_sync_pause` under \
         [policy_serving]"
    );
    match keys::locate(&document.root, "policy_serving.weight_sync_pause") {
        Some(section) => contradict(document, setting, section, &help),
        None => document.findings.push(
            Diagnostic::error(
                setting.node.origin,
                format!(
                    "`pause_on_weight_sync` contradicts [policy_serving], whose default is \
                     `weight_sync_pause = {pauses}`"
                ),
            )
            .help(help),
        ),
    }
}

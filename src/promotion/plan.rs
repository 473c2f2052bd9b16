//! What a promotion makes of a configuration's text.

use headway_shared::config::edit::{Change, Draft, changes};
use headway_shared::config::keys::{Key, keys, locate};
use headway_shared::config::{
    Config, Diagnostic, Findings, GuardSettings, Layers, Sources, Syntax, Table, load_guarded,
};

use super::tuned::Promotable;
use crate::failure::Failure;

/// A text and what becomes of it.
#[derive(Debug)]
pub(super) struct Promotion {
    /// The text afterwards.
    pub(super) text: String,
    /// The scheduling keys that change.
    pub(super) changes: Vec<Change>,
}

/// Reads the scheduling sections and the guard of a text, whatever else it holds.
pub(super) fn read(name: &str, text: &str) -> Result<(Config, Option<GuardSettings>), Failure> {
    let (config, guard, _) = load_guarded(&Layers::new().toml(name, text), true)?;
    Ok((config, guard))
}

/// The paths of all keys, which a whole configuration is written with.
#[cfg(feature = "live")]
pub(super) fn all_keys() -> Vec<String> {
    keys().iter().map(Key::path).collect()
}

/// Edits a text so that it says what was tuned. What a restart alone changes, and no simulation
/// knows, stays as it is.
pub(super) fn promote(name: &str, text: &str, from: &Promotable) -> Result<Promotion, Failure> {
    let (now, guard) = read(name, text)?;
    let wished = with_live_keys(from.tuned.config.clone(), &now);
    same_unit(name, &now, &wished, from)?;
    let changes = changes(&now, &wished);
    let mut draft = Draft::new(name, text)?;
    nothing_unmeant(name, text, &changes, from)?;
    let no_place = |error| {
        Failure::input(format!(
            "{name}: {error}\nhelp: write it as a line of its own below its [section]"
        ))
    };
    draft.adopt(&wished).map_err(no_place)?;
    // A second promotion of the same leaves the way back as it is.
    let previous = with_live_keys(now, &Config::default());
    let previous = (!changes.is_empty()).then_some(&previous);
    let envelope = &from.tuned.envelope;
    if previous.is_some() || guard.is_none_or(|guard| guard.envelope != *envelope) {
        draft.hold_to(envelope, previous).map_err(no_place)?;
    }
    let text = draft.text().to_owned();
    says_what_was_meant(name, &text, &wished, from)?;
    Ok(Promotion { text, changes })
}

/// `config` with the keys of `now` that are live only.
fn with_live_keys(mut config: Config, now: &Config) -> Config {
    let (serving, its) = (&mut config.policy_serving, &now.policy_serving);
    (serving.engine, serving.host, serving.port) = (its.engine.clone(), its.host.clone(), its.port);
    config.policy_training.engine.clone_from(&now.policy_training.engine);
    config.reward_judging.rule.clone_from(&now.reward_judging.rule);
    config
}

/// Samples stay what they are for as long as there is a record.
fn same_unit(name: &str, now: &Config, wished: &Config, from: &Promotable) -> Result<(), Failure> {
    let unit = |config: &Config| {
        let key = keys().iter().find(|key| key.name == "sample_unit");
        key.and_then(|key| key.describe(config).value).unwrap_or_default()
    };
    let (here, there) = (unit(now), unit(wished));
    if here == there {
        return Ok(());
    }
    Err(Failure::input(format!(
        "{name}: `sample_unit` is {here} here, and {there} in {}: predictions of one say nothing of \
         the other\nhelp: tune a scenario with `sample_unit = {here}`",
        from.name
    )))
}

/// A key that neither the tuned file nor its scenario names keeps its value, or nothing is promoted: its default is
/// nothing that anyone has meant.
fn nothing_unmeant(
    name: &str,
    text: &str,
    changes: &[Change],
    from: &Promotable,
) -> Result<(), Failure> {
    let unmeant: Vec<&Change> =
        changes.iter().filter(|change| !is_meant(from, change.key)).collect();
    if unmeant.is_empty() {
        return Ok(());
    }
    let (mut sources, findings) = (Sources::default(), Findings::default());
    sources.add(Syntax::Toml, name, text);
    let tree = Layers::new().toml(name, text).merge()?.root;
    for change in unmeant {
        let place = locate(&tree, &change.key.path());
        let origin = place.map_or_else(|| sources.start(), |entry| entry.node.origin);
        let (key, old, new) = (change.key.name, change.old_text(), change.new_text());
        let message = format!(
            "`{key}` would be lost: it is {old} here, and {} was tuned with its default, {new}",
            from.name
        );
        let path = change.key.path();
        let first = match change.new {
            Some(_) => format!("make it {new} here first"),
            None => "take it out here first".to_owned(),
        };
        let help = format!(
            "tune with `--set {path}={old}` (or with --config FILE, the whole of this one), or {first}"
        );
        findings.push(Diagnostic::error(origin, message).help(help));
    }
    let (Ok(found) | Err(found)) = findings.finish(sources);
    Err(found.into())
}

/// Whether someone has meant the tuned value of a key: the tuned file or its scenario names it, or
/// what it follows from.
fn is_meant(from: &Promotable, key: &Key) -> bool {
    let leader = match key.name {
        "min_votes" => "reward_judging.votes",
        "min_group_size" => "policy_training.group_size",
        _ => "",
    };
    let names = |tree: &Table| locate(tree, &key.path()).is_some() || tree.find(leader).is_some();
    from.trees.iter().any(names)
}

/// The proof: the text, read as the live run reads it, is what was tuned.
fn says_what_was_meant(
    name: &str,
    text: &str,
    wished: &Config,
    from: &Promotable,
) -> Result<(), Failure> {
    let (found, guard) = read(name, text)?;
    if let Some(change) = changes(&found, wished).first() {
        return Err(Failure::broken(format!(
            "{name}: `{}` would be {} and not {}: nothing is changed; this is a bug of Headway",
            change.key.path(),
            change.old_text(),
            change.new_text()
        )));
    }
    if guard.is_none_or(|guard| guard.envelope != from.tuned.envelope) {
        return Err(Failure::broken(format!(
            "{name}: [guard] would not be what was predicted: nothing is changed; this is a bug of \
             Headway"
        )));
    }
    Ok(())
}

//! Writing a tuned file.

use std::fmt::Write;

use super::{Provenance, Tuned};
use crate::config::keys::{Key, keys, spelled_out};
use crate::config::sections::Config;
use crate::config::text::toml_text;
use crate::metrics::Metric;
use crate::time::Span;

const HEAD: &str = "# Written by `headway tune`; hand it to `headway promote`.\n";

pub(super) fn text(tuned: &Tuned) -> String {
    let Tuned { provenance, predicted, envelope, config } = tuned;
    let mut text = HEAD.to_owned();
    // Writing to a `String` cannot fail.
    let _ = head(&mut text, provenance, config, envelope.window);
    let predicted = predicted.iter().map(|(metric, mean, half)| (*metric, *mean, *half));
    let _ = pairs(&mut text, "predicted", "whole runs: mean, 90% half-width", predicted);
    let ranges = envelope.ranges.iter().map(|(metric, range)| (*metric, range.low, range.high));
    let about = "one window of `window_sec` of a healthy run: lowest, highest";
    let _ = pairs(&mut text, "envelope", about, ranges);
    let _ = sections(&mut text, config, &provenance.space);
    text
}

fn head(
    text: &mut String,
    provenance: &Provenance,
    config: &Config,
    window: Span,
) -> std::fmt::Result {
    let Provenance { seed, replications, runs, decision_version, .. } = provenance;
    writeln!(text, "[tuned]")?;
    writeln!(text, "scenario = {}", toml_text(&provenance.scenario))?;
    writeln!(text, "scenario_file = {}", toml_text(&provenance.scenario_file))?;
    writeln!(text, "scenario_digest = \"{}\"", provenance.scenario_digest)?;
    if !provenance.overrides.is_empty() {
        list(text, "overrides", &provenance.overrides)?;
    }
    writeln!(text, "config_digest = \"{}\"", config.digest())?;
    writeln!(text, "seed = {seed}")?;
    writeln!(text, "replications = {replications}")?;
    writeln!(text, "runs = {runs}")?;
    writeln!(text, "headway = {}", toml_text(&provenance.headway))?;
    writeln!(text, "decision_version = {decision_version}")?;
    writeln!(text, "maximize = {}", toml_text(&provenance.maximize))?;
    list(text, "subject_to", &provenance.subject_to)?;
    list(text, "space", &provenance.space)?;
    writeln!(text, "window_sec = {}", window.to_string().trim_end_matches('s'))
}

fn list(text: &mut String, key: &str, items: &[String]) -> std::fmt::Result {
    match items {
        [] => writeln!(text, "{key} = []"),
        [one] => writeln!(text, "{key} = [{}]", toml_text(one)),
        many => {
            writeln!(text, "{key} = [")?;
            many.iter().try_for_each(|item| writeln!(text, "    {},", toml_text(item)))?;
            writeln!(text, "]")
        }
    }
}

/// Two numbers a metric. `Debug` writes the shortest text that reads back as the same number.
fn pairs(
    text: &mut String,
    table: &str,
    about: &str,
    values: impl Iterator<Item = (&'static Metric, f64, f64)>,
) -> std::fmt::Result {
    writeln!(text, "\n# {about}\n[tuned.{table}]")?;
    for (metric, one, other) in values {
        writeln!(text, "{} = [{one:?}, {other:?}]", metric.name)?;
    }
    Ok(())
}

/// The scheduling sections: what differs from its default, and what was searched.
fn sections(text: &mut String, config: &Config, space: &[String]) -> std::fmt::Result {
    let searched: Vec<&str> = space
        .iter()
        .filter_map(|axis| Some(axis.split_once('=')?.0.trim()))
        .flat_map(spelled_out)
        .collect();
    let wanted = |key: &&Key| searched.contains(&key.path().as_str()) || key.is_given_by(config);
    let mut section = "";
    for key in keys().iter().filter(|key| !key.is_alias()).filter(wanted) {
        let Some(value) = key.describe(config).value else { continue };
        if key.section != section {
            section = key.section;
            writeln!(text, "\n[{section}]")?;
        }
        writeln!(text, "{} = {value}", key.name)?;
    }
    Ok(())
}

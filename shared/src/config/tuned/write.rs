//! Writing a tuned file.

use std::fmt::Write;

use super::{Provenance, Tuned};
use crate::config::keys::{sections_toml, spelled_out};
use crate::config::sections::Config;
use crate::config::text::toml_text;
use crate::time::Span;

const HEAD: &str = "# Written by `headway tune`; hand it to `headway promote`.\n";

pub(super) fn text(tuned: &Tuned) -> String {
    let Tuned { provenance, predicted, envelope, config } = tuned;
    let mut text = HEAD.to_owned();
    // Writing to a `String` cannot fail.
    let _ = head(&mut text, provenance, config, envelope.window);
    text += "\n# Whole runs: mean, and half-width of its 90% interval.\n[tuned.predicted]\n";
    for (metric, mean, half_width) in predicted {
        // `Debug` writes the shortest text that reads back as the same number.
        let _ = writeln!(text, "{} = [{mean:?}, {half_width:?}]", metric.name);
    }
    text += "\n# One window of `window_sec` of a healthy run: from, to.\n[tuned.envelope]\n";
    text += &envelope.to_toml();
    text.push('\n');
    text + &sections_toml(config, "", &searched(&provenance.space))
}

/// The keys of the space, in full.
pub(super) fn searched(space: &[String]) -> Vec<String> {
    let keys = space.iter().filter_map(|axis| Some(axis.split_once('=')?.0.trim()));
    keys.flat_map(spelled_out).map(str::to_owned).collect()
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

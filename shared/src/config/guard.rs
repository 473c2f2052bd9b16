//! `[guard]`: what a run is held to, and what happens where it does something else.

use std::fmt::Write;

use super::check::check;
use super::choices::{Choice, OnDeviation};
use super::diagnostic::Severity;
use super::envelope::Envelope;
use super::explain;
use super::keys::sections_toml;
use super::parse::parse_sections;
use super::reader::Reader;
use super::sections::Config;
use crate::time::Span;

/// `[guard]`
#[derive(Clone, Debug, PartialEq)]
pub struct GuardSettings {
    /// What happens when a run leaves its envelope.
    pub on_deviation: OnDeviation,
    /// In how many windows in a row a metric has to be outside, at least 1.
    pub patience: u32,
    /// How long a run is not judged after it starts, or after an operator has changed something.
    pub settle: Span,
    /// What the run is held to.
    pub envelope: Envelope,
    /// The configuration to go back to.
    pub previous: Option<Box<Config>>,
}

impl GuardSettings {
    /// Takes `[guard]` out of a document, if it is there. `config` is what its scheduling sections
    /// say.
    pub fn read(root: &mut Reader<'_>, config: &Config) -> Option<Self> {
        let mut table = root.optional_table("guard")?;
        let on_deviation = table.choice("on_deviation", OnDeviation::Log);
        let patience = table.u32("patience", 2, 1..=1_000_000);
        let envelope = Envelope::read(&mut table);
        let settle = table.span_sec("settle_sec", envelope.window);
        let previous = previous(&mut table, config);
        if envelope.ranges.is_empty() {
            table.require("envelope", "{ trained_samples_per_hour = [1000.0, 1200.0] }");
        }
        if on_deviation == OnDeviation::Rollback && previous.is_none() {
            table.error(
                "on_deviation",
                "there is nothing to go back to",
                "add the former scheduling sections as [guard.previous.policy_training] and so on, \
                 or write `on_deviation = \"log\"`",
            );
        }
        table.finish();
        Some(Self { on_deviation, patience, settle, envelope, previous })
    }

    /// The section as TOML, its header first.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let seconds = |span: Span| span.as_secs_f64();
        let mut text = format!(
            "[guard]\non_deviation = {:?}\nwindow_sec = {:?}\npatience = {}\nsettle_sec = {:?}\n\n\
             [guard.envelope]\n{}",
            self.on_deviation.word(),
            seconds(self.envelope.window),
            self.patience,
            seconds(self.settle),
            self.envelope.to_toml(),
        );
        if let Some(previous) = &self.previous {
            // A table without keys would be lost, and with it that there is something to go back to.
            let sections = sections_toml(previous, "guard.previous", &[]);
            let header = if sections.is_empty() { "[guard.previous]\n" } else { "" };
            // Writing to a `String` cannot fail.
            let _ = write!(text, "\n{header}{sections}");
        }
        text
    }
}

/// The scheduling sections under `previous`; what only a restart changes is as it is now.
fn previous(table: &mut Reader<'_>, config: &Config) -> Option<Box<Config>> {
    let mut sections = table.optional_table("previous")?;
    let mut previous = parse_sections(&mut sections);
    sections.finish();
    let (serving, now) = (&mut previous.policy_serving, &config.policy_serving);
    (serving.engine, serving.host, serving.port) = (now.engine.clone(), now.host.clone(), now.port);
    previous.policy_training.engine.clone_from(&config.policy_training.engine);
    previous.reward_judging.rule.clone_from(&config.reward_judging.rule);
    if previous.policy_training.sample_unit != config.policy_training.sample_unit {
        let what = "`sample_unit` is another there, and only a restart changes it";
        table.error("previous", what, "write the `sample_unit` of [policy_training] there too");
    }
    let problems = check(&previous);
    if let Some(problem) =
        problems.into_iter().find(|problem| problem.severity() == Severity::Error)
    {
        let message = explain::message(problem, &previous);
        let help = explain::remedy(problem, &previous);
        table.error("previous", format!("it is no valid configuration: {message}"), help);
    }
    Some(Box::new(previous))
}

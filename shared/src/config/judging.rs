//! The rule that judges, and what it needs.

use super::choices::JudgeNeeds;
use super::diagnostic::{Diagnostic, Origin};
use super::layers::Document;
use super::sections::Config;
use crate::rule::Rule;

const RULE: &str = "reward_judging.rule";
const NEEDS: &str = "reward_judging.judge_needs";

/// Reports what is wrong with the rule, at its place in the text.
pub(super) fn check_rule(document: &Document, config: &Config) {
    let text = &config.reward_judging.rule;
    let Some(entry) = document.root.find(RULE).filter(|_| !text.is_empty()) else { return };
    let origin = entry.node.origin;
    let needs = config.reward_judging.judge_needs;
    let finding = match Rule::read(text) {
        Err(error) => {
            let place = within(document, origin, text, error.at.start, error.at.end);
            Diagnostic::error(place, error.message).help(error.help)
        }
        Ok(rule) if rule.reads_next_state() && needs == JudgeNeeds::Turn => {
            let message = "the rule reads `next_state`, and turns are judged before it is there";
            Diagnostic::error(origin, message)
                .help("write `judge_needs = \"next_state\"`, or a rule without it")
        }
        Ok(rule) if !rule.reads_next_state() && needs == JudgeNeeds::NextState => {
            let message = "the rule does not read `next_state`, and each turn waits for it";
            Diagnostic::warning(origin, message).help("write `judge_needs = \"turn\"`")
        }
        Ok(_) => return,
    };
    let with = document.root.find(NEEDS);
    document.findings.push(match with.filter(|_| Rule::read(text).is_ok()) {
        Some(needs) => finding.related(needs.node.origin, "with this `judge_needs`"),
        None => finding,
    });
}

/// The bytes `start..end` of a text that was written at `origin`, where it was written as it is;
/// where it holds escapes, all of it.
fn within(document: &Document, origin: Origin, text: &str, start: usize, end: usize) -> Origin {
    match document.sources.offending(origin).find(text) {
        Some(at) => {
            Origin { start: origin.start + at + start, end: origin.start + at + end, ..origin }
        }
        None => origin,
    }
}

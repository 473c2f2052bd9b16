//! `[plan]` out of a scenario file.

use headway_shared::config::{Diagnostic, Findings, Node, Reader, Value};

use super::resources::{Layout, PlanSettings};
use crate::plan::constraint::Constraint;

/// Reads `[plan]`.
pub(super) fn read(mut table: Reader<'_>, findings: &Findings) -> PlanSettings {
    let says_speed = table.has("colocated_speed");
    let speed = table.float("colocated_speed", 1.0, 0.01..=1.0);
    let settings = PlanSettings {
        layouts: layouts(&mut table, findings, says_speed),
        gpus_multiple: table.u32("gpus_multiple", 1, 1..=10_000),
        min_trainer_gpus: table.u32("min_trainer_gpus", 1, 1..=1_000_000),
        constraints: constraints(&mut table, findings),
        over: table.strings("over"),
        price_per_gpu_hour: table.float("price_per_gpu_hour", 0.0, 0.0..=1e6),
        colocated_speed: says_speed.then_some(speed),
        time_shared_speed: table.float("time_shared_speed", 1.0, 0.01..=1.0),
        switch_sec: table.float("switch_sec", 0.0, 0.0..=1e6),
        rollouts_per_replica: table.u32("rollouts_per_replica", 0, 0..=1_000_000),
    };
    table.finish();
    settings
}

/// Without the key, every layout of which enough is known.
fn layouts(table: &mut Reader<'_>, findings: &Findings, says_speed: bool) -> Vec<Layout> {
    let known = |layout: &Layout| says_speed || *layout != Layout::Colocated;
    let Some(items) = items(table, "layouts", "[\"disaggregated\", \"time_shared\"]") else {
        return Layout::ALL.into_iter().filter(known).collect();
    };
    let mut layouts = Vec::new();
    for item in items {
        let found = match &item.value {
            Value::Text(text) => Layout::ALL.into_iter().find(|layout| layout.word() == text),
            _ => None,
        };
        match found {
            Some(layout) if !known(&layout) => {
                let message = "`colocated` needs to know how fast both loops are side by side";
                let help = "add `colocated_speed = 0.5`: what each keeps of its full speed";
                findings.push(Diagnostic::error(item.origin, message).help(help));
            }
            Some(layout) => layouts.push(layout),
            None => {
                let words = Layout::ALL.map(Layout::word).join(", ");
                let error = Diagnostic::error(item.origin, "this is no layout");
                findings.push(error.help(format!("write one of {words}")));
            }
        }
    }
    if layouts.is_empty() {
        table.error("layouts", "no layout is left to try", "write at least one");
    }
    layouts.sort();
    layouts.dedup();
    layouts
}

fn constraints(table: &mut Reader<'_>, findings: &Findings) -> Vec<Constraint> {
    let mut constraints = Vec::new();
    for item in items(table, "constraints", "[\"staleness_head_p99 <= 4\"]").unwrap_or_default() {
        let parsed = match &item.value {
            Value::Text(text) => Constraint::parse(text),
            _ => Constraint::parse(""),
        };
        match parsed {
            Ok(constraint) => constraints.push(constraint),
            Err(error) => {
                let diagnostic = Diagnostic::error(item.origin, error.to_string());
                findings.push(diagnostic.help(error.help()));
            }
        }
    }
    constraints
}

/// The items of a list; `None` where the key is absent.
fn items<'a>(table: &mut Reader<'a>, key: &'static str, example: &str) -> Option<&'a [Node]> {
    match &table.node(key)?.value {
        Value::List(items) => Some(items),
        _ => {
            table.error(key, format!("`{key}` must be a list"), format!("write {key} = {example}"));
            Some(&[])
        }
    }
}

//! The table of a plan, and what it comes to.

use headway_sim::plan::results::PlanResults;
use headway_sim::report::number;

use super::{empty, right, two_lines, written_out};

/// Rows that are shown beside those of the front.
const ROWS: usize = 16;

/// A row per split, the fastest first: `>` marks the chosen one, `*` the front.
pub(crate) fn plan(results: &PlanResults) -> String {
    let points = &results.points;
    let meta = &results.meta;
    let has_judge = (0..points.rows.len()).any(|row| points.value(row, "judge_gpus") > Some(0.0));
    let priced = meta.price_per_gpu_hour > 0.0;
    let heading = |key: &String| match key.rsplit('.').next() {
        Some("max_head_off_policyness") => "\nη".to_owned(),
        last => two_lines(last.unwrap_or(key)),
    };
    let mut header: Vec<String> = vec!["\nGPUs".into()];
    header.extend(meta.keys.iter().map(heading));
    header.extend(
        ["estimated\nsamples/h", "effective\nsamples/h", "staleness\nmean", "\np99"]
            .map(str::to_owned),
    );
    header.push("serving\nidle".into());
    if has_judge {
        header.push("judge\nidle".into());
    }
    header.push("trainer\nidle".into());
    header.push(if priced { "cost\nper 1,000" } else { "GPU-hours\nper 1,000" }.into());
    header.push("\n".into());
    let mut table = empty(header);
    let rows = results.by_throughput();
    let shown = rows.iter().enumerate().filter(|(rank, row)| {
        *rank < ROWS || results.is(**row, "front") || results.is(**row, "chosen")
    });
    let shown: Vec<usize> = shown.map(|(_, row)| *row).collect();
    for &row in &shown {
        let mut cells = vec![points.text(row, "split").to_owned()];
        cells.extend(meta.keys.iter().map(|key| points.text(row, key).to_owned()));
        let value = |name: &str| points.value(row, name);
        let interval = |name: &str| number::interval(value(name), value(&format!("{name}_hw")));
        cells.push(number::short(value("estimate_samples_per_hour")));
        cells.push(interval("effective_samples_per_hour"));
        cells.push(interval("staleness_head_mean"));
        cells.push(number::short(value("staleness_head_p99")));
        cells.push(number::percent(value("serving_idle_share")));
        if has_judge {
            cells.push(number::percent(value("judge_idle_share")));
        }
        cells.push(number::percent(value("trainer_idle_share")));
        let cost = if priced { "cost_per_thousand" } else { "gpu_hours_per_thousand" };
        cells.push(number::short(value(cost)));
        cells.push(mark(results, row).into());
        table.add_row(cells.into_iter().map(right));
    }
    let mut text = written_out(&table);
    text += &format!("\n{}\n", legend(results, rows.len(), rows.len() - shown.len()));
    meta.verdict.iter().for_each(|line| text += &format!("{line}\n"));
    text
}

fn mark(results: &PlanResults, row: usize) -> &'static str {
    super::mark_of(&results.points, row, |column| results.is(row, column))
}

/// What the marks mean, and what is not in the table.
fn legend(results: &PlanResults, simulated: usize, hidden: usize) -> String {
    let meta = &results.meta;
    let all = if meta.exhaustive { "all".to_owned() } else { format!("{simulated} of") };
    let mut text = format!("* on the front; {all} {} points simulated", meta.candidates);
    if hidden > 0 {
        text += &format!(", {hidden} of them in plan.csv alone");
    }
    if !meta.constraints.is_empty() {
        text += &format!("; to keep: {}", meta.constraints.join(", "));
    }
    text
}

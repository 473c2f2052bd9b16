//! The short tables that people read.

use comfy_table::{Cell, CellAlignment, Table, presets};
use headway_sim::compare::Difference;
use headway_sim::report::number;
use headway_sim::report::results::Results;

/// How a metric is written.
#[derive(Clone, Copy)]
enum Form {
    /// As a percentage.
    Share,
    /// As a number.
    Plain,
    /// As a number with the half-width of its interval.
    Interval,
}

/// The metrics of the short tables: name, heading, form. What stands idle comes first.
const COLUMNS: [(&str, &str, Form); 10] = [
    ("serving_idle_share", "serving\nidle", Form::Share),
    ("judge_idle_share", "judge\nidle", Form::Share),
    ("trainer_idle_share", "trainer\nidle", Form::Share),
    ("trained_samples_per_hour", "trained\nsamples/h", Form::Interval),
    ("staleness_head_mean", "staleness\nmean", Form::Interval),
    ("staleness_head_p99", "\np99", Form::Plain),
    ("staleness_head_max", "\nmax", Form::Plain),
    ("staleness_above_bound_share", "above\nη", Form::Share),
    ("refused_share", "\nrefused", Form::Share),
    ("discarded_share", "\ndiscarded", Form::Share),
];

/// A row per point.
pub(crate) fn sweep(results: &Results) -> String {
    let keys = &results.meta.keys;
    let heading = |key: &String| format!("\n{}", key.rsplit('.').next().unwrap_or(key));
    let mut table =
        empty(keys.iter().map(heading).chain(COLUMNS.map(|column| column.1.to_owned())));
    for row in 0..results.points.rows.len() {
        let labels = keys.iter().map(|key| results.points.text(row, key).to_owned());
        let cells = COLUMNS.map(|(name, _, form)| cell(results, row, name, form));
        table.add_row(labels.chain(cells).map(right));
    }
    format!("{table}\n")
}

/// A row per metric of the only point.
pub(crate) fn run(results: &Results) -> String {
    let mut table = empty(["metric", "value"].map(str::to_owned));
    for (name, heading, form) in COLUMNS {
        let label = if heading.starts_with('\n') {
            name.replace('_', " ")
        } else {
            heading.replace('\n', " ")
        };
        table.add_row([Cell::new(label), right(cell(results, 0, name, form))]);
    }
    format!("{table}\n")
}

/// A row per metric, with the difference.
pub(crate) fn compare(differences: &[Difference]) -> String {
    let mut table = empty(["metric", "A", "B", "B - A, 95% interval", ""].map(str::to_owned));
    for (name, _, form) in COLUMNS {
        let Some(item) = differences.iter().find(|item| item.metric.name == name) else { continue };
        let mean = |estimate: Option<headway_sim::stats::Estimate>| {
            written(estimate.map(|estimate| estimate.mean), None, form)
        };
        let difference = item.difference.map_or_else(
            || "-".to_owned(),
            |difference| interval(Some(difference.mean), difference.half_width, form),
        );
        let verdict = if item.is_clear() { "differs" } else { "" };
        table.add_row([
            Cell::new(name),
            right(mean(item.from)),
            right(mean(item.to)),
            right(difference),
            Cell::new(verdict),
        ]);
    }
    format!("{table}\n")
}

fn empty(header: impl IntoIterator<Item = String>) -> Table {
    let mut table = Table::new();
    // The width of the terminal is no part of what is written.
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(header.into_iter().map(right));
    table
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn cell(results: &Results, row: usize, name: &str, form: Form) -> String {
    let half_width = results.points.value(row, &format!("{name}_hw"));
    written(results.points.value(row, name), half_width, form)
}

fn written(value: Option<f64>, half_width: Option<f64>, form: Form) -> String {
    match form {
        Form::Share => number::percent(value),
        Form::Plain => number::short(value),
        Form::Interval => interval(value, half_width, form),
    }
}

fn interval(value: Option<f64>, half_width: Option<f64>, form: Form) -> String {
    let write = |value: Option<f64>| match form {
        Form::Share => number::percent(value),
        Form::Plain | Form::Interval => number::short(value),
    };
    match half_width {
        Some(_) => format!("{} ±{}", write(value), write(half_width)),
        None => write(value),
    }
}

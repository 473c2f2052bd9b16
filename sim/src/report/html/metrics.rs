//! Metrics as cells and columns.

use headway_shared::metrics::{Kind, METRICS, Metric};

use super::table::{Cell, Cells, Column, Row, Table};
use crate::drift;
use crate::report::csv::Csv;
use crate::report::number;
use crate::report::results::Results;
use crate::report::tables::ratios_of;

/// The metrics of the first table: name and heading.
pub(super) const FIRST: [(&str, &str); 11] = [
    ("trained_samples_per_hour", "trained samples/h"),
    ("staleness_head_mean", "staleness mean"),
    ("staleness_head_p99", "staleness p99"),
    ("staleness_head_max", "staleness max"),
    ("staleness_above_bound_share", "above η"),
    ("serving_idle_share", "serving idle"),
    ("judge_idle_share", "judge idle"),
    ("trainer_idle_share", "trainer idle"),
    ("refused_share", "refused"),
    ("discarded_share", "discarded"),
    ("wasted_token_share", "wasted tokens"),
];

/// Those of ratios, where there are some.
pub(super) const RATIOS: [(&str, &str); 6] = [
    ("ess_samples_per_hour", "effective samples/h"),
    ("learner_rollout_p99", "ratio p99"),
    ("learner_rollout_max", "ratio max"),
    ("train_rollout_logprob_abs_diff", "log-prob difference"),
    ("learner_rollout_ess_token", "ESS of tokens"),
    ("clipped_fraction", "clipped tokens"),
];

/// More points than this have no room side by side.
const MOST: usize = 16;

/// The metric of a name.
pub(super) fn find(name: &str) -> Option<&'static Metric> {
    METRICS.iter().chain(drift::METRICS).find(|metric| metric.name == name)
}

/// A value with its interval; it is sorted by what CSV has.
pub(super) fn cell(name: &str, table: &Csv, row: usize) -> Cell {
    let half = table.value(row, &format!("{name}_hw"));
    Cell { text: text(name, table.value(row, name), half), raw: table.text(row, name).to_owned() }
}

/// A value for people; empty where there is none.
pub(super) fn text(name: &str, value: Option<f64>, half: Option<f64>) -> String {
    let Some(value) = value else { return String::new() };
    let half = half.filter(|half| *half > 0.0);
    let is_share = find(name).map_or(name.ends_with("_share"), |metric| metric.kind == Kind::Share);
    match (is_share, half) {
        (true, None) => number::percent(Some(value)),
        (true, Some(half)) => {
            format!("{}%", number::interval(Some(value * 100.0), Some(half * 100.0)))
        }
        (false, None) if name.starts_with("learner_rollout_") => number::ratio(Some(value)),
        (false, half) => number::interval(Some(value), half),
    }
}

/// A column with what the metric is.
pub(super) fn column(name: &str, heading: &str) -> Column {
    let about = find(name).map_or_else(String::new, |metric| match metric.unit {
        "" => format!("{name}: {}", metric.about),
        unit => format!("{name}, {unit}: {}", metric.about),
    });
    Column { name: heading.to_owned(), about, kind: Cells::Number }
}

/// Every metric, a row each, a column for each point; `None`: there are too many points.
pub(super) fn every(results: &Results, points: Vec<String>) -> Option<Table> {
    if points.len() > MOST {
        return None;
    }
    let all = METRICS.iter().chain(ratios_of(&results.meta));
    let row = |metric: &Metric| {
        let lead = [Cell::plain(metric.name), Cell::plain(metric.unit)];
        let values = (0..points.len()).map(|row| cell(metric.name, &results.points, row));
        Row::of(lead.into_iter().chain(values))
    };
    let rows = all.filter(|metric| {
        let is_there = |row: usize| results.points.value(row, metric.name).is_some();
        (0..points.len()).any(is_there)
    });
    let lead = [Column::word("metric"), Column::word("unit")];
    Some(Table {
        caption: "Every metric".into(),
        rows: rows.map(row).collect(),
        columns: lead.into_iter().chain(points.into_iter().map(Column::number)).collect(),
        folded: true,
        ..Table::default()
    })
}

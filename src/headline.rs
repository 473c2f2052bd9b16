//! The short tables that people read.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use headway_sim::compare::Difference;
use headway_sim::report::csv::Csv;
use headway_sim::report::number;
use headway_sim::report::results::Results;

mod calibrate;
mod describe;
mod diagnosis;
#[cfg(feature = "live")]
mod doctor;
mod guard;
mod plan;
mod tournament;
mod tune;
mod validate;

pub(crate) use calibrate::calibrated;
pub(crate) use describe::{described, described_as_json, described_in_markdown};
pub(crate) use diagnosis::diagnosis;
#[cfg(feature = "live")]
pub(crate) use doctor::doctor;
pub(crate) use guard::guarded;
pub(crate) use plan::plan;
pub(crate) use tournament::tournament;
pub(crate) use tune::tune;
pub(crate) use validate::validation;

/// How a metric is written.
#[derive(Clone, Copy)]
enum Form {
    /// As a percentage.
    Share,
    /// As a number.
    Plain,
    /// As a number that is near 1.
    Ratio,
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

/// What is shown of ratios, where a scenario has `[world.drift]`.
const RATIOS: [(&str, &str, Form); 7] = [
    ("learner_rollout_p99", "ratio\np99", Form::Ratio),
    ("learner_rollout_max", "ratio\nmax", Form::Ratio),
    ("train_rollout_logprob_abs_diff", "log-prob\ndiff", Form::Plain),
    ("learner_rollout_ess_token", "ESS\ntoken", Form::Share),
    ("learner_rollout_ess_sequence", "ESS\nsequence", Form::Share),
    ("clipped_fraction", "clipped\ntokens", Form::Share),
    ("ess_samples_per_hour", "effective\nsamples/h", Form::Interval),
];

/// Those of them that a sweep's table has room for.
const SWEPT: [usize; 4] = [0, 2, 3, 6];

/// A line below the heading, and no other.
const PLAIN: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A row per point.
pub(crate) fn sweep(results: &Results) -> String {
    let keys = &results.meta.keys;
    let heading = |key: &String| match key.rsplit('.').next() {
        Some("max_head_off_policyness") => "\nη".to_owned(),
        last => two_lines(last.unwrap_or(key)),
    };
    let ratios = SWEPT.map(|place| RATIOS[place]);
    let ratios = if results.meta.drift.is_some() { &ratios[..] } else { &[] };
    let columns: Vec<_> = COLUMNS.iter().chain(ratios).collect();
    let headings = columns.iter().map(|column| column.1.to_owned());
    let mut table = empty(keys.iter().map(heading).chain(headings));
    for row in 0..results.points.rows.len() {
        let labels = keys.iter().map(|key| results.points.text(row, key).to_owned());
        let cells = columns.iter().map(|(name, _, form)| cell(results, row, name, *form));
        table.add_row(labels.chain(cells).map(right));
    }
    written_out(&table) + &mark(results.meta.drift.as_deref())
}

/// A row per metric of the only point.
pub(crate) fn run(results: &Results) -> String {
    let value = if results.meta.replications == 1 { "value" } else { "mean ± 95% interval" };
    let mut table = empty(["metric", value].map(str::to_owned));
    let ratios = if results.meta.drift.is_some() { &RATIOS[..] } else { &[] };
    for (name, heading, form) in COLUMNS.iter().chain(ratios) {
        let label = if heading.starts_with('\n') {
            name.replace('_', " ")
        } else {
            heading.replace('\n', " ")
        };
        table.add_row([Cell::new(label), right(cell(results, 0, name, *form))]);
    }
    written_out(&table) + &mark(results.meta.drift.as_deref())
}

/// How a row of candidates is marked: the choice, what cannot be chosen, and the front. `is`: a
/// column says yes.
fn mark_of(table: &Csv, row: usize, is: impl Fn(&str) -> bool) -> &'static str {
    let says = |column: &str| !table.text(row, column).is_empty();
    if is("chosen") {
        ">"
    } else if says("failed") {
        "failed"
    } else if says("breaks") {
        "breaks"
    } else if is("front") {
        "*"
    } else {
        ""
    }
}

/// What ratios were fitted to, below a table that has some.
fn mark(calibration: Option<&str>) -> String {
    let words = |words| format!("ratio, log-prob, ESS, clipped and effective: {words}\n");
    calibration.map_or_else(String::new, words)
}

/// A row per metric, with the difference.
pub(crate) fn compare(differences: &[Difference], calibration: Option<&str>) -> String {
    let mut table = empty(["metric", "A", "B", "B - A, 95% interval", ""].map(str::to_owned));
    for (name, _, form) in COLUMNS.into_iter().chain(RATIOS) {
        let Some(item) = differences.iter().find(|item| item.metric.name == name) else { continue };
        let mean = |estimate: Option<headway_sim::stats::Estimate>| {
            written(estimate.map(|estimate| estimate.mean), None, form)
        };
        let difference = item.difference.map_or_else(
            || "-".to_owned(),
            |difference| {
                // Differences of shares are percentage points.
                let scale = if matches!(form, Form::Share) { 100.0 } else { 1.0 };
                let half_width = difference.half_width.map(|half| half * scale);
                let unit = if matches!(form, Form::Share) { " pp" } else { "" };
                number::interval(Some(difference.mean * scale), half_width) + unit
            },
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
    written_out(&table) + &mark(calibration)
}

fn empty(header: impl IntoIterator<Item = String>) -> Table {
    let mut table = Table::new();
    // The width of the terminal is no part of what is written.
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_style(PLAIN).set_header(header.into_iter().map(right));
    for column in table.column_iter_mut() {
        column.set_padding((1, 0));
    }
    table
}

/// The table as text, without blanks at the ends of lines.
fn written_out(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A name on two lines, cut at the underscore that leaves them as short as can be.
fn two_lines(name: &str) -> String {
    let cuts = name.match_indices('_').map(|(at, _)| at + 1);
    match cuts.min_by_key(|&at| at.max(name.len() - at)).filter(|_| name.len() > 9) {
        Some(at) => format!("{}\n{}", &name[..at], &name[at..]),
        None => format!("\n{name}"),
    }
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
        Form::Ratio => number::ratio(value),
        Form::Interval => number::interval(value, half_width),
    }
}

#[cfg(test)]
mod tests {
    use headway_shared::metrics::METRICS;
    use headway_sim::drift;

    use super::*;

    #[test]
    fn every_column_is_a_metric_and_idle_shares_come_first() {
        for (name, ..) in COLUMNS {
            assert!(METRICS.iter().any(|metric| metric.name == name), "{name}");
        }
        for (name, ..) in RATIOS {
            assert!(drift::METRICS.iter().any(|metric| metric.name == name), "{name}");
        }
        assert!(COLUMNS[..3].iter().all(|(name, ..)| name.ends_with("_idle_share")));
    }

    #[test]
    fn long_names_of_keys_take_two_lines() {
        assert_eq!(two_lines("judge_concurrency"), "judge_\nconcurrency");
        assert_eq!(two_lines("max_batch_wait_sec"), "max_batch_\nwait_sec");
        assert_eq!(two_lines("sigma"), "\nsigma");
    }
}

//! The table of a tuning, and what it comes to.

use headway_sim::report::number;
use headway_sim::tune::results::TuneResults;

use super::{COLUMNS, RATIOS, empty, right, two_lines, written_out};

/// Rows that are shown beside those of the front.
const ROWS: usize = 12;

/// A row per candidate that had all its replications, the best first: `>` marks the chosen one,
/// `*` the front. Keys that have one value in all of these are left out.
pub(crate) fn tune(results: &TuneResults) -> String {
    let (table, meta) = (&results.candidates, &results.meta);
    let all = f64::from(meta.replications);
    let rows = best_first(results);
    let complete: Vec<usize> =
        rows.into_iter().filter(|&row| table.value(row, "replications") >= Some(all)).collect();
    let must = |row: usize| results.is(row, "chosen") || results.is(row, "present");
    let shown = complete.iter().enumerate();
    let shown = shown.filter(|(rank, row)| *rank < ROWS || must(**row));
    let shown: Vec<usize> = shown.map(|(_, row)| *row).collect();
    let varies = |key: &&String| {
        let mut texts = shown.iter().map(|&row| table.text(row, key));
        texts.next().is_some_and(|first| texts.any(|text| text != first))
    };
    let keys: Vec<&String> = meta.keys.iter().filter(varies).collect();
    let heading = |key: &&String| match key.rsplit('.').next() {
        Some("max_head_off_policyness") => "\nη".to_owned(),
        Some("max_size") if key.starts_with("queue.output") => "output\nqueue".to_owned(),
        Some("max_size") if key.starts_with("queue.rollout") => "rollout\nqueue".to_owned(),
        Some("max_size") => "queue\nsizes".to_owned(),
        last => two_lines(last.unwrap_or(key)),
    };
    let mut header: Vec<String> = keys.iter().map(heading).collect();
    header.extend(meta.metrics.iter().map(|name| metric(name)));
    header.push("\n".into());
    let mut out = empty(header);
    for &row in &shown {
        let mut cells: Vec<String> =
            keys.iter().map(|key| table.text(row, key).to_owned()).collect();
        cells.extend(meta.metrics.iter().map(|name| {
            number::interval(table.value(row, name), table.value(row, &format!("{name}_hw")))
        }));
        cells.push(mark(results, row));
        out.add_row(cells.into_iter().map(right));
    }
    let mut text = written_out(&out);
    text += &format!("\n{}\n", legend(results, complete.len() - shown.len()));
    meta.verdict.iter().for_each(|line| text += &format!("{line}\n"));
    text
}

/// The heading of a metric: as the other tables have it, else its name.
fn metric(name: &str) -> String {
    let known = COLUMNS.iter().chain(&RATIOS).find(|(column, ..)| *column == name);
    known.map_or_else(|| two_lines(name), |(_, heading, _)| (*heading).to_owned())
}

/// What keeps the constraints first, then by what is maximised.
fn best_first(results: &TuneResults) -> Vec<usize> {
    let (table, meta) = (&results.candidates, &results.meta);
    let distinct = |row: &usize| table.text(*row, "same_as").is_empty();
    let mut rows: Vec<usize> = (0..table.rows.len()).filter(distinct).collect();
    let gain = |row: usize| table.value(row, &meta.maximize).unwrap_or(f64::NEG_INFINITY);
    let bad =
        |row: usize| !table.text(row, "failed").is_empty() || !table.text(row, "breaks").is_empty();
    rows.sort_by(|&one, &other| {
        let order = |row: usize| (!results.is(row, "chosen"), bad(row));
        order(one).cmp(&order(other)).then(gain(other).total_cmp(&gain(one)))
    });
    rows
}

fn mark(results: &TuneResults, row: usize) -> String {
    let state = super::mark_of(&results.candidates, row, |column| results.is(row, column));
    let present = if results.is(row, "present") { "as it is" } else { "" };
    format!("{state} {present}").trim().to_owned()
}

/// What the marks mean, and what is not in the table.
fn legend(results: &TuneResults, hidden: usize) -> String {
    let meta = &results.meta;
    let mut text = format!("* on the front; {} maximised", meta.maximize);
    if !meta.subject_to.is_empty() {
        text += &format!("; to keep: {}", meta.subject_to.join(", "));
    }
    if hidden > 0 {
        text += &format!("; {hidden} more in candidates.csv");
    }
    text
}

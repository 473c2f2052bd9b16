//! The pages of a tuning and of a plan.

use super::metrics::{cell, column};
use super::page::Page;
use super::table::{Cell, Column, Row, Table};
use crate::answer;
use crate::plan::results::PlanResults;
use crate::report::csv::Csv;
use crate::report::plot::Picture;
use crate::tune::results::TuneResults;

/// The page of a tuning.
#[must_use]
pub fn of_tune(tune: &TuneResults, pictures: &[Picture]) -> String {
    let meta = &tune.meta;
    let answer = answer::of_tune(tune);
    let table = &tune.candidates;
    let words = ["candidate"].map(str::to_owned).into_iter().chain(meta.keys.iter().cloned());
    let words: Vec<String> = words.collect();
    let metrics: Vec<String> =
        meta.metrics.iter().cloned().chain(["difference_to_choice".to_owned()]).collect();
    let mut rows: Vec<usize> = (0..table.rows.len()).collect();
    let gain = |row: usize| table.value(row, &meta.maximize).unwrap_or(f64::NEG_INFINITY);
    rows.sort_by(|&one, &other| gain(other).total_cmp(&gain(one)));
    let marks = ["replications", "front", "breaks", "same_as", "failed"];
    let shown = Listed { words: &words, metrics: &metrics, marks: &marks };
    let tables = vec![listed("What was tried", table, &rows, &shown, answer.chosen)];
    let facts = vec![
        ("Searched", meta.space.join(", ")),
        ("Maximised", meta.maximize.clone()),
        ("To keep", meta.subject_to.join(", ")),
        ("Seed", meta.seed.to_string()),
        ("Replications", meta.replications.to_string()),
        ("Runs", meta.runs.to_string()),
        ("Scenario, digest", meta.scenario_digest.clone()),
        ("Headway", meta.version.clone()),
    ];
    Page {
        kind: "Tuning",
        name: &meta.scenario,
        title: &meta.title,
        answer: &answer,
        pictures,
        tables,
        about: meta.about.as_ref(),
        scenarios: Vec::new(),
        facts,
        varied: "It is the scenario as it is; the choice is in tuned.toml beside this page.".into(),
    }
    .write()
}

/// The page of a plan.
#[must_use]
pub fn of_plan(plan: &PlanResults, pictures: &[Picture]) -> String {
    let meta = &plan.meta;
    let answer = answer::of_plan(plan);
    let words: Vec<String> = ["split".to_owned(), "layout".to_owned()]
        .into_iter()
        .chain(meta.keys.iter().cloned())
        .collect();
    let mut metrics = vec!["estimate_samples_per_hour", "effective_samples_per_hour"];
    metrics.extend(["staleness_head_mean", "staleness_head_p99", "serving_idle_share"]);
    metrics.extend(["judge_idle_share", "trainer_idle_share", "wasted_token_share"]);
    metrics.extend(["gpu_hours_per_thousand", "cost_per_thousand"]);
    let is_there = |name: &&str| {
        !plan.points.rows.iter().enumerate().all(|(row, _)| plan.points.text(row, name).is_empty())
    };
    let metrics: Vec<String> = metrics.into_iter().filter(is_there).map(str::to_owned).collect();
    let marks = ["estimate_limit", "front", "breaks", "failed"];
    let rows = plan.by_throughput();
    let shown = Listed { words: &words, metrics: &metrics, marks: &marks };
    let mut tables =
        vec![listed("The splits that were simulated", &plan.points, &rows, &shown, answer.chosen)];
    if !plan.marginal.rows.is_empty() {
        let all: Vec<usize> = (0..plan.marginal.rows.len()).collect();
        let words = ["place", "gpus_added", "split"].map(str::to_owned);
        let metrics = ["effective_samples_per_hour", "gain_per_gpu_share"].map(str::to_owned);
        let shown = Listed { words: &words, metrics: &metrics, marks: &["clear"] };
        tables.push(listed("What one more GPU brings", &plan.marginal, &all, &shown, None));
    }
    let facts = vec![
        ("GPUs", meta.gpus.to_string()),
        ("To keep", meta.constraints.join(", ")),
        ("Seed", meta.seed.to_string()),
        ("Replications", meta.replications.to_string()),
        ("Scenario, digest", meta.scenario_digest.clone()),
        ("Headway", meta.version.clone()),
    ];
    Page {
        kind: "Plan",
        name: &meta.scenario,
        title: &meta.title,
        answer: &answer,
        pictures,
        tables,
        about: meta.about.as_ref(),
        scenarios: Vec::new(),
        facts,
        varied: "Splits, and what is tried at them, are set otherwise, as the table says.".into(),
    }
    .write()
}

/// Columns of a table, from left to right.
pub(super) struct Listed<'a> {
    pub(super) words: &'a [String],
    /// With their intervals.
    pub(super) metrics: &'a [String],
    /// What only some rows may have; left out where none has it.
    pub(super) marks: &'a [&'a str],
}

/// Rows of a table, in this order.
pub(super) fn listed(
    caption: &str,
    table: &Csv,
    rows: &[usize],
    shown: &Listed<'_>,
    chosen: Option<usize>,
) -> Table {
    let Listed { words, metrics, marks } = *shown;
    let last = |key: &String| match key.rsplit('.').next() {
        Some("max_head_off_policyness") => "η".to_owned(),
        Some("max_size") => key.replace('.', " "),
        last => last.unwrap_or(key).replace('_', " "),
    };
    let has = |mark: &&&str| rows.iter().any(|&row| !table.text(row, mark).is_empty());
    let marks: Vec<&&str> = marks.iter().filter(has).collect();
    let heads = words.iter().map(|key| Column::word(last(key)));
    let heads = heads.chain(metrics.iter().map(|name| column(name, &name.replace('_', " "))));
    let heads = heads.chain(marks.iter().map(|mark| Column::word(mark.replace('_', " "))));
    let row = |&row: &usize| {
        let plain = |name: &str| Cell::plain(table.text(row, name));
        let cells = words.iter().map(|key| plain(key));
        let cells = cells.chain(metrics.iter().map(|name| cell(name, table, row)));
        let cells = cells.chain(marks.iter().map(|mark| plain(mark)));
        Row { cells: cells.collect(), chosen: chosen == Some(row) }
    };
    let note = if chosen.is_some() { "The marked row is the choice." } else { "" };
    Table {
        caption: caption.into(),
        note: note.into(),
        columns: heads.collect(),
        rows: rows.iter().map(row).collect(),
        folded: false,
    }
}

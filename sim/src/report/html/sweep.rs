//! The page of a sweep.

use super::metrics::{FIRST, RATIOS, cell, column, every};
use super::page::Page;
use super::table::{Cell, Column, Row, Table};
use crate::answer::{Answer, setting};
use crate::report::plot::Picture;
use crate::report::results::{Meta, Results};

/// Points that are shown at most, beside the answer's; all are in the CSV.
const MOST: usize = 600;

pub(super) fn page(results: &Results, answer: &Answer, pictures: &[Picture]) -> String {
    let meta = &results.meta;
    let names = (0..results.points.rows.len()).map(|row| {
        let keys = meta.keys.iter().map(|key| setting(key, results.points.text(row, key)));
        keys.collect::<Vec<_>>().join(", ")
    });
    let mut tables = vec![points(results, answer)];
    tables.extend(every(results, names.collect()));
    let varied = format!("The sweep sets {} otherwise, as the table says.", meta.keys.join(", "));
    Page {
        kind: "Sweep",
        name: &meta.scenario,
        title: &meta.title,
        answer,
        pictures,
        tables,
        about: meta.about.as_ref(),
        scenarios: Vec::new(),
        facts: facts(meta),
        varied,
    }
    .write()
}

/// A row for each point.
fn points(results: &Results, answer: &Answer) -> Table {
    let (meta, table) = (&results.meta, &results.points);
    let ratios = if meta.drift.is_some() { &RATIOS[..] } else { &[] };
    let metrics = || FIRST.iter().chain(ratios);
    let heads = meta.keys.iter().map(|key| match key.rsplit('.').next() {
        Some("max_head_off_policyness") => Column::word("η"),
        last => Column::word(last.unwrap_or(key)),
    });
    let row = |row: usize| {
        let keys = meta.keys.iter().map(|key| Cell::plain(table.text(row, key)));
        let cells = metrics().map(|(name, _)| cell(name, table, row));
        Row { cells: keys.chain(cells).collect(), chosen: answer.chosen == Some(row) }
    };
    let chosen = match answer.chosen {
        Some(_) => "The marked row is the answer's. ",
        None => "",
    };
    let rows = (0..table.rows.len()).filter(|row| *row < MOST || answer.chosen == Some(*row));
    Table {
        caption: "The points of the sweep".into(),
        note: format!(
            "{chosen}Every metric and every run are in sweep.csv and runs.csv beside this page."
        ),
        columns: heads.chain(metrics().map(|(name, heading)| column(name, heading))).collect(),
        rows: rows.map(row).collect(),
        folded: false,
    }
}

/// What is to be known of how a result came about.
pub(super) fn facts(meta: &Meta) -> Vec<(&'static str, String)> {
    let fitted = meta.about.as_ref().map(|about| about.fitted_to.clone()).unwrap_or_default();
    vec![
        ("Seed", meta.seed.to_string()),
        ("Replications", meta.replications.to_string()),
        ("Scenario, digest", meta.scenario_digest.clone()),
        ("Fitted to", fitted),
        ("Importance ratios", meta.drift.clone().unwrap_or_default()),
        ("Headway", meta.version.clone()),
    ]
}

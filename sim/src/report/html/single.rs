//! The page of one simulated run, or of its replications.

use super::metrics::{FIRST, RATIOS, cell, column, every};
use super::page::Page;
use super::sweep::facts;
use super::table::{Cell, Column, Row, Table};
use crate::answer::Answer;
use crate::diagnose::{Diagnosis, Evidence, diagnose, parts};
use crate::report::number;
use crate::report::plot::Picture;
use crate::report::results::Results;

pub(super) fn page(results: &Results, answer: &Answer, pictures: &[Picture]) -> String {
    let meta = &results.meta;
    // A result of one run is evidence of one run.
    let evidence = Evidence::of_results(results).unwrap_or_default();
    let mut tables = vec![headline(results), stale(&evidence), signs(&diagnose(&evidence))];
    tables.extend(by_staleness(results));
    tables.extend(every(results, vec!["value".into()]));
    Page {
        kind: "Simulation",
        name: &meta.scenario,
        title: &meta.title,
        answer,
        pictures,
        tables,
        about: meta.about.as_ref(),
        scenarios: Vec::new(),
        facts: facts(meta),
        varied: String::new(),
    }
    .write()
}

fn headline(results: &Results) -> Table {
    let ratios = if results.meta.drift.is_some() { &RATIOS[..] } else { &[] };
    let row = |(name, heading): &(&str, &str)| {
        Row::of([
            Cell::plain(*heading),
            cell(name, &results.points, 0),
            Cell::plain(column(name, "").about),
        ])
    };
    Table {
        caption: "The run".into(),
        note: "Every metric is in run.csv beside this page.".into(),
        columns: vec![Column::word("metric"), Column::number("value"), Column::long("what it is")],
        rows: FIRST.iter().chain(ratios).map(row).collect(),
        folded: false,
    }
}

/// The parts of staleness, in versions and seconds.
pub(super) fn stale(evidence: &Evidence) -> Table {
    let mean = evidence.get("staleness_head_mean").filter(|mean| *mean > 0.0);
    let known = |value: Option<f64>| Cell {
        text: value.map_or_else(String::new, |value| number::short(Some(value))),
        raw: number::cell(value),
    };
    let rows = parts(evidence).into_iter().map(|part| {
        let share = part.versions.zip(mean).map(|(versions, mean)| versions / mean);
        let share = Cell {
            text: share.map_or_else(String::new, |share| number::percent(Some(share))),
            raw: number::cell(share),
        };
        Row::of([
            Cell::plain(part.name.replace('_', " ")),
            known(part.versions),
            share,
            known(part.seconds),
        ])
    });
    Table {
        caption: "Where staleness comes from".into(),
        note: "Means over trained samples. The publish lag takes no time of its own, and the wait for the \
               first token has no versions of its own."
            .into(),
        columns: vec![
            Column::word("part"),
            Column::number("learner versions"),
            Column::number("share of staleness"),
            Column::number("seconds"),
        ],
        rows: rows.collect(),
        folded: false,
    }
}

/// The three signs of health.
pub(super) fn signs(diagnosis: &Diagnosis) -> Table {
    let row = |sign: &crate::diagnose::Sign| {
        let holds = match sign.holds {
            Some(true) => "yes",
            Some(false) => "no",
            None => "unknown",
        };
        Row::of([Cell::plain(sign.name), Cell::plain(holds), Cell::plain(sign.seen.clone())])
    };
    Table {
        caption: "The three signs of health".into(),
        columns: vec![Column::long("sign"), Column::word("holds"), Column::long("what was seen")],
        rows: diagnosis.signs.iter().map(row).collect(),
        ..Table::default()
    }
}

/// Ratios by the staleness of tokens.
fn by_staleness(results: &Results) -> Option<Table> {
    let (table, drift) = (results.ratios.as_ref()?, results.meta.drift.as_ref()?);
    let names: Vec<&String> = table
        .header
        .iter()
        .filter(|name| {
            !name.ends_with("_hw") && !["point", "drift", "staleness"].contains(&name.as_str())
        })
        .collect();
    let row = |row: usize| {
        let lead = Cell::plain(table.text(row, "staleness"));
        Row::of(std::iter::once(lead).chain(names.iter().map(|name| cell(name, table, row))))
    };
    let heads = names.iter().map(|name| column(name, &name.replace('_', " ")));
    Some(Table {
        caption: format!("Importance ratios by the staleness of the token ({drift})"),
        columns: std::iter::once(Column::number("staleness")).chain(heads).collect(),
        rows: (0..table.rows.len()).map(row).collect(),
        folded: true,
        ..Table::default()
    })
}

//! The page of a live run.

use super::page::Page;
use super::single::{signs, stale};
use super::table::{Cell, Column, Row, Table};
use crate::answer;
use crate::diagnose::{Evidence, diagnose};
use crate::report::about::About;
use crate::report::csv::Csv;
use crate::report::number;
use crate::report::plot::Picture;

/// A live run.
#[derive(Clone, Copy, Debug)]
pub struct Live<'a> {
    /// What its record shows.
    pub evidence: &'a Evidence,
    /// Its train steps, where they are known.
    pub steps: Option<&'a Csv>,
    /// Where it comes from.
    pub about: &'a About,
}

/// The page of a live run.
#[must_use]
pub fn of_live(live: &Live<'_>, pictures: &[Picture]) -> String {
    let Live { evidence, steps, about } = *live;
    let diagnosis = diagnose(evidence);
    let answer = answer::of_live(evidence, &diagnosis);
    let mut tables = vec![signs(&diagnosis), stale(evidence), waits(evidence)];
    tables.extend(steps.map(of_steps));
    tables.push(every(evidence));
    tables.retain(|table| !table.rows.is_empty());
    Page {
        kind: "Recorded run",
        name: &evidence.name,
        title: "",
        answer: &answer,
        pictures,
        tables,
        about: Some(about),
        scenarios: Vec::new(),
        facts: vec![("Headway", env!("CARGO_PKG_VERSION").to_owned())],
        varied: "It is the configuration at the end of the record.".into(),
    }
    .write()
}

/// Samples by the time between generation and training.
fn waits(evidence: &Evidence) -> Table {
    let bars = evidence.waits.as_ref().map(|waits| waits.bars()).unwrap_or_default();
    let row = |bar: crate::diagnose::Bar| {
        let (from, to) = (number::short(Some(bar.from)), number::short(Some(bar.to)));
        Row::of([
            Cell { text: format!("{from} to {to} s"), raw: number::text(bar.from) },
            Cell::plain(bar.samples.to_string()),
        ])
    };
    Table {
        caption: "Time between generation and training".into(),
        columns: vec![Column::word("between"), Column::number("samples")],
        rows: bars.into_iter().map(row).collect(),
        ..Table::default()
    }
}

/// A row for each train step.
fn of_steps(csv: &Csv) -> Table {
    let cell = |row: usize, name: &String| {
        let raw = csv.text(row, name).to_owned();
        let text = match number::parse(&raw) {
            Some(value) if name.starts_with("ratio_") => number::ratio(Some(value)),
            Some(value) if name != "step" => number::short(Some(value)),
            _ => raw.clone(),
        };
        Cell { text, raw }
    };
    let is_there = |name: &&String| (0..csv.rows.len()).any(|row| !csv.text(row, name).is_empty());
    let names: Vec<&String> = csv.header.iter().filter(is_there).collect();
    Table {
        caption: "Train steps".into(),
        note: "As steps.csv beside this page.".into(),
        columns: names.iter().map(|name| Column::number(name.replace('_', " "))).collect(),
        rows: (0..csv.rows.len())
            .map(|row| Row::of(names.iter().map(|name| cell(row, name))))
            .collect(),
        folded: true,
    }
}

/// Every metric of the record.
fn every(evidence: &Evidence) -> Table {
    let row = |(name, value): (&String, &f64)| {
        let unit = super::metrics::find(name).map_or("", |metric| metric.unit);
        Row::of([
            Cell::plain(name.clone()),
            Cell::plain(unit),
            Cell {
                text: super::metrics::text(name, Some(*value), None),
                raw: number::text(*value),
            },
        ])
    };
    Table {
        caption: "Every metric".into(),
        columns: vec![Column::word("metric"), Column::word("unit"), Column::number("value")],
        rows: evidence.metrics.iter().map(row).collect(),
        folded: true,
        ..Table::default()
    }
}

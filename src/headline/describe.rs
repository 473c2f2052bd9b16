//! The tables of a configuration, as text, Markdown and JSON.

use comfy_table::ContentArrangement;
use headway_shared::describe::overview::{Row, Table};
use headway_shared::metrics::{Kind, METRICS};
use headway_sim::diagnose::Evidence;
use headway_sim::report::number::{json, percent, short};
use serde_json::{Map, Value};

use super::{empty, written_out};
use crate::terminal;

/// The name of the column of what was measured.
const MEASURED: &str = "measured";

/// Text for a terminal.
pub(crate) fn described(tables: &[Table], measured: Option<&Evidence>) -> String {
    let mut text = String::new();
    for table in tables {
        let heading = columns(table, measured).into_iter().map(str::to_owned);
        let mut shown = empty(heading);
        shown.set_content_arrangement(ContentArrangement::Dynamic);
        shown.set_width(terminal::width().clamp(80, 200) as u16);
        for row in &table.rows {
            let cells = cells(table, row, measured);
            shown.add_row(cells.into_iter().map(|cell| cell.replace('`', "")));
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        text += &format!("{gap}{}\n\n{}", table.title, written_out(&shown));
    }
    text
}

/// Markdown.
pub(crate) fn described_in_markdown(tables: &[Table], measured: Option<&Evidence>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = String::new();
    for table in tables {
        let heading: Vec<String> =
            columns(table, measured).into_iter().map(str::to_owned).collect();
        let gap = if text.is_empty() { "" } else { "\n" };
        text += &format!("{gap}## {}\n\n", table.title);
        let rule = format!("|{}\n", "---|".repeat(heading.len()));
        text += &line(heading);
        text += &rule;
        for row in &table.rows {
            let cells = cells(table, row, measured);
            text += &line(cells.iter().map(|cell| cell.replace('|', "\\|")).collect());
        }
    }
    text
}

/// JSON: what is measured by its metric.
pub(crate) fn described_as_json(tables: &[Table], measured: Option<&Evidence>) -> Value {
    let row = |table: &Table, row: &Row| {
        let cells = table.columns.iter().zip(&row.cells);
        let mut map: Map<String, Value> = cells
            .map(|(column, cell)| (column.replace(' ', "_"), cell.replace('`', "").into()))
            .collect();
        if let Some(run) = measured {
            let values = row.measured.iter();
            let values = values.map(|(_, metric)| ((*metric).to_owned(), json(run.get(metric))));
            map.insert(MEASURED.to_owned(), Value::Object(values.collect()));
        }
        Value::Object(map)
    };
    let mut document = Map::new();
    document.insert("kind".to_owned(), "describe".into());
    for table in tables {
        let rows = table.rows.iter().map(|of| row(table, of)).collect();
        document.insert(table.name.to_owned(), Value::Array(rows));
    }
    Value::Object(document)
}

/// The columns; one more where something of the table was measured.
fn columns(table: &Table, measured: Option<&Evidence>) -> Vec<&'static str> {
    let more = is_measured(table, measured).then_some(MEASURED);
    table.columns.iter().copied().chain(more).collect()
}

fn is_measured(table: &Table, measured: Option<&Evidence>) -> bool {
    measured.is_some() && table.rows.iter().any(|row| !row.measured.is_empty())
}

fn cells(table: &Table, row: &Row, measured: Option<&Evidence>) -> Vec<String> {
    let mut cells = row.cells.clone();
    if let Some(run) = measured.filter(|_| is_measured(table, measured)) {
        let values = row.measured.iter();
        let values = values.map(|(words, metric)| format!("{words} {}", value(run, metric)));
        cells.push(values.collect::<Vec<_>>().join("; "));
    }
    cells
}

/// A metric with its unit.
fn value(run: &Evidence, name: &str) -> String {
    let metric = METRICS.iter().find(|metric| metric.name == name);
    let (value, kind) = (run.get(name), metric.map(|metric| metric.kind));
    match (kind, metric.map_or("", |metric| metric.unit)) {
        (Some(Kind::Share), _) => percent(value),
        (_, "s") if value.is_some() => format!("{} s", short(value)),
        _ => short(value),
    }
}

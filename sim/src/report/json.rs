//! A result as one JSON document.

use serde_json::{Map, Value};

use headway_shared::metrics::METRICS;

use super::csv::Csv;
use super::number;
use super::results::Results;
use super::tables::ratios_of;
use crate::scenario::Scenario;

/// Everything about the points: the metadata, then each point with its settings and its metrics,
/// each with `mean` and `half_width` (null where they are undefined).
///
/// # Errors
/// The metadata cannot be written as JSON.
pub fn document(results: &Results) -> serde_json::Result<Value> {
    let mut document = serde_json::to_value(&results.meta)?;
    let points = (0..results.points.rows.len()).map(|row| point(results, row)).collect();
    if let Some(fields) = document.as_object_mut() {
        fields.insert("points".into(), Value::Array(points));
    }
    Ok(document)
}

/// Everything about a comparison: both scenarios, then a row per metric.
#[must_use]
pub fn comparison(a: &Scenario, b: &Scenario, replications: u32, differences: &Csv) -> Value {
    let side = |scenario: &Scenario| {
        let mut side = Map::new();
        side.insert("scenario".into(), scenario.name.as_str().into());
        side.insert("title".into(), scenario.title.as_str().into());
        side.insert("scenario_digest".into(), scenario.digest().to_string().into());
        Value::Object(side)
    };
    let mut document = Map::new();
    document.insert("kind".into(), "compare".into());
    document.insert("version".into(), env!("CARGO_PKG_VERSION").into());
    document.insert("a".into(), side(a));
    document.insert("b".into(), side(b));
    document.insert("seed".into(), a.seed.into());
    document.insert("replications".into(), replications.into());
    document.insert("metrics".into(), table(differences));
    Value::Object(document)
}

/// A table as a list of objects, a row each: numbers where a cell holds one, null where it is
/// empty.
pub(crate) fn table(table: &Csv) -> Value {
    let cell = |cell: &String| if cell.is_empty() { Value::Null } else { scalar(cell) };
    let row = |cells: &Vec<String>| {
        table.header.iter().cloned().zip(cells.iter().map(cell)).collect::<Map<_, _>>().into()
    };
    Value::Array(table.rows.iter().map(row).collect())
}

fn point(results: &Results, row: usize) -> Value {
    let table = &results.points;
    let settings = results.meta.keys.iter().map(|key| (key.clone(), scalar(table.text(row, key))));
    let metrics = METRICS.iter().chain(ratios_of(&results.meta));
    let metrics = metrics.map(|metric| (metric.name.to_owned(), estimate(table, row, metric.name)));
    let mut point = Map::new();
    point.insert("settings".into(), Value::Object(settings.collect()));
    point.insert("replications".into(), number::json(table.value(row, "replications")));
    point.insert("digest".into(), table.text(row, "digest").into());
    if results.meta.drift.is_some() {
        point.insert("drift".into(), table.text(row, "drift").into());
    }
    point.insert("metrics".into(), Value::Object(metrics.collect()));
    Value::Object(point)
}

fn estimate(table: &Csv, row: usize, metric: &str) -> Value {
    let mut estimate = Map::new();
    estimate.insert("mean".into(), number::json(table.value(row, metric)));
    estimate.insert("half_width".into(), number::json(table.value(row, &format!("{metric}_hw"))));
    Value::Object(estimate)
}

/// A setting: a number where it is one, else text.
pub(crate) fn scalar(text: &str) -> Value {
    number::parse(text).map_or_else(|| text.into(), |value| number::json(Some(value)))
}

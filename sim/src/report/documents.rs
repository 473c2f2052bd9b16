//! The JSON files that results consist of, as JSON schemas. What `--format json` prints is the file with the
//! rows of its table, which a schema has as well.

use serde_json::{Value, json};

use super::described::{Described, Rounded, Setting, schema};
use super::results::Meta;
use crate::check::Golden;
use crate::plan::results::PlanMeta;
use crate::tournament::results::TournamentMeta;
use crate::tune::results::TuneMeta;
use crate::validate::ValidationDocument;

/// Of `run.json` and `sweep.json`.
#[must_use]
pub fn result() -> Value {
    let number = Rounded::schema();
    let estimate = json!({
        "type": "object",
        "properties": { "mean": number, "half_width": number },
        "required": ["mean", "half_width"],
        "additionalProperties": false,
    });
    let point = json!({
        "type": "object",
        "properties": {
            "settings": { "type": "object", "additionalProperties": Setting::schema() },
            "replications": number,
            "digest": { "type": "string" },
            "drift": { "type": "string" },
            "metrics": { "type": "object", "additionalProperties": estimate },
        },
        "required": ["settings", "replications", "digest", "metrics"],
        "additionalProperties": false,
    });
    with_rows(schema::<Meta>("run.json or sweep.json of Headway"), &["points"], &point)
}

/// Of `plan.json`.
#[must_use]
pub fn plan() -> Value {
    let file = schema::<PlanMeta>("plan.json of Headway");
    with_rows(file, &["points", "marginal"], &row())
}

/// Of `tune.json`.
#[must_use]
pub fn tune() -> Value {
    with_rows(schema::<TuneMeta>("tune.json of Headway"), &["candidates"], &row())
}

/// Of `tournament.json`.
#[must_use]
pub fn tournament() -> Value {
    with_rows(schema::<TournamentMeta>("tournament.json of Headway"), &["rows"], &row())
}

/// Of `validation.json`.
#[must_use]
pub fn validation() -> Value {
    schema::<ValidationDocument>("validation.json of Headway")
}

/// Of what `headway check` compares a scenario with.
#[must_use]
pub fn golden() -> Value {
    schema::<Golden>("What headway check compares a scenario with")
}

/// The schema of a row of a table: its columns by their names.
fn row() -> Value {
    json!({ "type": "object", "additionalProperties": Setting::schema() })
}

/// A file's schema with the tables that are printed beside it.
fn with_rows(mut schema: Value, tables: &[&str], row: &Value) -> Value {
    for table in tables {
        let about = "A row for each of the CSV; where --format json printed it.";
        schema["properties"][*table] =
            json!({ "type": "array", "items": row, "description": about });
    }
    schema
}

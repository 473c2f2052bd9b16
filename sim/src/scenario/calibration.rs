//! `[calibration]` out of a scenario file: how sure its numbers are.

use headway_shared::config::Reader;

/// A number of a scenario that was fitted, with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The path of its key, such as `world.judge.vote.mean_sec`.
    pub key: String,
    /// The estimate.
    pub value: f64,
    /// The lower end of its 90% interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The path of a number that its estimate depends on, and the correlation of the two.
    pub with: Option<(String, f64)>,
}

/// What a scenario was fitted to, and how sure its numbers are. No run depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration {
    /// What it was fitted to: a record or a table.
    pub from: String,
    /// The fitted numbers, in the order of the file.
    pub parameters: Vec<Parameter>,
}

/// Any number: intervals have no other range than the keys themselves.
const ANY: std::ops::RangeInclusive<f64> = -1e300..=1e300;

/// Reads `[calibration]`, if it is there.
pub(super) fn read(root: &mut Reader<'_>) -> Option<Calibration> {
    let mut table = root.optional_table("calibration")?;
    table.require("from", "\"run.db\"");
    let from = table.string("from", "");
    let parameters = table.tables("parameters").into_iter().map(parameter).collect();
    table.finish();
    Some(Calibration { from, parameters })
}

fn with(table: &mut Reader<'_>) -> Option<(String, f64)> {
    let (asked, other) = (table.has("with"), table.string("with", ""));
    let correlation = table.float("correlation", 0.0, -1.0..=1.0);
    if table.has("correlation") && !asked {
        table.error(
            "correlation",
            "`correlation` does not say with what",
            "write `with`, the key of the other number, such as \"world.drift.p\"",
        );
    }
    asked.then_some((other, correlation))
}

fn parameter(mut table: Reader<'_>) -> Parameter {
    let examples = [
        ("key", "\"world.judge.vote.mean_sec\""),
        ("value", "1.2"),
        ("low", "1.1"),
        ("high", "1.3"),
    ];
    for (key, example) in examples {
        table.require(key, example);
    }
    let value = table.float("value", 0.0, ANY);
    let parameter = Parameter {
        key: table.string("key", ""),
        value,
        low: table.float("low", value, ANY),
        high: table.float("high", value, ANY),
        with: with(&mut table),
    };
    if !(parameter.low <= value && value <= parameter.high) {
        table.error(
            "value",
            format!("{value} is outside its interval, {} to {}", parameter.low, parameter.high),
            "write low <= value <= high",
        );
    }
    table.finish();
    parameter
}

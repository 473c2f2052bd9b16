//! A validation as CSV and JSON.

use serde_json::{Map, Value};

use super::figures::FIGURES;
use super::interval::COVERAGE;
use super::results::{Compared, Row, Score, Sum, Validation};
use crate::report::csv::Csv;
use crate::report::json::scalar;
use crate::report::number;

/// The columns after those of the keys.
const COLUMNS: [&str; 11] = [
    "metric",
    "unit",
    "measured",
    "predicted",
    "low",
    "high",
    "inside",
    "tolerance",
    "within",
    "error",
    "relative_error",
];

impl Validation {
    /// A row for each run and metric: what differs about the run, measured, predicted, and the
    /// verdicts.
    #[must_use]
    pub fn csv(&self) -> Csv {
        let keys = self.keys.iter().map(String::as_str);
        let mut csv = Csv::new(std::iter::once("run").chain(keys).chain(COLUMNS));
        for row in &self.rows {
            let run = &self.runs[row.run];
            let (value, [low, high]) = predicted(row);
            let cells = [
                row.figure().name.to_owned(),
                row.metric().map_or("", |metric| metric.unit).to_owned(),
                number::cell(row.measured),
                number::cell(value),
                number::cell(low),
                number::cell(high),
                word(row.is_inside()).to_owned(),
                row.tolerance.to_string(),
                word(row.is_within()).to_owned(),
                number::cell(row.error()),
                number::cell(row.relative_error()),
            ];
            let name = std::iter::once(run.name.clone());
            csv.rows.push(name.chain(run.settings.iter().cloned()).chain(cells).collect());
        }
        csv
    }

    /// Everything, as one document.
    #[must_use]
    pub fn document(&self) -> Value {
        let runs = self.runs.iter().enumerate().map(|(place, run)| self.run(place, run));
        object([
            ("kind", "validate".into()),
            ("version", env!("CARGO_PKG_VERSION").into()),
            ("scenario", self.scenario.as_str().into()),
            ("scenario_digest", self.scenario_digest.as_str().into()),
            ("fitted_to", text(&self.fitted_to)),
            ("uncertain_parameters", self.uncertain.into()),
            ("seed", self.seed.into()),
            ("replications", self.replications.into()),
            ("warmup_steps", self.warmup_steps.into()),
            ("interval", number::json(Some(COVERAGE))),
            ("baseline", self.baseline.as_deref().map_or(Value::Null, Value::from)),
            ("good", self.is_good().into()),
            ("runs", Value::Array(runs.collect())),
            ("metrics", Value::Array(self.sums.iter().map(|sum| self.sum(sum)).collect())),
            ("interval_scores", Value::Array(self.scores.iter().map(score).collect())),
        ])
    }

    fn run(&self, place: usize, run: &Compared) -> Value {
        let Compared { name, settings, steps, seconds, notes, failed } = run;
        let settings = self.keys.iter().cloned().zip(settings.iter().map(|value| setting(value)));
        let rows = self.rows.iter().filter(|row| row.run == place);
        let metrics = rows.map(|row| (row.figure().name.to_owned(), metric(row)));
        let failed = failed.as_ref().map_or(Value::Null, |(what, replications)| {
            object([("what", what.as_str().into()), ("replications", (*replications).into())])
        });
        object([
            ("run", name.as_str().into()),
            ("settings", Value::Object(settings.collect())),
            ("steps", (*steps).into()),
            ("seconds", number::json(Some(*seconds))),
            ("warnings", notes.clone().into()),
            ("failed", failed),
            ("metrics", Value::Object(metrics.collect())),
        ])
    }

    fn sum(&self, sum: &Sum) -> Value {
        let worst = sum.worst.as_ref();
        object([
            ("metric", FIGURES[sum.figure].name.into()),
            ("runs", sum.runs.into()),
            ("inside", sum.inside.into()),
            ("judged", sum.within.1.into()),
            ("within", sum.within.0.into()),
            ("worst_run", worst.map_or(Value::Null, |row| self.runs[row.run].name.clone().into())),
            ("worst_error", number::json(worst.and_then(Row::error))),
        ])
    }
}

fn metric(row: &Row) -> Value {
    let (value, [low, high]) = predicted(row);
    let verdict = |verdict: Option<bool>| verdict.map_or(Value::Null, Value::from);
    object([
        ("unit", row.metric().map_or("", |metric| metric.unit).into()),
        ("measured", number::json(row.measured)),
        ("predicted", number::json(value)),
        ("low", number::json(low)),
        ("high", number::json(high)),
        ("inside", verdict(row.is_inside())),
        ("tolerance", text(&row.tolerance.to_string())),
        ("within", verdict(row.is_within())),
        ("error", number::json(row.error())),
        ("relative_error", number::json(row.relative_error())),
    ])
}

fn score(score: &Score) -> Value {
    object([
        ("metric", FIGURES[score.figure].name.into()),
        ("runs", score.runs.into()),
        ("predicted", number::json(Some(score.predicted))),
        ("as_in_the_fitted_run", number::json(score.baseline)),
    ])
}

/// The predicted value, and the ends of its interval.
fn predicted(row: &Row) -> (Option<f64>, [Option<f64>; 2]) {
    let interval = row.prediction.and_then(|prediction| prediction.interval);
    let ends = [interval.map(|ends| ends.0), interval.map(|ends| ends.1)];
    (row.prediction.map(|prediction| prediction.value), ends)
}

const fn word(verdict: Option<bool>) -> &'static str {
    match verdict {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    }
}

/// A setting: a number where it is one; null where the run has none.
fn setting(value: &str) -> Value {
    if value.is_empty() { Value::Null } else { scalar(value) }
}

/// Text; null where it is empty.
fn text(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>(),
    )
}

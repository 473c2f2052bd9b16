//! Distributions as a file says them: `{ kind = "lognormal", median_sec = 18, p99_sec = 60 }`.

use std::ops::RangeInclusive;

use headway_shared::config::{Choice, Reader, Value};

use super::columns::Columns;
use super::words::words;
use crate::kernel::sampler::{Distribution, DistributionError};

/// What a distribution is of: it decides how its keys are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Times: keys end in `_sec`.
    Seconds,
    /// Lengths and numbers: keys end in nothing.
    Count,
}

words! {
    /// A law.
    Kind {
        Constant = "constant", "Always the same.";
        Uniform = "uniform", "Between two ends, each value as likely.";
        Exponential = "exponential", "Without memory.";
        LogNormal = "lognormal", "By median and 99th percentile, or by mean or median and sigma.";
        Gamma = "gamma", "By shape and mean.";
        Pareto = "pareto", "A heavy tail above a smallest value.";
        Empirical = "empirical", "A column of measured values, drawn at random.";
        Replay = "replay", "A column of recorded values, in order.";
    }
}

/// The spellings of one unit's keys.
struct Keys {
    value: &'static str,
    min: &'static str,
    max: &'static str,
    mean: &'static str,
    median: &'static str,
    p99: &'static str,
}

impl Unit {
    const fn keys(self) -> Keys {
        match self {
            Self::Seconds => Keys {
                value: "sec",
                min: "min_sec",
                max: "max_sec",
                mean: "mean_sec",
                median: "median_sec",
                p99: "p99_sec",
            },
            Self::Count => Keys {
                value: "value",
                min: "min",
                max: "max",
                mean: "mean",
                median: "median",
                p99: "p99",
            },
        }
    }

    /// What the schema calls a distribution of it.
    const fn form(self) -> &'static str {
        match self {
            Self::Seconds => "distribution of seconds",
            Self::Count => "distribution of numbers",
        }
    }

    /// A distribution of it: always the number that stands in its place, if one does.
    fn example(self, given: Option<&Value>) -> String {
        let (key, number) = match self {
            Self::Seconds => ("sec", "2"),
            Self::Count => ("value", "512"),
        };
        let number = given.and_then(number_in).unwrap_or_else(|| number.to_owned());
        format!("{{ kind = \"constant\", {key} = {number} }}")
    }
}

/// Any number: the law's own rules say which ones it takes.
const ANY: RangeInclusive<f64> = -1e300..=1e300;

/// Reads the distribution at `key`, which must be there.
pub(super) fn required(
    reader: &mut Reader<'_>,
    key: &'static str,
    unit: Unit,
    columns: &mut Columns<'_>,
) -> Distribution {
    reader.require(key, &unit.example(None));
    optional(reader, key, unit, 0.0, columns)
}

/// Reads the distribution at `key`; where it is absent, it is always `default`.
pub(super) fn optional(
    reader: &mut Reader<'_>,
    key: &'static str,
    unit: Unit,
    default: f64,
    columns: &mut Columns<'_>,
) -> Distribution {
    let fallback = constant(default);
    reader.form(key, unit.form());
    let example = unit.example(reader.peek(key));
    let Some(mut table) = reader.optional_short_table(key, &example) else { return fallback };
    let Some(kind) = kind_of(&mut table) else { return fallback };
    let law = match read(&mut table, kind, unit, columns) {
        None => fallback,
        Some(Ok(law)) => law,
        Some(Err(error)) => {
            wrong(&table, unit, error);
            fallback
        }
    };
    table.finish();
    law
}

/// Always `value`, which must be a size that every law takes.
pub(super) fn constant(value: f64) -> Distribution {
    #[expect(clippy::expect_used, reason = "only called with the small numbers of this crate")]
    Distribution::constant(value).expect("a default is between 0 and 1e15")
}

/// A number, as a file says it.
pub(super) fn number_in(value: &Value) -> Option<String> {
    match value {
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The parameters that others are compared with.
const COMPARED: [&str; 2] = ["min", "median"];

/// Says which parameter no law takes, and what it would take.
fn wrong(table: &Reader<'_>, unit: Unit, error: DistributionError) {
    let DistributionError { parameter, value, requirement } = error;
    if parameter == "values" {
        let message = format!("the column has {value}, and its values must be {requirement}");
        let help = "mend the file, or name another `column`";
        return table.error("column", message, help);
    }
    let named = named_parameter(unit, parameter);
    let (mut must_be, mut write) = (requirement.to_owned(), requirement.to_owned());
    for other in COMPARED {
        let (word, key) = (format!("`{other}`"), named_parameter(unit, other));
        must_be = must_be.replace(&word, &format!("`{key}`"));
        if let Some(number) = table.peek(key).and_then(number_in) {
            write = write.replace(&word, &number);
        }
    }
    table.error(
        named,
        format!("`{named}` is {value}, but must be {must_be}"),
        format!("write a number {write}, or choose another `kind`"),
    );
}

/// A parameter of a law, as the file spells it.
fn named_parameter(unit: Unit, parameter: &'static str) -> &'static str {
    let keys = unit.keys();
    match parameter {
        "value" => keys.value,
        "min" => keys.min,
        "max" => keys.max,
        "mean" => keys.mean,
        "median" => keys.median,
        "p99" => keys.p99,
        other => other,
    }
}

type Law = Result<Distribution, DistributionError>;

fn read(table: &mut Reader<'_>, kind: Kind, unit: Unit, columns: &mut Columns<'_>) -> Option<Law> {
    let keys = unit.keys();
    match kind {
        Kind::LogNormal => return lognormal(table, &keys),
        Kind::Empirical => return columns.of(table).map(Distribution::empirical),
        Kind::Replay => return columns.of(table).map(Distribution::replay),
        _ => {}
    }
    let mut number = number_of(table);
    Some(match kind {
        Kind::Constant => Distribution::constant(number(keys.value)?),
        Kind::Uniform => Distribution::uniform(number(keys.min)?, number(keys.max)?),
        Kind::Exponential => Distribution::exponential(number(keys.mean)?),
        Kind::Gamma => Distribution::gamma(number("shape")?, number(keys.mean)?),
        _ => Distribution::pareto(number(keys.min)?, number("alpha")?),
    })
}

/// A log-normal by median and 99th percentile, by median and sigma, or by mean and sigma.
fn lognormal(table: &mut Reader<'_>, keys: &Keys) -> Option<Law> {
    let (by_mean, by_sigma) = (table.has(keys.mean), table.has("sigma"));
    let pairs = [(keys.mean, keys.median, "where it lies"), ("sigma", keys.p99, "how wide it is")];
    for (one, other, what) in pairs {
        if table.has(one) && table.has(other) {
            let message = format!("`{one}` and `{other}` both say {what}");
            table.error(other, message, "keep one of them");
            // All are known, though there is one too many.
            for key in [keys.mean, keys.median, keys.p99, "sigma"] {
                let _ = table.node(key);
            }
            return None;
        }
    }
    if let Some(median) = table.peek(keys.median).and_then(number_in)
        && !by_sigma
        && !table.has(keys.p99)
    {
        let example = median.parse::<f64>().map_or(20.0, |median| 10.0 * median);
        table.require(keys.p99, &example.to_string());
        let _ = table.node(keys.median);
        return None;
    }
    let mut number = number_of(table);
    Some(if by_mean {
        Distribution::lognormal_mean_sigma(number(keys.mean)?, number("sigma")?)
    } else if by_sigma {
        Distribution::lognormal_median_sigma(number(keys.median)?, number("sigma")?)
    } else {
        Distribution::lognormal_median_p99(number(keys.median)?, number(keys.p99)?)
    })
}

/// Takes numbers that must be there. Any number goes: the law's own rules say which it takes.
fn number_of<'r>(table: &'r mut Reader<'_>) -> impl FnMut(&'static str) -> Option<f64> + 'r {
    |key| table.require(key, "2").then(|| table.float(key, 1.0, ANY))
}

/// Whether `kind` is one of the kinds; else that is reported.
fn kind_of(table: &mut Reader<'_>) -> Option<Kind> {
    if !table.require("kind", "\"constant\"") {
        return None;
    }
    let known = match table.node("kind").map(|node| &node.value) {
        Some(Value::Text(text)) => Kind::ALL.iter().any(|(word, _)| word == text),
        _ => false,
    };
    let kind = table.choice("kind", Kind::Constant);
    known.then_some(kind)
}

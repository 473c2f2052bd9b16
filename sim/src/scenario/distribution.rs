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

    const fn example(self) -> &'static str {
        match self {
            Self::Seconds => "{ kind = \"constant\", sec = 2 }",
            Self::Count => "{ kind = \"constant\", value = 512 }",
        }
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
    reader.require(key, unit.example());
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
    let Some(mut table) = reader.optional_table(key) else { return fallback };
    let Some(kind) = kind_of(&mut table) else { return fallback };
    let law = match read(&mut table, kind, unit, columns) {
        None => fallback,
        Some(Ok(law)) => law,
        Some(Err(DistributionError { parameter, value, requirement })) => {
            let named = named_parameter(unit, parameter);
            table.error(
                named,
                format!("`{named}` is {value}, but must be {requirement}"),
                "change it, or choose another `kind`",
            );
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

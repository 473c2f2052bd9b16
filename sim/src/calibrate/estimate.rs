//! What was estimated: rows of the table, and keys of the scenario.

use super::fit::{Family, Fit, FitError, Limits, Parameter, Unit, fit_within, share};
use super::series::Values;
use crate::report::number;

/// A number or a law of the scenario, with how sure it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// What it is of, in words.
    pub what: String,
    /// The table of the scenario, such as `world.judge`.
    pub table: &'static str,
    /// Its keys there, with their values as TOML.
    pub values: Vec<(&'static str, String)>,
    /// The law, such as `lognormal`, or what kind of number it is.
    pub family: &'static str,
    /// Its numbers, by the path of their keys, each with its 90% interval.
    pub parameters: Vec<(String, Parameter)>,
    /// By number, the path of another that it depends on, and the correlation with it; empty: none does.
    pub with: Vec<Option<(String, f64)>>,
    /// How many observations it comes from.
    pub count: usize,
    /// How many of them were seen in part only.
    pub cut: usize,
    /// The Kolmogorov distance between the law and the observations, and its p-value.
    pub distance: Option<(f64, f64)>,
    /// Which share of the variance a line explains.
    pub r_squared: Option<f64>,
    /// The observed values, where the scenario draws from them.
    pub column: Option<Column>,
    /// What was observed.
    pub observed: Vec<f64>,
}

/// A column of values in a file beside the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The file's name.
    pub file: String,
    /// The column's.
    pub name: &'static str,
}

/// All that was estimated.
#[derive(Clone, Debug, Default)]
pub struct Estimates {
    /// In the order of the scenario.
    pub items: Vec<Item>,
    /// What could not be seen, or was assumed.
    pub notes: Vec<String>,
    /// What names of files begin with.
    stem: String,
}

impl Item {
    /// One number, written at one key.
    #[must_use]
    pub fn number(
        what: &str,
        table: &'static str,
        key: &'static str,
        family: &'static str,
        parameter: Parameter,
        count: usize,
    ) -> Self {
        Self {
            what: what.to_owned(),
            table,
            values: vec![(key, number(parameter.value))],
            family,
            parameters: vec![(format!("{table}.{key}"), parameter)],
            with: Vec::new(),
            count,
            cut: 0,
            distance: None,
            r_squared: None,
            column: None,
            observed: Vec::new(),
        }
    }

    /// A setting that was read off, without an interval.
    #[must_use]
    pub fn setting(
        what: &str,
        table: &'static str,
        key: &'static str,
        value: String,
        count: usize,
    ) -> Self {
        let none = Parameter { value: 0.0, low: 0.0, high: 0.0 };
        let item = Self::number(what, table, key, "setting", none, count);
        Self { values: vec![(key, value)], parameters: Vec::new(), ..item }
    }

    /// The mean of what was observed.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        crate::stats::mean(&self.observed)
    }
}

/// A number as a scenario has it: six significant digits.
#[must_use]
pub fn number(value: f64) -> String {
    let text = number::text(value);
    // TOML knows no empty number; what is not finite was never observed.
    if text.is_empty() { "0".to_owned() } else { text }
}

impl Estimates {
    /// None yet; names of files begin with `stem`.
    #[must_use]
    pub fn new(stem: &str) -> Self {
        Self { stem: stem.to_owned(), ..Self::default() }
    }

    /// The name of a file beside the scenario.
    #[must_use]
    pub fn file(&self, what: &str) -> String {
        format!("{}-{what}.csv", self.stem)
    }

    /// Says what could not be seen, or was assumed.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds what a law of these values is; false: there are none.
    pub fn law(
        &mut self,
        what: &str,
        table: &'static str,
        key: &'static str,
        unit: Unit,
        observed: Values,
    ) -> bool {
        self.law_within(what, table, key, unit, Limits::default(), observed)
    }

    /// The same of counts that the world raises or cuts.
    pub fn law_within(
        &mut self,
        what: &str,
        table: &'static str,
        key: &'static str,
        unit: Unit,
        limits: Limits,
        observed: Values,
    ) -> bool {
        let Values { values, cut } = observed;
        if values.is_empty() {
            return false;
        }
        let item = match fit_within(&values, unit, limits) {
            Ok(fit) => self.fitted(what, table, key, unit, values, &fit),
            Err(error) => {
                self.few(what, &error);
                constant(what, table, key, unit, values)
            }
        };
        self.items.push(Item { cut, ..item });
        true
    }

    fn few(&mut self, what: &str, error: &FitError) {
        self.note(format!("{what}: {error}; the mean stands for the law"));
    }

    fn fitted(
        &self,
        what: &str,
        table: &'static str,
        key: &'static str,
        unit: Unit,
        values: Vec<f64>,
        fit: &Fit,
    ) -> Item {
        let (text, column) = match fit.toml() {
            Some(text) => (text, None),
            None => {
                let place = table.rsplit('.').next().unwrap_or(table);
                let file = self.file(&format!("{place}-{key}"));
                let name = match unit {
                    Unit::Seconds => "seconds",
                    Unit::Count => "count",
                };
                let text =
                    format!("{{ kind = \"empirical\", file = {file:?}, column = {name:?} }}");
                (text, Some(Column { file, name }))
            }
        };
        let path = |name: &str| format!("{table}.{key}.{name}");
        let parameters = match fit.family {
            Family::Empirical => Vec::new(),
            _ => fit.parameters.iter().map(|(name, value)| (path(name), *value)).collect(),
        };
        Item {
            what: what.to_owned(),
            table,
            values: vec![(key, text)],
            family: fit.family.word(),
            parameters,
            with: Vec::new(),
            count: fit.count,
            cut: 0,
            distance: Some((fit.ks, fit.p_value)),
            r_squared: None,
            column,
            observed: values,
        }
    }

    /// Adds a share, where anything was counted and it is not the default.
    pub fn share(
        &mut self,
        what: &str,
        table: &'static str,
        key: &'static str,
        hits: u64,
        of: u64,
        default: u64,
    ) {
        if of > 0 && hits != default * of {
            let found = share(hits, of);
            self.items.push(Item::number(what, table, key, "share", found, of as usize));
        }
    }
}

/// The mean of few values.
fn constant(
    what: &str,
    table: &'static str,
    key: &'static str,
    unit: Unit,
    values: Vec<f64>,
) -> Item {
    let mean = crate::stats::mean(&values).unwrap_or(0.0);
    let ends = |ends: (f64, f64), value: &f64| (ends.0.min(*value), ends.1.max(*value));
    let (low, high) = values.iter().fold((mean, mean), ends);
    let (name, value) = match unit {
        Unit::Seconds => ("sec", number(mean)),
        Unit::Count => ("value", number(mean.round())),
    };
    let parameter = Parameter { value: mean, low, high };
    let count = values.len();
    Item {
        observed: values,
        values: vec![(key, format!("{{ kind = \"constant\", {name} = {value} }}"))],
        parameters: vec![(format!("{table}.{key}.{name}"), parameter)],
        ..Item::number(what, table, key, "constant", parameter, count)
    }
}

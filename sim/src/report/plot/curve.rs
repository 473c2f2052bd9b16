//! A result as a plot sees it: points in order along one key.

use super::super::csv::Csv;
use super::super::number;
use super::super::results::Results;
use super::axis::Axis;
use super::panel::Point;

/// The key whose values a line of reference can be drawn for.
const BOUND: &str = "max_head_off_policyness";

/// The points of a result that differ only in one key.
pub(crate) struct Curve<'a> {
    results: &'a Results,
    /// The key along the axis; empty where nothing was swept.
    key: &'a str,
    /// Rows of the table of points.
    rows: Vec<usize>,
    /// What the other keys are set to, in words; empty where there are none.
    rest: String,
    /// What its files' names end in.
    suffix: String,
}

impl<'a> Curve<'a> {
    /// One curve for each combination of the keys that are not on the axis.
    pub(crate) fn all(results: &'a Results) -> Vec<Curve<'a>> {
        let key = axis_key(results);
        let others: Vec<&String> = results.meta.keys.iter().filter(|other| *other != key).collect();
        let mut curves: Vec<Curve<'a>> = Vec::new();
        for row in 0..results.points.rows.len() {
            let setting = |other: &&String| {
                let value = results.points.text(row, other);
                (format!("{} = {value}", last(other)), format!("-{}-{value}", last(other)))
            };
            let (words, names): (Vec<_>, Vec<_>) = others.iter().map(setting).unzip();
            let rest = words.join(", ");
            match curves.iter_mut().find(|curve| curve.rest == rest) {
                Some(curve) => curve.rows.push(row),
                None => {
                    let suffix = names.concat().replace(|c: char| !is_plain(c), "_");
                    curves.push(Curve { results, key, rows: vec![row], rest, suffix });
                }
            }
        }
        curves
    }

    /// The name of a file of this curve.
    pub(crate) fn file(&self, name: &str) -> String {
        format!("{name}{}", self.suffix)
    }

    /// The scenario, what is fixed, and what the intervals are.
    pub(crate) fn subtitle(&self) -> String {
        match self.results.meta.replications {
            1 => self.subtitle_of("1 replication, no interval"),
            count => self.subtitle_of(&format!("{count} replications, 95% intervals")),
        }
    }

    /// The scenario, what is fixed, and `what` is shown.
    pub(crate) fn subtitle_of(&self, what: &str) -> String {
        let scenario = &self.results.meta.scenario;
        match self.rest.as_str() {
            "" => format!("{scenario} · {what}"),
            rest => format!("{scenario} · {rest} · {what}"),
        }
    }

    /// How many replications each point has, in words.
    pub(crate) fn replications(&self) -> String {
        match self.results.meta.replications {
            1 => "1 replication".into(),
            count => format!("all {count} replications"),
        }
    }

    /// The axis of the key: evenly spaced, since its values usually grow in ratios.
    pub(crate) fn axis(&self) -> Axis {
        Axis::places(&self.label(), &self.names())
    }

    fn label(&self) -> String {
        match last(self.key) {
            BOUND => "staleness bound η (max_head_off_policyness), learner versions".into(),
            key => key.into(),
        }
    }

    /// The values of the key, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |&row: &usize| self.results.points.text(row, self.key).to_owned();
        self.rows.iter().map(name).collect()
    }

    /// The names of the places as titles: `η = 2`.
    pub(crate) fn titles(&self) -> Vec<String> {
        let name = |value: String| match last(self.key) {
            BOUND => format!("η = {value}"),
            "" | "case" => value,
            key => format!("{key} = {value}"),
        };
        self.names().into_iter().map(name).collect()
    }

    /// Whether the values are numbers, so that a line between them means something.
    pub(crate) fn is_numeric(&self) -> bool {
        self.rows.len() > 1 && self.names().iter().all(|name| number::parse(name).is_some())
    }

    /// The bound η at each place, where η is on the axis.
    pub(crate) fn bounds(&self) -> Option<Vec<(f64, f64)>> {
        (last(self.key) == BOUND).then(|| {
            let values = self.names().into_iter().map(|name| number::parse(&name));
            values.enumerate().filter_map(|(place, eta)| Some((place as f64, eta?))).collect()
        })
    }

    /// A metric at each place, with its half-width.
    pub(crate) fn metric(&self, name: &str) -> Vec<Point> {
        let half = format!("{name}_hw");
        let points = &self.results.points;
        let point = |(place, &row): (usize, &usize)| {
            (place as f64, points.value(row, name), points.value(row, &half))
        };
        self.rows.iter().enumerate().map(point).collect()
    }

    /// The rows of another table that belong to a place.
    pub(crate) fn rows_of(&self, table: &'a Csv, place: usize) -> Vec<usize> {
        let point = self.results.points.text(self.rows[place], "point");
        (0..table.rows.len()).filter(|&row| table.text(row, "point") == point).collect()
    }

    /// Trained samples by head staleness.
    pub(crate) fn histogram(&self) -> &'a Csv {
        &self.results.histogram
    }

    /// What ratios were fitted to, or that they are uncalibrated; `None`: there are none.
    pub(crate) fn drift(&self) -> Option<&'a str> {
        self.results.meta.drift.as_deref()
    }

    /// Ratios by staleness.
    pub(crate) fn ratios(&self) -> Option<&'a Csv> {
        self.results.ratios.as_ref()
    }

    /// Gauges over time.
    pub(crate) fn series(&self) -> &'a Csv {
        &self.results.series
    }
}

/// The largest value of some series, intervals included.
pub(crate) fn highest<'a>(series: impl IntoIterator<Item = &'a Vec<Point>>) -> f64 {
    let top = |&(_, value, half): &Point| value.map(|value| value + half.unwrap_or(0.0));
    series.into_iter().flatten().filter_map(top).fold(0.0, f64::max)
}

/// The key along the axis: the first with numbers as values and more than one of them.
fn axis_key(results: &Results) -> &str {
    let keys = &results.meta.keys;
    let values = |key: &str| {
        let rows = 0..results.points.rows.len();
        let mut values: Vec<_> = rows.map(|row| results.points.text(row, key)).collect();
        values.dedup();
        values
    };
    let is_curve = |key: &&String| {
        let values = values(key);
        values.len() > 1 && values.iter().all(|value| number::parse(value).is_some())
    };
    keys.iter().find(is_curve).or(keys.first()).map_or("", String::as_str)
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.')
}

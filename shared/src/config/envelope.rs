//! What a healthy run keeps to, metric by metric.

use std::fmt::Write;

use super::reader::Reader;
use crate::guard::WATCHED;
use crate::metrics::{METRICS, Metric};
use crate::time::Span;

/// Values from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Range {
    /// Whether a value lies in it.
    #[must_use]
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Between which values each metric lies in a window of a run that does what was predicted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Envelope {
    /// How long a window is.
    pub window: Span,
    /// The metrics, all of [`WATCHED`], each with its range.
    pub ranges: Vec<(&'static Metric, Range)>,
}

/// Any number: a metric's range has no other limits.
const ANY: std::ops::RangeInclusive<f64> = -1e300..=1e300;

impl Envelope {
    /// Takes `window_sec` and the table `envelope` out of a table that has both.
    pub fn read(table: &mut Reader<'_>) -> Self {
        let window = window(table);
        let mut ranges = Vec::new();
        let mut envelope = table.table("envelope");
        for &name in WATCHED {
            let metric = METRICS.iter().find(|metric| metric.name == name);
            let pair = envelope.pair(name, ANY);
            if pair.is_some_and(|[low, high]| low > high) {
                envelope.error(name, "the range is upside down", "write the smaller number first");
            }
            let range = pair.map(|[low, high]| Range { low, high });
            ranges.extend(metric.zip(range));
        }
        envelope.finish();
        Self { window, ranges }
    }

    /// The range of a metric, if it has one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Range> {
        self.ranges.iter().find(|(metric, _)| metric.name == name).map(|(_, range)| *range)
    }

    /// The lines of the table `envelope`, without its header.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for (metric, Range { low, high }) in &self.ranges {
            // `{:?}` always has a decimal point or an exponent: a float in TOML. Writing to a
            // `String` cannot fail.
            let _ = writeln!(text, "{} = [{low:?}, {high:?}]", metric.name);
        }
        text
    }
}

fn window(table: &mut Reader<'_>) -> Span {
    table.require("window_sec", "600");
    let window = table.span_sec("window_sec", Span::from_secs(600));
    if window == Span::ZERO {
        table.error("window_sec", "a window of no time measures nothing", "write 600");
    }
    window
}

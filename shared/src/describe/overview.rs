//! A configuration as the tables that people draw by hand: the loops, the queues between them, the
//! distributions, where versions are written and read, and how weights travel.

mod loops;
mod queues;
#[cfg(test)]
mod tests;
mod versions;
mod weights;

use crate::config::{Config, Settings};
use crate::time::Span;

/// Where a configuration runs.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// Live, with `settings.json` where it is at hand.
    Live(Option<&'a Settings>),
    /// In a simulated world.
    Simulated,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name for programs.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The names of its columns.
    pub columns: &'static [&'static str],
    /// Its rows.
    pub rows: Vec<Row>,
}

/// A row of a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// A cell for each column.
    pub cells: Vec<String>,
    /// What can be measured of it: words, and the [metric](crate::metrics::METRICS) that they name.
    pub measured: &'static [(&'static str, &'static str)],
}

impl Row {
    fn new<const N: usize>(cells: [String; N]) -> Self {
        Self { cells: cells.into(), measured: &[] }
    }

    fn measured(mut self, measured: &'static [(&'static str, &'static str)]) -> Self {
        self.measured = measured;
        self
    }
}

/// The tables of a configuration.
#[must_use]
pub fn overview(config: &Config, place: Place<'_>) -> Vec<Table> {
    vec![
        loops::table(config, place),
        queues::table(config),
        versions::distributions(config),
        versions::places(config, place),
        weights::table(config, place),
    ]
}

/// A limit in time, where 0 is none.
fn limit(span: Span) -> String {
    if span == Span::ZERO { "no limit".to_owned() } else { seconds(span) }
}

/// `120 s`.
fn seconds(span: Span) -> String {
    format!("{} s", span.to_string().trim_end_matches('s'))
}

/// `3 things`, or `1 thing`.
fn count(number: u32, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// A number in millionths.
fn millionths(number: u32) -> String {
    let text = format!("{}.{:06}", number / 1_000_000, number % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

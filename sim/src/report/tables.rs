//! The runs of a sweep as the tables of a result.

use std::collections::BTreeSet;

use headway_shared::digest::Digest;
use headway_shared::metrics::{METRICS, Metric, Row, Summary};

use super::csv::Csv;
use super::number;
use super::results::{Meta, Results};
use crate::drift::{self, Drift};
use crate::stats;

/// Rows of a point's series at most: more than a plot can show.
const MOST_ROWS: usize = 1000;

/// One replication of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Replicated {
    /// Its metrics.
    pub summary: Summary,
    /// What is predicted of ratios, where its scenario has `[world.drift]`.
    pub drift: Option<Drift>,
    /// The digest of its decisions.
    pub digest: Digest,
    /// Why it ended, in a word.
    pub ended: &'static str,
}

/// A point with those of its replications that ran to their end, by number.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The values of the swept keys, in the order of [`Meta::keys`].
    pub values: Vec<String>,
    /// What its ratios were fitted to, or that they are uncalibrated; `None`: it has none.
    pub drift: Option<String>,
    /// Replications, each with its number.
    pub runs: Vec<(u32, Replicated)>,
}

/// The column that says what ratios were fitted to.
const CALIBRATION: &str = "drift";

/// The metrics of ratios, where a result has them.
pub(crate) fn ratios_of(meta: &Meta) -> &'static [Metric] {
    if meta.drift.is_some() { drift::METRICS } else { &[] }
}

/// Puts the runs of all points into tables.
#[must_use]
pub fn tabulate(meta: Meta, points: &[Point]) -> Results {
    let ratios = ratios_of(&meta);
    let header = |columns: &[&str]| lead_header(&meta, columns);
    let calibration = || meta.drift.iter().map(|_| CALIBRATION.to_owned());
    let with_half = |metric: &Metric| [metric.name.to_owned(), format!("{}_hw", metric.name)];
    let means = |metrics: &'static [Metric]| metrics.iter().flat_map(with_half);
    let names = |metrics: &'static [Metric]| metrics.iter().map(|metric| metric.name.to_owned());
    let by_staleness = || {
        let columns = drift::STALENESS_COLUMNS.iter();
        let columns = columns.flat_map(|name| [(*name).to_owned(), format!("{name}_hw")]);
        Csv::new(header(&[CALIBRATION, "staleness"]).into_iter().chain(columns))
    };
    let mut tables = Tables {
        points: Csv::new(
            header(&["replications", "digest"])
                .into_iter()
                .chain(means(METRICS))
                .chain(calibration())
                .chain(means(ratios)),
        ),
        runs: Csv::new(
            header(&["replication", "digest", "ended"])
                .into_iter()
                .chain(names(METRICS))
                .chain(calibration())
                .chain(names(ratios)),
        ),
        histogram: Csv::new(header(&["staleness", "samples", "share"])),
        series: Csv::new(header(&["time_sec"]).into_iter().chain(Row::COLUMNS.map(str::to_owned))),
        ratios: meta.drift.is_some().then(by_staleness),
    };
    for (ordinal, point) in points.iter().enumerate() {
        tables.add(ordinal, point);
    }
    let Tables { points, runs, histogram, series, ratios } = tables;
    Results { meta, points, runs, histogram, series, ratios }
}

/// `point`, the swept keys, then `columns`.
fn lead_header(meta: &Meta, columns: &[&str]) -> Vec<String> {
    let keys = meta.keys.iter().cloned();
    let columns = columns.iter().map(|column| (*column).to_owned());
    std::iter::once("point".to_owned()).chain(keys).chain(columns).collect()
}

struct Tables {
    points: Csv,
    runs: Csv,
    histogram: Csv,
    series: Csv,
    ratios: Option<Csv>,
}

impl Tables {
    fn add(&mut self, ordinal: usize, point: &Point) {
        let lead: Vec<String> =
            std::iter::once(ordinal.to_string()).chain(point.values.iter().cloned()).collect();
        let row = |cells: Vec<String>| lead.iter().cloned().chain(cells).collect::<Vec<_>>();

        let mut cells = vec![point.runs.len().to_string(), digest_of(&point.runs).to_string()];
        let ratios = if self.ratios.is_some() { drift::METRICS.len() } else { 0 };
        for place in 0..METRICS.len() + ratios {
            if place == METRICS.len() {
                cells.push(point.drift.clone().unwrap_or_default());
            }
            cells.extend(estimated(&values_of(&point.runs, place)));
        }
        self.points.rows.push(row(cells));

        for (replication, run) in &point.runs {
            let mut cells = vec![replication.to_string(), run.digest.to_string(), run.ended.into()];
            let mut values = run.summary.values().map(|(_, value)| number::cell(value));
            cells.extend(values.by_ref().take(METRICS.len()));
            if self.ratios.is_some() {
                cells.push(point.drift.clone().unwrap_or_default());
                // A point may have none where others of the result have them.
                cells.extend(values.chain(std::iter::repeat(String::new())).take(ratios));
            }
            self.runs.rows.push(row(cells));
        }
        if let Some(table) = &mut self.ratios {
            table.rows.extend(by_staleness(point).into_iter().map(row));
        }

        let counts = histogram_of(&point.runs);
        let total: u64 = counts.iter().sum();
        for (staleness, &samples) in counts.iter().enumerate().filter(|(_, samples)| **samples > 0)
        {
            let share = number::text(samples as f64 / total as f64);
            self.histogram.rows.push(row(vec![staleness.to_string(), samples.to_string(), share]));
        }

        for (_, run) in point.runs.iter().filter(|(replication, _)| *replication == 0) {
            let rows = run.summary.series().rows();
            for gauges in rows.iter().step_by(rows.len().div_ceil(MOST_ROWS).max(1)) {
                let mut cells = vec![number::text(gauges.at().as_secs_f64())];
                cells.extend(gauges.values().map(number::cell));
                self.series.rows.push(row(cells));
            }
        }
    }
}

/// The cells of a mean and of its half-width.
fn estimated(values: &[f64]) -> [String; 2] {
    let estimate = stats::estimate(values);
    let half_width = estimate.and_then(|estimate| estimate.half_width);
    [number::cell(estimate.map(|estimate| estimate.mean)), number::cell(half_width)]
}

/// A row for each staleness that tokens of any replication had: means over those that had it.
fn by_staleness(point: &Point) -> Vec<Vec<String>> {
    let of_runs = || point.runs.iter().filter_map(|(_, run)| run.drift.as_ref());
    let rows = || of_runs().flat_map(|drift| &drift.by_staleness);
    let known: BTreeSet<u32> = rows().map(|row| row.staleness).collect();
    let row = |staleness: u32| {
        let here = || rows().filter(move |row| row.staleness == staleness);
        let columns = (0..drift::STALENESS_COLUMNS.len()).flat_map(|column| {
            estimated(&here().filter_map(|row| row.values[column]).collect::<Vec<f64>>())
        });
        let lead = [point.drift.clone().unwrap_or_default(), staleness.to_string()];
        lead.into_iter().chain(columns).collect()
    };
    known.into_iter().map(row).collect()
}

/// The values of one metric where it is defined.
fn values_of(runs: &[(u32, Replicated)], place: usize) -> Vec<f64> {
    runs.iter().filter_map(|(_, run)| run.summary.values().nth(place)?.1).collect()
}

/// One digest of the decisions of all replications.
fn digest_of(runs: &[(u32, Replicated)]) -> Digest {
    let mut digest = Digest::new();
    for (replication, run) in runs {
        digest.fold(u64::from(*replication));
        digest.fold(run.digest.value());
    }
    digest
}

/// Trained samples by head staleness, over all replications.
fn histogram_of(runs: &[(u32, Replicated)]) -> Vec<u64> {
    let mut sums: Vec<u64> = Vec::new();
    for (_, run) in runs {
        for (staleness, samples) in run.summary.staleness().iter() {
            let place = staleness as usize;
            sums.resize(sums.len().max(place + 1), 0);
            sums[place] += samples;
        }
    }
    sums
}

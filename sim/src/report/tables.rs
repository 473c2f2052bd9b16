//! The runs of a sweep as the tables of a result.

use headway_shared::digest::Digest;
use headway_shared::metrics::{METRICS, Row, Summary};

use super::csv::Csv;
use super::number;
use super::results::{Meta, Results};
use crate::stats;

/// Rows of a point's series at most: more than a plot can show.
const MOST_ROWS: usize = 1000;

/// One replication of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Replicated {
    /// Its metrics.
    pub summary: Summary,
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
    /// Replications, each with its number.
    pub runs: Vec<(u32, Replicated)>,
}

/// Puts the runs of all points into tables.
#[must_use]
pub fn tabulate(meta: Meta, points: &[Point]) -> Results {
    let metrics = METRICS.iter().map(|metric| metric.name);
    let header = |columns: &[&str]| lead_header(&meta, columns);
    let means = metrics.clone().flat_map(|name| [name.to_owned(), format!("{name}_hw")]);
    let mut tables = Tables {
        points: Csv::new(header(&["replications", "digest"]).into_iter().chain(means)),
        runs: Csv::new(
            header(&["replication", "digest", "ended"])
                .into_iter()
                .chain(metrics.map(str::to_owned)),
        ),
        histogram: Csv::new(header(&["staleness", "samples", "share"])),
        series: Csv::new(header(&["time_sec"]).into_iter().chain(Row::COLUMNS.map(str::to_owned))),
    };
    for (ordinal, point) in points.iter().enumerate() {
        tables.add(ordinal, point);
    }
    let Tables { points, runs, histogram, series } = tables;
    Results { meta, points, runs, histogram, series }
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
}

impl Tables {
    fn add(&mut self, ordinal: usize, point: &Point) {
        let lead: Vec<String> =
            std::iter::once(ordinal.to_string()).chain(point.values.iter().cloned()).collect();
        let row = |cells: Vec<String>| lead.iter().cloned().chain(cells).collect::<Vec<_>>();

        let mut cells = vec![point.runs.len().to_string(), digest_of(&point.runs).to_string()];
        for place in 0..METRICS.len() {
            let estimate = stats::estimate(&values_of(&point.runs, place));
            cells.push(number::cell(estimate.map(|estimate| estimate.mean)));
            cells.push(number::cell(estimate.and_then(|estimate| estimate.half_width)));
        }
        self.points.rows.push(row(cells));

        for (replication, run) in &point.runs {
            let mut cells = vec![replication.to_string(), run.digest.to_string(), run.ended.into()];
            cells.extend(run.summary.values().map(|(_, value)| number::cell(value)));
            self.runs.rows.push(row(cells));
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

//! Two configurations under the same random numbers: what differs, and by how much.

use headway_shared::metrics::{METRICS, Metric};

use crate::report::csv::Csv;
use crate::report::number;
use crate::report::tables::Replicated;
use crate::stats::{Estimate, estimate, paired_difference};

/// One metric of two configurations.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// The metric.
    pub metric: &'static Metric,
    /// Its mean in the first.
    pub from: Option<Estimate>,
    /// Its mean in the second.
    pub to: Option<Estimate>,
    /// Second minus first, over the replications in which both are defined.
    pub difference: Option<Estimate>,
}

impl Difference {
    /// Whether the difference is more than chance, at 95%.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.difference.is_some_and(|difference| difference.excludes_zero())
    }
}

/// The difference of every metric, in the order of [`METRICS`], over runs paired by replication.
#[must_use]
pub fn compare(from: &[(u32, Replicated)], to: &[(u32, Replicated)]) -> Vec<Difference> {
    let value = |runs: &[(u32, Replicated)], replication: u32, place: usize| {
        let (_, run) = runs.iter().find(|(number, _)| *number == replication)?;
        run.summary.values().nth(place)?.1
    };
    let difference = |(place, metric): (usize, &'static Metric)| {
        let both = |(replication, _): &(u32, Replicated)| {
            Some((value(from, *replication, place)?, value(to, *replication, place)?))
        };
        let (before, after): (Vec<f64>, Vec<f64>) = from.iter().filter_map(both).unzip();
        let alone = |runs: &[(u32, Replicated)]| {
            let values: Vec<f64> =
                runs.iter().filter_map(|(_, run)| run.summary.values().nth(place)?.1).collect();
            estimate(&values)
        };
        let difference = paired_difference(&before, &after);
        Difference { metric, from: alone(from), to: alone(to), difference }
    };
    METRICS.iter().enumerate().map(difference).collect()
}

/// The differences as a table.
#[must_use]
pub fn table(differences: &[Difference]) -> Csv {
    let mut csv = Csv::new([
        "metric",
        "unit",
        "a",
        "a_hw",
        "b",
        "b_hw",
        "difference",
        "difference_hw",
        "differs",
    ]);
    for item in differences {
        let cells = [item.from, item.to, item.difference].into_iter().flat_map(|estimate| {
            let half_width = estimate.and_then(|estimate| estimate.half_width);
            [number::cell(estimate.map(|estimate| estimate.mean)), number::cell(half_width)]
        });
        let name = [item.metric.name, item.metric.unit].map(str::to_owned);
        let verdict = if item.is_clear() { "yes" } else { "no" };
        csv.rows.push(name.into_iter().chain(cells).chain([verdict.to_owned()]).collect());
    }
    csv
}

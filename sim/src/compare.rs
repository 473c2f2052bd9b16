//! Two configurations under the same random numbers: what differs, and by how much.

use headway_shared::metrics::{METRICS, Metric};

use crate::drift;
use crate::report::csv::Csv;
use crate::report::number;
use crate::report::tables::Replicated;
use crate::scenario::Scenario;
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
    /// Whether it is about ratios, which `[world.drift]` predicts.
    #[must_use]
    pub fn is_ratio(&self) -> bool {
        drift::METRICS.iter().any(|metric| metric.name == self.metric.name)
    }

    /// Whether the difference is more than chance, at 95%.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.difference.is_some_and(|difference| difference.excludes_zero())
    }
}

/// The difference of every metric, in the order of [`METRICS`] (then those of ratios, where either
/// has them), over runs paired by replication.
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
    let has_ratios = [from, to]
        .into_iter()
        .flatten()
        .any(|(_, run)| run.summary.values().nth(METRICS.len()).is_some());
    let ratios = if has_ratios { drift::METRICS } else { &[] };
    METRICS.iter().chain(ratios).enumerate().map(difference).collect()
}

/// What the ratios of two scenarios were fitted to, in words; `None`: neither has any.
#[must_use]
pub fn calibration(a: &Scenario, b: &Scenario) -> Option<String> {
    let [a, b] = [a, b].map(|scenario| scenario.drift.as_ref().map(drift::Model::calibration));
    match (a, b) {
        (Some(a), Some(b)) if a != b => Some(format!("A {a}, B {b}")),
        (a, b) => a.or(b),
    }
}

/// The differences as a table. `calibration` is what the ratios were fitted to, if there are any.
#[must_use]
pub fn table(differences: &[Difference], calibration: Option<&str>) -> Csv {
    let header =
        ["metric", "unit", "a", "a_hw", "b", "b_hw", "difference", "difference_hw", "differs"];
    let mut csv = Csv::new(header.into_iter().chain(calibration.map(|_| "drift")));
    for item in differences {
        let cells = [item.from, item.to, item.difference].into_iter().flat_map(|estimate| {
            let half_width = estimate.and_then(|estimate| estimate.half_width);
            [number::cell(estimate.map(|estimate| estimate.mean)), number::cell(half_width)]
        });
        let name = [item.metric.name, item.metric.unit].map(str::to_owned);
        let verdict = if item.is_clear() { "yes" } else { "no" };
        let fitted = calibration.map(|words| if item.is_ratio() { words } else { "" }.to_owned());
        let row = name.into_iter().chain(cells).chain([verdict.to_owned()]).chain(fitted);
        csv.rows.push(row.collect());
    }
    csv
}

//! Which rows lie on the front of throughput against the 99th percentile of staleness.

use super::row::{AGE, RATES, Row, ninety};
use crate::plan::front::{Contender, front};
use crate::stats::Estimate;

/// A row, compared by one kind of throughput.
struct Ranked<'a> {
    fit: bool,
    rates: &'a [(u32, f64)],
    ages: &'a [(u32, f64)],
}

/// Marks both fronts of the rows of one workload.
pub(super) fn mark(rows: &mut [Row]) {
    let fronts = RATES.map(|rate| {
        let ranked: Vec<Ranked<'_>> = rows
            .iter()
            .map(|row| {
                let rates = row.values(rate);
                let fit = row.is_fit() && !rates.is_empty();
                Ranked { fit, rates, ages: row.values(AGE) }
            })
            .collect();
        front(&ranked)
    });
    for (place, row) in rows.iter_mut().enumerate() {
        row.on_front = [fronts[0][place], fronts[1][place]];
    }
}

fn mean(values: &[(u32, f64)]) -> Option<f64> {
    let sum = values.iter().fold(0.0, |sum, (_, value)| sum + value);
    (!values.is_empty()).then(|| sum / values.len() as f64)
}

/// The difference of two rows over the replications that both have.
fn difference(from: &[(u32, f64)], to: &[(u32, f64)]) -> Option<Estimate> {
    let pair = |(number, value): &(u32, f64)| {
        let (_, other) = to.iter().find(|(other, _)| other == number)?;
        Some(other - value)
    };
    let differences: Vec<f64> = from.iter().filter_map(pair).collect();
    ninety(&differences)
}

impl Contender for Ranked<'_> {
    fn is_fit(&self) -> bool {
        self.fit
    }

    fn rate(&self) -> f64 {
        mean(self.rates).unwrap_or(0.0)
    }

    fn staleness(&self) -> Option<f64> {
        mean(self.ages)
    }

    fn gain_of(&self, other: &Self) -> Option<Estimate> {
        difference(self.rates, other.rates)
    }

    fn ageing_of(&self, other: &Self) -> Option<Estimate> {
        difference(self.ages, other.ages)
    }
}

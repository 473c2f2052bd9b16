//! Whether a run's world is the scenario's: where it is not, no prediction can be right.

use headway_shared::metrics::Metric;

use super::figures::{FIGURES, Group};
use super::laws;
use super::results::Row;
use crate::report::number;

/// What differs by less than this share is the same world for every purpose.
const MATTERS: f64 = 0.1;

/// What to say of the figures of one run's world that are not those of the scenario.
pub(super) fn differences(rows: &[Row]) -> Vec<String> {
    let of_world = |row: &&Row| FIGURES[row.figure].group == Group::World;
    rows.iter().filter(of_world).filter_map(difference).collect()
}

fn difference(row: &Row) -> Option<String> {
    let (measured, prediction) = (row.measured?, row.prediction?);
    let (low, high) = prediction.interval?;
    let far = (measured - prediction.value).abs() > MATTERS * prediction.value.abs();
    if !far || row.is_inside() != Some(false) {
        return None;
    }
    let metric = row.metric()?;
    let with_unit = |value: f64| with_unit(metric, value);
    Some(format!(
        "its world differs: {} is {}, and the scenario has {} ({} to {}); if that is known, set {}",
        metric.name,
        with_unit(measured),
        with_unit(prediction.value),
        number::short(Some(low)),
        number::short(Some(high)),
        laws::key(metric.name)?,
    ))
}

fn with_unit(metric: &Metric, value: f64) -> String {
    format!("{} {}", number::short(Some(value)), metric.unit)
}

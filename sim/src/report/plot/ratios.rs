//! Importance ratios and effective sample sizes: what `[world.drift]` predicts.

use super::super::csv::Csv;
use super::axis::Axis;
use super::curve::Curve;
use super::page::{self, Head, Key, Picture};
use super::panel::{Panel, Point};
use super::theme::{REFERENCE, SERIES, Style};
use super::{Drawn, PlotError};

pub(super) const QUANTILES: [(&str, &str); 3] = [
    ("learner_rollout_p50", "median"),
    ("learner_rollout_p99", "p99"),
    ("learner_rollout_max", "maximum"),
];
pub(super) const EFFECTIVE: [(&str, &str); 2] = [
    ("learner_rollout_ess_token", "of tokens, by learner/rollout"),
    (
        "learner_rollout_ess_sequence",
        "of a step's sequences, by the product of their tokens' ratios",
    ),
];

/// Median, p99 and maximum of learner/rollout over the swept key; nothing without a prediction.
pub(crate) fn quantiles(curve: &Curve<'_>) -> Result<Option<Picture>, PlotError> {
    let Some(calibration) = curve.drift() else { return Ok(None) };
    let series = QUANTILES.map(|(metric, _)| curve.metric(metric));
    let subtitle = format!("{} · {calibration}", curve.subtitle());
    let head = Head {
        name: &curve.file("ratios"),
        title: &format!("Importance ratio learner/rollout of trained tokens{}", mark(calibration)),
        subtitle: &subtitle,
        legend: &legend(),
        height: 640,
        narrow: 400,
    };
    let axes = (curve.axis(), ratio_axis(&series));
    page::draw(&head, |area| curves(&Panel::on(area, &axes.0, &axes.1)?, &axes.0, &series, curve))
        .map(Some)
}

/// Effective sample sizes over the swept key; nothing without a prediction.
pub(crate) fn effective(curve: &Curve<'_>) -> Result<Option<Picture>, PlotError> {
    let Some(calibration) = curve.drift() else { return Ok(None) };
    let legend: Vec<Key> = EFFECTIVE
        .iter()
        .zip(SERIES)
        .map(|(series, style)| Key::Line(style, series.1.into()))
        .collect();
    let head = Head {
        name: &curve.file("effective"),
        title: &format!("Effective sample size{}", mark(calibration)),
        subtitle: &format!(
            "{} · {calibration} · low is bad, high proves nothing",
            curve.subtitle()
        ),
        legend: &legend,
        height: 640,
        narrow: 400,
    };
    let share = Axis::share("effective share of what is trained");
    page::draw(&head, |area| {
        let series: Vec<_> =
            EFFECTIVE.iter().zip(SERIES).map(|(of, style)| (curve.metric(of.0), style)).collect();
        Panel::on(area, &curve.axis(), &share)?.curves(&series, curve.is_numeric())
    })
    .map(Some)
}

/// The same quantiles over the staleness of tokens, of one run; nothing without a prediction.
pub(crate) fn by_staleness(curve: &Curve<'_>) -> Result<Option<Picture>, PlotError> {
    let (Some(calibration), Some(table)) = (curve.drift(), curve.ratios()) else {
        return Ok(None);
    };
    let rows = curve.rows_of(table, 0);
    let series = QUANTILES.map(|(column, _)| points(table, &rows, column));
    let oldest = rows.iter().filter_map(|&row| table.value(row, "staleness")).fold(0.0, f64::max);
    let x = Axis::counts("staleness of the token, learner versions", oldest as u32, 20);
    let y = ratio_axis(&series);
    let head = Head {
        name: &curve.file("ratio-staleness"),
        title: &format!("Importance ratio learner/rollout by staleness{}", mark(calibration)),
        subtitle: &format!("{} · {calibration}", curve.subtitle()),
        legend: &legend(),
        height: 640,
        narrow: 400,
    };
    page::draw(&head, |area| curves(&Panel::on(area, &x, &y)?, &x, &series, curve)).map(Some)
}

/// What the title says of a prediction that nothing was fitted to.
fn mark(calibration: &str) -> &'static str {
    if calibration == "uncalibrated" { " (uncalibrated)" } else { "" }
}

fn legend() -> Vec<Key> {
    let lines = QUANTILES.iter().zip(SERIES);
    let lines = lines.map(|(series, style)| Key::Line(style, series.1.into()));
    lines.chain([Key::Line(REFERENCE, "ratio 1".into())]).collect()
}

/// Lines on the logarithms of ratios, and one at a ratio of 1.
fn curves(panel: &Panel<'_>, x: &Axis, series: &[Vec<Point>; 3], curve: &Curve<'_>) -> Drawn {
    panel.trace(&[(x.range.0, 0.0), (x.range.1, 0.0)], REFERENCE)?;
    let lines: Vec<(Vec<Point>, Style)> =
        series.iter().map(|points| logarithms(points)).zip(SERIES).collect();
    let joined = curve.is_numeric() || lines.iter().all(|(points, _)| points.len() != 1);
    panel.curves(&lines, joined)
}

fn points(table: &Csv, rows: &[usize], column: &str) -> Vec<Point> {
    let half = format!("{column}_hw");
    let point = |&row: &usize| {
        let staleness = table.value(row, "staleness")?;
        Some((staleness, table.value(row, column), table.value(row, &half)))
    };
    rows.iter().filter_map(point).collect()
}

/// On a logarithmic axis a small interval is as wide as its share of the value.
fn logarithms(points: &[Point]) -> Vec<Point> {
    let log = |&(x, value, half): &Point| match value.filter(|value| *value > 0.0) {
        Some(value) => (x, Some(libm::log(value)), half.map(|half| half / value)),
        None => (x, None, None),
    };
    points.iter().map(log).collect()
}

/// An axis of logarithms that is marked with ratios.
fn ratio_axis(series: &[Vec<Point>]) -> Axis {
    let ends = series.iter().flatten().filter_map(|&(_, value, half)| {
        let (value, half) = (value?, half.unwrap_or(0.0));
        Some((value - half, value + half))
    });
    let (low, high) =
        ends.fold((1.0, 1.0), |ends: (f64, f64), end| (ends.0.min(end.0), ends.1.max(end.1)));
    Axis::ratios("learner/rollout, logarithmic", low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_fit_stands_behind_is_marked() {
        assert_eq!(mark("uncalibrated"), " (uncalibrated)");
        assert_eq!(mark("calibrated from run.db"), "");
    }
}

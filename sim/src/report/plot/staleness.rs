//! Staleness over the swept key.

use super::curve::{Curve, highest};
use super::page::{self, Head, Key, Picture};
use super::panel::Panel;
use super::theme::{REFERENCE, SERIES};
use super::{PlotError, axis::Axis};

pub(super) const METRICS: [(&str, &str); 4] = [
    ("staleness_head_mean", "mean"),
    ("staleness_head_p50", "median"),
    ("staleness_head_p99", "p99"),
    ("staleness_head_max", "maximum"),
];

/// Mean, median, p99 and maximum of head staleness, with the line y = η where η is swept.
pub(crate) fn draw(curve: &Curve<'_>) -> Result<Picture, PlotError> {
    let series = METRICS.map(|(metric, _)| curve.metric(metric));
    let bounds = curve.bounds();
    let names = METRICS.iter().zip(SERIES);
    let mut legend: Vec<Key> =
        names.map(|(metric, style)| Key::Line(style, metric.1.into())).collect();
    if bounds.is_some() {
        legend.push(Key::Line(REFERENCE, "y = η".into()));
    }
    let head = Head {
        name: &curve.file("staleness"),
        title: "Staleness of trained samples",
        subtitle: &curve.subtitle(),
        legend: &legend,
        height: 640,
        narrow: 400,
    };
    let bound = bounds.iter().flatten().map(|bound| bound.1).fold(0.0, f64::max);
    let y = Axis::from_zero("head staleness, learner versions", highest(&series).max(bound), 8);
    page::draw(&head, |area| {
        let panel = Panel::on(area, &curve.axis(), &y)?;
        if let Some(bounds) = &bounds {
            panel.trace(bounds, REFERENCE)?;
        }
        // The mean last, on top of the others.
        let series: Vec<_> = series.iter().cloned().zip(SERIES).rev().collect();
        panel.curves(&series, curve.is_numeric())
    })
}

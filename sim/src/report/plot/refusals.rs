//! Refused requests over the swept key.

use super::PlotError;
use super::axis::Axis;
use super::curve::{Curve, highest};
use super::page::{self, Head, Key, Picture};
use super::panel::{Panel, Point};
use super::theme::{SERIES, Style};

pub(super) const METRICS: [(&str, &str); 4] = [
    ("refused_stale_share", "429, staleness bound"),
    ("refused_queue_full_share", "429, queue full"),
    ("refused_other_429_share", "429, other"),
    ("refused_503_share", "503, unavailable"),
];

/// Refused requests as percentages of those offered, by reason; a reason that never occurred is
/// named and not drawn.
pub(crate) fn draw(curve: &Curve<'_>) -> Result<Picture, PlotError> {
    let mut series: Vec<(Vec<Point>, Style)> = Vec::new();
    let (mut legend, mut never) = (Vec::new(), Vec::new());
    for ((metric, name), style) in METRICS.into_iter().zip(SERIES) {
        let points = percentages(curve, metric);
        if highest([&points]) > 0.0 {
            series.push((points, style));
            legend.push(Key::Line(style, name.into()));
        } else {
            never.push(name);
        }
    }
    let mut subtitle = curve.subtitle();
    if !never.is_empty() {
        subtitle = format!("{subtitle} · never: {}", never.join("; "));
    }
    let head = Head {
        name: &curve.file("refusals"),
        title: "Refused requests",
        subtitle: &subtitle,
        legend: &legend,
        height: 640,
        narrow: 400,
    };
    let top = highest(series.iter().map(|(points, _)| points)).min(100.0);
    let y = Axis::from_zero("% of requests offered, retries included", top, 8);
    page::draw(&head, |area| {
        Panel::on(area, &curve.axis(), &y)?.curves(&series, curve.is_numeric())
    })
}

fn percentages(curve: &Curve<'_>, metric: &str) -> Vec<Point> {
    let percent = |share: Option<f64>| share.map(|share| share * 100.0);
    let points = curve.metric(metric).into_iter();
    points.map(|(x, share, half)| (x, percent(share), percent(half))).collect()
}
